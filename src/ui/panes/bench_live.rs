//! The run over its time: output rate, first token, and requests, asked for and at the server.

use super::super::pen::{Pen, first_columns, from_column};
use super::super::widgets::trend::{Trend, TrendLine};
use crate::app::bench::timeline::{Moment, Timeline};
use crate::app::bench::view::live_window;
use crate::app::model::Model;
use crate::theme::Role;
use ratatui::layout::Rect;

/// Cells that a chart needs to stand beside others.
const LEAST: u16 = 22;
/// Cells from which on last values have words.
const WORDS: u16 = 32;

type Figure = fn(&Moment) -> Option<(f64, f64)>;

/// Draws the charts side by side, as many as have room.
pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let Some(line) = &model.bench.timeline else {
        return;
    };
    let count = (area.width / LEAST).clamp(1, 3);
    let wide = area.width / count;
    for (i, chart) in (0..count).zip([rate, ttft, requests]) {
        let place = from_column(area, i * wide);
        chart(
            pen,
            first_columns(place, wide.saturating_sub(1)),
            model,
            line,
        );
    }
}

/// The greatest of some figures in the window; 1 where nothing is known.
fn most(model: &Model, line: &Timeline, figures: &[Figure]) -> f64 {
    let window = live_window(model);
    let most = line
        .moments()
        .iter()
        .filter(|m| window.has(m.at_ms))
        .flat_map(|m| figures.iter().filter_map(|figure| figure(m)))
        .map(|(_, most)| most)
        .fold(0.0, f64::max);
    if most > 0.0 { most } else { 1.0 }
}

/// The newest value in the window: the last of the run, or what it was when the charts were frozen.
fn last(model: &Model, line: &Timeline, figure: Figure) -> Option<f64> {
    let end = live_window(model).end_ms;
    let known = line.moments().iter().rev().filter(|m| m.at_ms <= end);
    known.map(figure).next().flatten().map(|(_, most)| most)
}

fn one(
    pen: &mut Pen<'_>,
    area: Rect,
    model: &Model,
    line: &Timeline,
    (title, unit): (&str, &str),
    (figure, role): (Figure, Role),
    decimals: usize,
) {
    let window = live_window(model);
    let spans = |columns: usize| line.spans(window, columns, figure);
    let trend = Trend {
        title: pen.words().text(title).gap(2).dim(unit),
        from_ms: window.from_ms,
        to_ms: window.to_ms,
        high: most(model, line, &[figure]),
        lines: vec![TrendLine {
            style: pen.style(role),
            spans: &spans,
            last: last(model, line, figure).map(|v| (v, format!("{v:.decimals$}"))),
        }],
    };
    trend.draw(pen, area);
}

fn rate(pen: &mut Pen<'_>, area: Rect, model: &Model, line: &Timeline) {
    let figure: (Figure, Role) = (|m| m.rate, Role::Rate);
    one(pen, area, model, line, ("output", "tok/s"), figure, 1);
}

fn ttft(pen: &mut Pen<'_>, area: Rect, model: &Model, line: &Timeline) {
    let seconds: Figure = |m| m.ttft_ms.map(|(a, b)| (a / 1000.0, b / 1000.0));
    let figure = (seconds, Role::Ttft);
    one(pen, area, model, line, ("first token", "s"), figure, 2);
}

fn requests(pen: &mut Pen<'_>, area: Rect, model: &Model, line: &Timeline) {
    let asked: Figure = |m| m.asked;
    let seen: Figure = |m| m.seen;
    let window = live_window(model);
    let asked_spans = |columns: usize| line.spans(window, columns, asked);
    let seen_spans = |columns: usize| line.spans(window, columns, seen);
    let named = |value: f64, name: &str| {
        if area.width >= WORDS {
            format!("{value:.0} {name}")
        } else {
            format!("{value:.0}")
        }
    };
    let (of_asked, of_seen) = (pen.style(Role::Dim), pen.style(Role::Accent));
    let trend = Trend {
        title: pen
            .words()
            .text("requests ")
            .styled(of_asked, "asked")
            .text(", ")
            .styled(of_seen, "at server"),
        from_ms: window.from_ms,
        to_ms: window.to_ms,
        high: most(model, line, &[asked, seen]),
        lines: vec![
            TrendLine {
                style: of_asked,
                spans: &asked_spans,
                last: last(model, line, asked).map(|v| (v, named(v, "asked"))),
            },
            TrendLine {
                style: of_seen,
                spans: &seen_spans,
                last: last(model, line, seen).map(|v| (v, named(v, "there"))),
            },
        ],
    };
    trend.draw(pen, area);
}
