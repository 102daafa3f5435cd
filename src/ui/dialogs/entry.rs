//! A text field with what it asks for, and what it would make of the text.

use super::super::pen::{Pen, row};
use super::super::widgets::field::field;
use super::sheet::Sheet;
use super::text_width;
use crate::app::dialog::{Entry, EntryKind};
use crate::keymap::{Action, Context};
use crate::theme::Role;
use crate::units::{parse_context, thousands};
use ratatui::layout::Rect;

pub fn draw(pen: &mut Pen<'_>, area: Rect, entry: &Entry) {
    let (title, question, take) = match entry.kind {
        EntryKind::Context => (
            "Context length",
            "Tokens for one request, input and output together:",
            "take",
        ),
        EntryKind::AddTask => ("New task", "What is to be done?", "add"),
        EntryKind::EditTask(_) => ("Task", "Its new title:", "take"),
        EntryKind::Search => ("Search", "Words to look for:", "find"),
    };
    let width = text_width(area).min(60);
    let mut sheet = Sheet::new(pen, title);
    sheet.width = 60;
    sheet.text(pen, Role::Strong, "", question, width);
    sheet.space(pen);
    let at = sheet.body.len();
    sheet.line(pen.words());
    sheet.line(pen.words());
    match (&entry.error, &entry.kind) {
        (Some(error), _) => {
            let lead = format!("{} ", pen.glyphs().failed);
            sheet.text(pen, Role::Bad, &lead, error, width);
        }
        (None, EntryKind::Context) => sheet.line(preview(pen, &entry.edit.text)),
        (None, _) => {}
    }
    sheet.key(pen, Context::Text, Action::Submit, take);
    sheet.key(pen, Context::Text, Action::Cancel, "leave");
    let body = sheet.draw(pen, area);
    field(pen, row(body, u16::try_from(at).unwrap_or(0)), &entry.edit);
}

/// The number in full digits, as it would be taken.
fn preview<'t>(pen: &Pen<'t>, text: &str) -> super::super::words::Words<'t> {
    match parse_context(text) {
        Ok(context) => pen
            .words()
            .dim("= ")
            .strong(thousands(context))
            .dim(" tokens a request"),
        Err(_) => pen.words().dim("for example 65536, 64K (65,536) or 1M"),
    }
}
