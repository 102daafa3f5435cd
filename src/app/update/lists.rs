//! Moving in what the focused pane or dialog shows.

use super::super::dialog::Dialog;
use super::super::model::{Model, Pane};
use crate::keymap::{Action, Context};

/// Lines that the help has at most: every action, and a title and a blank line a place.
const HELP_LINES: usize = Action::ALL.len() + 2 * Context::ALL.len();
/// Lines of a page.
const PAGE: isize = 10;

/// How far to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Motion {
    Lines(isize),
    Pages(isize),
    Top,
    Bottom,
}

impl Motion {
    fn lines(self) -> isize {
        match self {
            Motion::Lines(n) => n,
            Motion::Pages(n) => n.saturating_mul(PAGE),
            Motion::Top => isize::MIN / 2,
            Motion::Bottom => isize::MAX / 2,
        }
    }
}

/// Moves in the topmost dialog or in the focused pane.
pub fn go(model: &mut Model, motion: Motion) {
    let by = motion.lines();
    let log_lines = model.log.len();
    match model.dialogs.last_mut() {
        Some(Dialog::Help { scroll, .. }) => *scroll = step(*scroll, by, HELP_LINES),
        Some(Dialog::Diff { scroll, lines }) => *scroll = step(*scroll, by, lines.len()),
        Some(Dialog::Commands { selected, query }) => {
            let last = super::dialogs::matching(&query.text)
                .len()
                .saturating_sub(1);
            *selected = step(*selected, by, last);
        }
        Some(Dialog::Runs(runs)) => {
            let last = runs.found().len().saturating_sub(1);
            runs.selected = step(runs.selected, by, last);
        }
        Some(Dialog::Log { back }) => {
            *back = step(*back, by.saturating_neg(), log_lines.saturating_sub(1))
        }
        Some(_) => {}
        None => {
            let pane = model.focus;
            scroll(model, pane, by);
        }
    }
}

fn step(at: usize, by: isize, last: usize) -> usize {
    at.saturating_add_signed(by).min(last)
}

/// Scrolls or moves the selection of a pane.
pub fn scroll(model: &mut Model, pane: Pane, by: isize) {
    match pane {
        Pane::Tasks => model.tasks.move_selection(by),
        Pane::Gpus => {
            model.gpu_scroll = step(
                model.gpu_scroll,
                by,
                model.rig.gpus.cards.len().saturating_sub(1),
            )
        }
        Pane::Bench => {
            if let Some(compared) = &mut model.bench.compared {
                let last = compared.figures().saturating_sub(1);
                compared.selected = step(compared.selected, by, last);
                return;
            }
            let last = model.bench.rows().len().saturating_sub(1);
            model.bench.scroll = step(model.bench.scroll, by, last);
        }
        Pane::Config => {}
    }
}

/// A click on a line.
pub fn select(model: &mut Model, pane: Pane, line: usize) {
    model.focus = pane;
    if pane == Pane::Gpus && line < model.rig.gpus.cards.len() {
        model.gpu_scroll = line;
    }
    if pane == Pane::Tasks && line < model.tasks.list.len() {
        model.tasks.selected = line;
    }
    if pane == Pane::Bench {
        match &mut model.bench.compared {
            Some(compared) => compared.selected = line,
            None => model.bench.scroll = line,
        }
    }
}
