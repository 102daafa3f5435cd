//! Memory of every card over the session, with the moments that explain it.

use super::super::pen::Pen;
use super::super::view::ViewState;
use super::super::widgets::time_chart::{Series, TimeChart, TimeMark, dot_columns, plot};
use crate::app::history::{Mark, MarkKind};
use crate::app::model::Model;
use crate::theme::Role;
use crate::units::{GIB, thousands};
use ratatui::layout::Rect;

/// Spans that a young session fills, one after the other, before its window is full.
const SPANS: [i64; 9] = [60, 120, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400];

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, view: &mut ViewState) {
    let (from, to) = window(model);
    // With more cards than rows their last values stand in the rows of the cards alone.
    let named = model.rig.gpus.cards.len() < usize::from(area.height.saturating_sub(2));
    let mut series = lines(pen, model, named);
    let marks = marks(pen, &model.marks, from);
    let columns = dot_columns(plot(area, TimeChart::right(&series)));
    let packed = view.memory(&model.history, from, to, columns);
    for (one, spans) in series.iter_mut().zip(packed) {
        one.spans.clone_from(spans);
    }
    let chart = TimeChart {
        from,
        to,
        high: high(model),
        unit: "GiB",
        series: &series,
        marks: &marks,
    };
    chart.draw(pen, area);
}

/// Unix seconds at both ends. A session that is younger than the window fills a shorter one from the left.
fn window(model: &Model) -> (i64, i64) {
    let now = model.frozen.unwrap_or(model.now).unix_ms.div_euclid(1000);
    let start = model
        .history
        .extent()
        .map_or(now, |(first, _)| first.min(now));
    let age = now.saturating_sub(start);
    let wanted = model.window_s.and_then(|s| i64::try_from(s).ok());
    match wanted {
        Some(window) if age >= window => (now.saturating_sub(window), now),
        _ => {
            let span = SPANS.into_iter().find(|span| *span >= age).unwrap_or(age);
            let span = span.min(wanted.unwrap_or(i64::MAX)).max(age);
            (start, start.saturating_add(span))
        }
    }
}

/// The top of the scale: the largest card.
fn high(model: &Model) -> f64 {
    let totals = model
        .rig
        .gpus
        .cards
        .iter()
        .filter_map(|card| card.memory.known());
    let most = totals
        .map(|memory| memory.total as f64 / GIB)
        .fold(0.0, f64::max);
    // Cards are named by whole sizes; 47.99 is 48.
    if most > 0.0 { most.ceil() } else { 1.0 }
}

fn lines(pen: &Pen<'_>, model: &Model, named: bool) -> Vec<Series> {
    model
        .rig
        .gpus
        .cards
        .iter()
        .map(|card| {
            let used = card.memory.fresh().map(|memory| memory.used as f64 / GIB);
            Series {
                style: pen.theme.card(card.index),
                name: if named {
                    card.index.to_string()
                } else {
                    String::new()
                },
                spans: Vec::new(),
                last: used.map(|gib| format!("{gib:4.1}")),
                last_value: used,
            }
        })
        .collect()
}

/// The words beside a mark: what was measured, or where a start goes to; a stop and a ready belong to their start.
fn words(mark: &Mark) -> String {
    match (mark.kind, &mark.text, mark.context) {
        (MarkKind::Bench, Some(text), _) => text.clone(),
        (kind, Some(text), _) => format!("{} {text}", kind.word()),
        (kind @ (MarkKind::Start | MarkKind::Failed | MarkKind::Decision), None, Some(context)) => {
            format!("{} {}", kind.word(), thousands(context))
        }
        (kind, None, _) => kind.word().to_string(),
    }
}

fn marks(pen: &Pen<'_>, marks: &[Mark], from: i64) -> Vec<TimeMark> {
    marks
        .iter()
        .filter(|mark| mark.unix_ms.div_euclid(1000) >= from)
        .map(|mark| {
            let role = match mark.kind {
                MarkKind::Stop | MarkKind::Failed => Role::Bad,
                MarkKind::Start => Role::Warn,
                MarkKind::Ready | MarkKind::Decision => Role::Good,
                MarkKind::Bench | MarkKind::Own => Role::Dim,
            };
            TimeMark {
                at: mark.unix_ms.div_euclid(1000),
                words: super::super::words::safe(words(mark)),
                style: pen.style(role),
            }
        })
        .collect()
}
