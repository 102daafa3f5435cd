//! Text that is being edited: one line, or many.

use super::super::pen::{Pen, cells, first_columns, from_column, row};
use super::super::words::{safe, width};
use crate::app::config::Edit;
use crate::theme::Role;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthChar;

/// Draws a one-line field into the first row of `area` and keeps its cursor in sight.
pub fn field(pen: &mut Pen<'_>, area: Rect, edit: &Edit) {
    let area = row(area, 0);
    if area.is_empty() {
        return;
    }
    let style = pen.style(Role::Input);
    for x in area.x..area.right() {
        pen.sign(x, area.y, " ", style);
    }
    let line = edit.text.split('\n').next().unwrap_or_default();
    text_line(pen, area, line, Some(edit.cursor.1), style);
}

/// Draws many lines with their numbers into `area` and keeps the cursor in sight. `wrong`: the line with a fault, from 1.
pub fn text_area(pen: &mut Pen<'_>, area: Rect, edit: &Edit, wrong: Option<usize>) {
    let lines: Vec<&str> = edit.text.split('\n').collect();
    let height = usize::from(area.height);
    let top = (edit.cursor.0 + 1).saturating_sub(height);
    let gutter = cells(lines.len().to_string().len()) + 1;
    let style = pen.style(Role::Text);
    for (y, (number, line)) in (0u16..).zip(lines.iter().enumerate().skip(top).take(height)) {
        let place = row(area, y);
        let role = if wrong == Some(number + 1) {
            Role::Bad
        } else {
            Role::Dim
        };
        let label = pen.words().role(role, (number + 1).to_string());
        pen.put_right(first_columns(place, gutter - 1), label);
        let cursor = (number == edit.cursor.0).then_some(edit.cursor.1);
        text_line(pen, from_column(place, gutter), line, cursor, style);
    }
}

/// One line of text, moved so far to the left that its cursor is in sight.
fn text_line(
    pen: &mut Pen<'_>,
    area: Rect,
    line: &str,
    cursor: Option<usize>,
    style: ratatui::style::Style,
) {
    let room = usize::from(area.width);
    let before: String = line.chars().take(cursor.unwrap_or(0)).collect();
    let at = width(&safe(before));
    let mut skip = (at + 1).saturating_sub(room);
    let shown: String = safe(line.to_string())
        .chars()
        .skip_while(|c| {
            let hidden = skip > 0;
            skip = skip.saturating_sub(c.width().unwrap_or(0));
            hidden
        })
        .collect();
    let moved = width(&safe(line.to_string())) - width(&shown);
    let words = pen.words().styled(style, shown);
    pen.put(area, words);
    if cursor.is_some() {
        let x = area.x + cells(at.saturating_sub(moved));
        if x < area.right()
            && let Some(cell) = pen.buf.cell_mut((x, area.y))
        {
            cell.modifier.toggle(ratatui::style::Modifier::REVERSED);
        }
    }
}
