//! The four panes: open in a frame, or one line that says the most important thing.

mod bench;
mod bench_charts;
mod bench_compare;
mod bench_live;
mod bench_table;
mod card_line;
mod card_lines;
mod cards;
mod config;
pub mod first_run;
mod gpus;
mod host;
mod memory;
mod served;
mod starts;
mod tasks;

use super::pen::{Pen, row};
use super::view::ViewState;
use super::widgets::frame::frame;
use super::words::Words;
use crate::app::model::{Model, Pane};
use crate::theme::Role;
use ratatui::layout::Rect;

/// Draws a pane into its place.
pub fn draw(
    pen: &mut Pen<'_>,
    pane: Pane,
    area: Rect,
    open: bool,
    model: &Model,
    view: &mut ViewState,
) {
    if !open {
        line(pen, pane, area, model);
        return;
    }
    let focused = model.focus == pane && model.config.editing.is_none()
        || pane == Pane::Config && model.config.editing.is_some();
    let facts = match pane {
        Pane::Tasks => tasks::facts(pen, model),
        Pane::Gpus => gpus::facts(pen, model),
        Pane::Bench => bench::facts(pen, model),
        Pane::Config => config::facts(pen, model),
    };
    let more = match pane {
        Pane::Bench => bench::title(pen, model),
        _ => pen.words(),
    };
    let title = title(pen, pane).and(more);
    let inner = frame(pen, area, focused, title, facts);
    if inner.is_empty() {
        return;
    }
    match pane {
        Pane::Tasks => tasks::draw(pen, inner, model, view),
        Pane::Gpus => gpus::draw(pen, inner, model, view),
        Pane::Bench => bench::draw(pen, inner, model, view),
        Pane::Config => config::draw(pen, inner, model),
    }
}

fn title<'t>(pen: &Pen<'t>, pane: Pane) -> Words<'t> {
    pen.words()
        .dim(pane.number().to_string())
        .gap(1)
        .role(Role::Title, pane.title())
}

/// A pane that is not open.
fn line(pen: &mut Pen<'_>, pane: Pane, area: Rect, model: &Model) {
    let summary = match pane {
        Pane::Tasks => tasks::summary(pen, model),
        Pane::Gpus => gpus::summary(pen, model),
        Pane::Bench => bench::summary(pen, model),
        Pane::Config => config::summary(pen, model),
    };
    let words = pen
        .words()
        .gap(2)
        .and(title(pen, pane))
        .padded_to(15)
        .and(summary);
    pen.put(row(area, 0), words);
}
