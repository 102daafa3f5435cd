//! Lists of lines: the server's log, where a number comes from, a diff.

use super::super::pen::{Pen, first_rows, from_row, last_rows, row};
use super::super::widgets::frame::frame;
use super::super::words::{Words, safe};
use super::restart::diff_line;
use super::sheet::Sheet;
use super::text_width;
use crate::app::dialog::DiffLine;
use crate::app::model::Model;
use crate::keymap::{Action, Context};
use crate::theme::Role;
use ratatui::layout::Rect;

/// The log over the whole body, its end at `back` lines above the newest.
pub fn log(pen: &mut Pen<'_>, area: Rect, model: &Model, back: usize) {
    pen.clear(area);
    let title = pen.words().role(Role::Title, "Server log");
    let source = model.rig.service.as_ref().and_then(|s| s.log.clone());
    let mut facts = pen.words();
    if let Some(words) = &model.search {
        facts = facts.dim("search ").role(Role::Match, words.clone()).gap(2);
    }
    if back > 0 {
        facts = facts.role(Role::Warn, format!("{back} lines below")).gap(2);
    }
    facts = facts.dim(source.unwrap_or_default());
    let inner = frame(pen, area, true, title, facts);
    if model.log.is_empty() {
        let words = pen
            .words()
            .dim("No line yet. vramp reads the log of a server that it started.");
        pen.put(inner, words);
        return;
    }
    let end = model.log.len().saturating_sub(back);
    let start = end.saturating_sub(usize::from(inner.height));
    for (y, line) in (0u16..).zip(model.log.iter().take(end).skip(start)) {
        let words = found(pen, line, model.search.as_deref());
        pen.put(row(inner, y), words);
    }
}

/// A line with what was searched for marked in it.
fn found<'t>(pen: &Pen<'t>, line: &str, search: Option<&str>) -> Words<'t> {
    let line = safe(line.to_string());
    let needle = search.unwrap_or_default().to_lowercase();
    let lower = line.to_lowercase();
    let mut words = pen.words();
    // Lower case may have another length in bytes; such a line is shown without marks.
    if needle.is_empty() || lower.len() != line.len() {
        return words.text(line);
    }
    let mut at = 0;
    while let Some(next) = lower.get(at..).and_then(|rest| rest.find(&needle)) {
        let (from, to) = (at + next, at + next + needle.len());
        words = words
            .text(line.get(at..from).unwrap_or_default())
            .role(Role::Match, line.get(from..to).unwrap_or_default());
        at = to;
    }
    words.text(line.get(at..).unwrap_or_default())
}

/// Where a number comes from.
pub fn origin(pen: &mut Pen<'_>, area: Rect, lines: &[String]) {
    let width = text_width(area);
    let mut sheet = Sheet::new(pen, "Where this comes from");
    for (i, line) in lines.iter().enumerate() {
        let role = if i == 0 { Role::Strong } else { Role::Text };
        sheet.text(pen, role, "", line, width);
    }
    sheet.key(pen, Context::Help, Action::Copy, "copy");
    sheet.key(pen, Context::Help, Action::Back, "close");
    sheet.draw(pen, area);
}

/// The launch as it is against as edited.
pub fn diff(pen: &mut Pen<'_>, area: Rect, lines: &[DiffLine], scroll: usize) {
    pen.clear(area);
    let title = pen.words().role(Role::Title, "What would change");
    let count = lines
        .iter()
        .filter(|line| !matches!(line, DiffLine::Same(_)))
        .count();
    let facts = pen.words().dim(format!("{count} lines differ"));
    let inner = frame(pen, area, true, title, facts);
    let shown = first_rows(inner, inner.height.saturating_sub(2));
    let top = scroll.min(lines.len().saturating_sub(1));
    for (y, line) in (0..shown.height).zip(lines.iter().skip(top)) {
        let words = diff_line(pen, line);
        pen.put(row(from_row(shown, y), 0), words);
    }
    let close = pen.key(Context::Help, Action::Back, "close");
    pen.put(last_rows(inner, 1), close);
}
