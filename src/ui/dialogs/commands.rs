//! Every command by name, with a filter to type and the key that would have done it.

use super::super::pen::{Pen, row};
use super::super::widgets::field::field;
use super::sheet::Sheet;
use crate::app::config::Edit;
use crate::app::update::matching;
use crate::keymap::{Action, Context};
use crate::theme::Role;
use ratatui::layout::Rect;

pub fn draw(pen: &mut Pen<'_>, area: Rect, query: &Edit, selected: usize) {
    let found = matching(&query.text);
    // The list keeps its size while the filter makes it shorter: nothing jumps.
    let room = usize::from(area.height.saturating_sub(9)).clamp(1, 24);
    let selected = selected.min(found.len().saturating_sub(1));
    let top = (selected + 1).saturating_sub(room);
    let mut sheet = Sheet::new(pen, "Commands");
    sheet.width = 78;
    sheet.facts = pen
        .words()
        .dim(format!("{} of {}", found.len(), matching("").len()));
    sheet.line(pen.words());
    sheet.line(pen.words());
    for action in found.iter().skip(top).take(room) {
        let key = key(pen, *action);
        sheet.line(
            pen.words()
                .gap(1)
                .role(Role::Accent, action.name())
                .padded_to(20)
                .role(Role::Key, key)
                .padded_to(31)
                .text(action.words()),
        );
    }
    if found.is_empty() {
        sheet.line(pen.words().gap(1).dim("no command has these words"));
    }
    while sheet.body.len() < room + 2 {
        sheet.line(pen.words());
    }
    sheet.selected = (!found.is_empty()).then_some(selected - top + 2);
    sheet.key(pen, Context::List, Action::Act, "run");
    sheet.key(pen, Context::List, Action::Back, "close");
    let body = sheet.draw(pen, area);
    field(pen, row(body, 0), query);
}

/// The key of an action in the place where it has one.
fn key(pen: &Pen<'_>, action: Action) -> String {
    Context::ALL
        .iter()
        .find_map(|context| pen.keymap.key_for(*context, action))
        .unwrap_or_default()
}
