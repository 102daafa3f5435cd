//! The keys, from the keymap: of this place, then everywhere.

use super::super::pen::Pen;
use super::super::words::Words;
use super::sheet::Sheet;
use crate::app::model::{Model, Pane};
use crate::keymap::{Action, Context};
use crate::theme::Role;
use ratatui::layout::Rect;

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, query: &str, scroll: usize) {
    let mut lines = Vec::new();
    for context in order(model) {
        let section = section(pen, context, query);
        if section.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(pen.words());
        }
        lines.push(pen.words().role(Role::Title, place(context)));
        lines.extend(section);
    }
    if lines.is_empty() {
        lines.push(pen.words().dim(format!("no key for \"{query}\"")));
    }
    let mut sheet = Sheet::new(pen, "Keys");
    sheet.width = 66;
    let room = usize::from(area.height.saturating_sub(6)).max(1);
    let top = scroll.min(lines.len().saturating_sub(room));
    let end = (top + room).min(lines.len());
    if lines.len() > room {
        sheet.facts = pen
            .words()
            .dim(format!("{} to {} of {}", top + 1, end, lines.len()));
    }
    sheet.body = lines.into_iter().skip(top).take(room).collect();
    sheet.key(pen, Context::Help, Action::MoveDown, "down");
    sheet.key(pen, Context::Help, Action::Search, "search");
    sheet.key(pen, Context::Help, Action::Back, "close");
    sheet.draw(pen, area);
}

/// The place in which help was asked for comes first, then what holds everywhere, then the others.
fn order(model: &Model) -> Vec<Context> {
    let here = match model.focus {
        Pane::Tasks => Context::Tasks,
        Pane::Gpus => Context::Gpus,
        Pane::Bench => Context::Benchmark,
        Pane::Config => Context::Config,
    };
    let mut order = vec![here, Context::Global];
    order.extend(
        Context::ALL
            .iter()
            .copied()
            .filter(|c| *c != here && *c != Context::Global),
    );
    order
}

fn place(context: Context) -> &'static str {
    match context {
        Context::Global => "Everywhere",
        Context::Tasks => "Tasks",
        Context::Gpus => "GPUs",
        Context::Benchmark => "Benchmark",
        Context::Config => "Config",
        Context::Question => "The question",
        Context::Confirm => "Yes or no",
        Context::Recovery => "An unfinished restart",
        Context::Cards => "Occupied cards",
        Context::Text => "In a text",
        Context::Log => "The log",
        Context::Help => "Help",
        Context::List => "In a list",
    }
}

fn section<'t>(pen: &Pen<'t>, context: Context, query: &str) -> Vec<Words<'t>> {
    let query = query.trim().to_lowercase();
    pen.keymap
        .entries(context)
        .into_iter()
        .filter_map(|entry| {
            let keys: Vec<String> = entry.keys.iter().map(ToString::to_string).collect();
            let keys = keys.join("  ");
            let words = entry.action.words();
            let found = query.is_empty()
                || words.to_lowercase().contains(&query)
                || entry.action.name().contains(&query)
                || keys.to_lowercase().contains(&query);
            found.then(|| {
                pen.words()
                    .gap(2)
                    .role(Role::Key, keys)
                    .padded_to(20)
                    .gap(1)
                    .text(words)
            })
        })
        .collect()
}
