//! Memory of every card over the session, with the moments that explain it, and a cursor that reads it.

use super::super::pen::{Pen, from_column, row};
use super::super::view::ViewState;
use super::super::widgets::time_chart::{LEFT, Series, TimeChart, TimeMark, dot_columns, plot};
use super::super::words::{Words, safe};
use super::starts;
use crate::app::history::{Mark, MarkKind, Reach};
use crate::app::model::Model;
use crate::app::window::{Doing, doing, last_starts};
use crate::clock::hms;
use crate::gpu::Card;
use crate::theme::Role;
use crate::units::{GIB, thousands};
use ratatui::layout::Rect;

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, view: &mut ViewState) {
    if model.window.overlaid
        && let Some(two) = last_starts(&model.marks)
    {
        starts::draw(pen, area, model, &two);
        return;
    }
    let (from, to) = model.window.ends(model.record());
    // With more cards than rows their last values stand in the rows of the cards alone.
    let named = model.rig.gpus.cards.len() < usize::from(area.height.saturating_sub(2));
    let present = model.window.end.is_none() && model.frozen.is_none();
    let mut series = lines(pen, model, named, (!present).then_some(to));
    let marks = marks(pen, &model.marks, from);
    let columns = dot_columns(plot(area, TimeChart::right(&series)));
    let packed = view.memory(&model.history, from, to, columns);
    for (one, spans) in series.iter_mut().zip(packed) {
        one.spans.clone_from(spans);
    }
    let chart = TimeChart {
        from,
        to,
        zero: None,
        cursor: model.window.cursor,
        high: high(model),
        unit: "GiB",
        series: &series,
        marks: &marks,
    };
    chart.draw(pen, area);
    if let Some(cursor) = model.window.cursor {
        let words = reading(pen, model, cursor);
        pen.put(from_column(row(area, 0), LEFT), words);
    }
}

/// What stands under the cursor: the time, what the server did, and the memory of each card, the selected one first.
fn reading<'t>(pen: &Pen<'t>, model: &Model, cursor: i64) -> Words<'t> {
    let step = model.window.step(model.record());
    let mut words = pen
        .words()
        .strong(hms(cursor.saturating_mul(1000)))
        .gap(2)
        .text(did(doing(&model.marks, cursor, model.running_context())));
    let under = |mark: &&Mark| {
        let at = mark.unix_ms.div_euclid(1000);
        (cursor..cursor.saturating_add(step)).contains(&at)
    };
    if let Some(mark) = model.marks.iter().rev().find(under) {
        words = words
            .gap(2)
            .dim(pen.glyphs().mark)
            .text(safe(words_of(mark)));
    }
    let cards = &model.rig.gpus.cards;
    let selected = cards.get(model.gpu_scroll).map(|card| card.index);
    let first = |card: &Card| Some(card.index) != selected;
    let mut ordered: Vec<(usize, &Card)> = cards.iter().enumerate().collect();
    ordered.sort_by_key(|(place, card)| (first(card), *place));
    for (place, card) in ordered {
        let reach = model.history.reach(place, cursor, step);
        let mean = Some(card.index) == selected;
        words = words
            .gap(2)
            .styled(pen.theme.card(card.index), pen.glyphs().card)
            .dim(card.index.to_string())
            .gap(1)
            .text(reach.map_or(pen.glyphs().none.to_string(), |reach| span(reach, mean)));
    }
    words
}

/// Least to most in GiB, with the mean where it is asked for and says something.
fn span(reach: Reach, mean: bool) -> String {
    let gib = |mib: f64| format!("{:.1}", mib / 1024.0);
    let (low, high) = (gib(f64::from(reach.low)), gib(f64::from(reach.high)));
    if low == high {
        return low;
    }
    match mean {
        true => format!("{low}–{high} (mean {})", gib(reach.mean)),
        false => format!("{low}–{high}"),
    }
}

fn did(doing: Doing) -> String {
    let of = |context: Option<u64>| context.map_or("context unknown".to_string(), thousands);
    match doing {
        Doing::Serving(context) => of(context),
        Doing::Stopped => "stopped".to_string(),
        Doing::Starting(context) => format!("starting {}", of(context)),
        Doing::Failed(context) => format!("{} failed", of(context)),
        Doing::Lost(context) => format!("{} does not answer", of(context)),
        Doing::Unknown => "context unknown".to_string(),
    }
}

/// The top of the scale: the largest card.
pub fn high(model: &Model) -> f64 {
    let totals = model
        .rig
        .gpus
        .cards
        .iter()
        .filter_map(|card| card.memory.known());
    let most = totals
        .map(|memory| memory.total as f64 / GIB)
        .fold(0.0, f64::max);
    if most > 0.0 {
        // Cards are named by whole sizes; 47.99 is 48.
        return most.ceil();
    }
    // No card is read any more: what is on record has to fit.
    let most = match model.history.extent() {
        Some((first, last)) => (0..model.rig.gpus.cards.len())
            .filter_map(|place| model.history.reach(place, first, last - first + 1))
            .map(|reach| f64::from(reach.high) / 1024.0)
            .fold(0.0, f64::max),
        None => 0.0,
    };
    most.ceil().max(1.0)
}

/// The lines of the cards, with what each held at `end`, or holds now.
fn lines(pen: &Pen<'_>, model: &Model, named: bool, end: Option<i64>) -> Vec<Series> {
    model
        .rig
        .gpus
        .cards
        .iter()
        .enumerate()
        .map(|(place, card)| {
            let used = match end {
                Some(end) => {
                    let then = model.history.reach(place, end.saturating_sub(5), 6);
                    then.map(|reach| f64::from(reach.high) / 1024.0)
                }
                None => card.memory.fresh().map(|memory| memory.used as f64 / GIB),
            };
            Series {
                style: pen.theme.card(card.index),
                // Without braille a line is made of its card's digit.
                sign: char::from_digit(card.index % 10, 10).unwrap_or('*'),
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

/// The words beside a mark: what happened, and at which context.
fn words_of(mark: &Mark) -> String {
    let what = match (mark.kind, &mark.text) {
        (MarkKind::Bench | MarkKind::Phase, Some(text)) => text.clone(),
        (kind, Some(text)) => format!("{} {text}", kind.word()),
        (kind, None) => kind.word().to_string(),
    };
    match (mark.kind, mark.context) {
        (_, None) => what,
        (MarkKind::Bench | MarkKind::Own, Some(context)) => {
            format!("{what} at {}", thousands(context))
        }
        (_, Some(context)) => format!("{what} {}", thousands(context)),
    }
}

/// The role of a mark's words.
pub fn role(kind: MarkKind) -> Role {
    match kind {
        MarkKind::Stop | MarkKind::Failed | MarkKind::Lost => Role::Bad,
        MarkKind::Start => Role::Warn,
        MarkKind::Ready | MarkKind::Back | MarkKind::Decision => Role::Good,
        MarkKind::Phase | MarkKind::Bench | MarkKind::Own => Role::Dim,
    }
}

fn marks(pen: &Pen<'_>, marks: &[Mark], from: i64) -> Vec<TimeMark> {
    marks
        .iter()
        .filter(|mark| mark.unix_ms.div_euclid(1000) >= from)
        .map(|mark| TimeMark {
            at: mark.unix_ms.div_euclid(1000),
            words: safe(match (mark.kind, &mark.text) {
                // Its context stands at its start.
                (MarkKind::Phase, Some(text)) => text.clone(),
                _ => words_of(mark),
            }),
            style: pen.style(role(mark.kind)),
            minor: mark.kind == MarkKind::Phase,
        })
        .collect()
}
