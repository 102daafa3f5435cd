//! The last two lines: the newest thing to say, and the keys that do something now.

use super::pen::{Pen, cells, first_columns};
use super::words::{cut, safe, width, wrap};
use crate::app::keys::{context, possible};
use crate::app::model::{Model, Tone};
use crate::clock::hms;
use crate::keymap::Action;
use crate::theme::Role;
use ratatui::layout::Rect;

/// Rows that a long message may take, upwards from its own.
const ROWS: usize = 4;

/// Draws the newest message; what the store lost goes before it, a trial's fate comes after all. What went wrong is told to its end:
/// a long text takes rows of the panes above until it is put away.
pub fn message(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let g = pen.glyphs();
    let (lead, role, text) = if let Some(fault) = &model.store_fault {
        let text = format!("{} not stored: {fault}", g.warn);
        (String::new(), Role::Bad, text)
    } else if let Some(message) = &model.message {
        let (role, sign) = match message.tone {
            Tone::Plain => (Role::Text, ""),
            Tone::Good => (Role::Good, ""),
            Tone::Warn => (Role::Warn, g.warn),
            Tone::Bad => (Role::Bad, g.failed),
        };
        let text = format!("{sign} {}", message.text);
        let time = hms(message.at.unix_ms) + " ";
        (time, role, text.trim_start().to_string())
    } else if let Some(service) = model.rig.service.as_ref().filter(|_| model.on_trial()) {
        (String::new(), Role::Dim, service.trial_note.clone())
    } else {
        return;
    };
    let area = indented(area);
    let indent = width(&lead);
    let room = usize::from(area.width).saturating_sub(indent);
    let mut lines = match role {
        Role::Bad | Role::Warn => wrap(&safe(text), room),
        _ => vec![text],
    };
    let rest = lines.split_off(lines.len().min(ROWS));
    if let Some(last) = lines.last_mut()
        && !rest.is_empty()
    {
        *last = cut(&format!("{last} {}", rest.join(" ")), room, g.ellipsis);
    }
    let above = cells(lines.len().saturating_sub(1)).min(area.y);
    for (y, line) in (area.y - above..=area.y).zip(lines) {
        let place = Rect { y, ..area };
        pen.clear(Rect {
            x: 0,
            width: pen.buf.area.width,
            ..place
        });
        let head = if y + above == area.y {
            pen.words().dim(lead.clone())
        } else {
            pen.words().gap(indent)
        };
        pen.put(place, head.role(role, line));
    }
}

/// Draws the keys that do something now, as many as have room; help and quit keep their place at the end, and
/// where keys are left out, before the help stands how many.
pub fn footer(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let ground = pen.style(Role::Header);
    pen.clear(area);
    pen.tint(area, ground);
    let place = context(model);
    let area = indented(area);
    let last = |action: &Action| matches!(action, Action::Help | Action::Quit);
    let (end, start): (Vec<_>, Vec<_>) = possible(model)
        .into_iter()
        .map(|(action, words)| (action, pen.key(place, action, &words)))
        .filter(|(_, words)| !words.is_empty())
        .partition(|(action, _)| last(action));
    let wide = usize::from(area.width);
    let total = |gap: usize| -> usize {
        let all = start.iter().chain(&end);
        all.map(|(_, words)| words.width() + gap).sum::<usize>()
    };
    let gap = if total(GAP) > wide + GAP {
        SMALL_GAP
    } else {
        GAP
    };
    let end_wide: usize = end.iter().map(|(_, words)| words.width() + gap).sum();
    let more = if total(gap) > wide + gap { MORE } else { 0 };
    let room = (wide + gap).saturating_sub(end_wide + more);
    let mut line = pen.words();
    let mut left_out = 0;
    for (_, words) in start {
        if line.width() + words.width() + gap <= room {
            line = line.and(words).gap(gap);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        line = line.dim(format!("+{left_out} in")).gap(1);
    }
    let line = line.join(end.into_iter().map(|(_, words)| words), gap);
    pen.put(area, line);
}

/// Blanks between two keys, and where there is little room.
const GAP: usize = 3;
const SMALL_GAP: usize = 2;
/// Cells that say how many keys found no room: `+12 in `, before the key of the help that has them all.
const MORE: usize = 7;

fn indented(area: Rect) -> Rect {
    Rect {
        x: area.x + 1,
        ..first_columns(area, area.width.saturating_sub(2))
    }
}
