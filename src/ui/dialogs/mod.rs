//! What lies over the panes: questions, fields, lists.

mod ask;
mod cards;
mod commands;
mod entry;
mod help;
mod lines;
mod question;
mod recovery;
mod restart;
mod runs;
mod sheet;

use super::pen::Pen;
use super::widgets::frame::shade;
use crate::app::dialog::Dialog;
use crate::app::model::Model;
use ratatui::layout::Rect;

/// Draws the dialogs over `area`, the topmost last.
pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    for dialog in &model.dialogs {
        shade(pen);
        match dialog {
            Dialog::Restart(dialog) => restart::draw(pen, area, model, dialog),
            Dialog::Question(pending) => question::draw(pen, area, model, pending.action()),
            Dialog::Recovery(recovery) => recovery::draw(pen, area, model, recovery),
            Dialog::Cards(dialog) => cards::draw(pen, area, model, dialog),
            Dialog::Stop(_) => ask::stop(pen, area, model),
            Dialog::Quit(_) => ask::quit(pen, area, model),
            Dialog::Entry(entry) => entry::draw(pen, area, entry),
            Dialog::Help { query, scroll } => help::draw(pen, area, model, &query.text, *scroll),
            Dialog::Commands { query, selected } => commands::draw(pen, area, query, *selected),
            Dialog::Runs(dialog) => runs::draw(pen, area, dialog),
            Dialog::Log { back } => lines::log(pen, area, model, *back),
            Dialog::Origin { lines } => lines::origin(pen, area, lines),
            Dialog::Diff { lines, scroll } => lines::diff(pen, area, lines, *scroll),
        }
    }
}

/// Cells of text in a dialog over `area`.
fn text_width(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(8)).min(96)
}

/// A note that stands by itself begins like a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
