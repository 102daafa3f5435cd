//! Borders of panes and dialogs, with a title at the left and live facts at the right.

use super::super::pen::{Pen, cells};
use super::super::words::Words;
use crate::theme::Role;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Draws a border around `area` and gives what is inside, with one column of blanks at each side.
pub fn frame(
    pen: &mut Pen<'_>,
    area: Rect,
    focused: bool,
    title: Words<'_>,
    facts: Words<'_>,
) -> Rect {
    let area = area.intersection(pen.buf.area);
    if area.width < 4 || area.height < 2 {
        return Rect::default();
    }
    let style = pen.style(if focused {
        Role::BorderFocused
    } else {
        Role::Border
    });
    let b = pen.glyphs().borders;
    let (left, top) = (area.x, area.y);
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    for x in left + 1..right {
        pen.sign(x, top, b.horizontal, style);
        pen.sign(x, bottom, b.horizontal, style);
    }
    for y in top + 1..bottom {
        pen.sign(left, y, b.vertical, style);
        pen.sign(right, y, b.vertical, style);
    }
    pen.sign(left, top, b.top_left, style);
    pen.sign(right, top, b.top_right, style);
    pen.sign(left, bottom, b.bottom_left, style);
    pen.sign(right, bottom, b.bottom_right, style);

    let edge = Rect {
        x: left + 2,
        width: area.width - 4,
        height: 1,
        ..area
    };
    let used = pen.put(edge, padded(pen, title));
    // Facts give way to the title.
    let room = edge.width.saturating_sub(used + 1);
    if !facts.is_empty() && cells(facts.width()) + 2 <= room {
        pen.put_right(edge, padded(pen, facts));
    }
    Rect {
        x: left + 2,
        y: top + 1,
        width: area.width - 4,
        height: area.height - 2,
    }
}

fn padded<'t>(pen: &Pen<'t>, words: Words<'_>) -> Words<'t> {
    let mut out = pen.words().gap(1);
    for (text, style) in words.fitted(usize::MAX) {
        out = out.styled(style, text);
    }
    out.gap(1)
}

/// Makes everything on screen recede, for a dialog to lie over it. Quiet grounds stay, so that bars keep their form.
pub fn shade(pen: &mut Pen<'_>) {
    let style = pen.style(Role::Shade);
    let text = pen.theme.ground();
    let quiet = [
        Role::Header,
        Role::Selection,
        Role::BarTrack,
        Role::Reserved,
    ];
    let grounds: Vec<_> = quiet
        .iter()
        .filter_map(|role| pen.style(*role).bg)
        .collect();
    let area = pen.buf.area;
    for position in area.positions() {
        if let Some(cell) = pen.buf.cell_mut(position) {
            let ground = cell.bg;
            cell.set_style(Style::reset())
                .set_style(text)
                .set_style(style);
            if grounds.contains(&ground) {
                cell.bg = ground;
            }
        }
    }
}
