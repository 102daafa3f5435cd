//! The last two lines: the newest thing to say, and the keys that do something now.

use super::pen::{Pen, first_columns};
use crate::app::keys::{context, possible};
use crate::app::model::{Model, Tone};
use crate::clock::hms;
use crate::keymap::Action;
use crate::theme::Role;
use ratatui::layout::Rect;

/// Draws the newest message; what the store lost goes before it, a trial's fate comes after all.
pub fn message(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let line = if let Some(fault) = &model.store_fault {
        pen.words().role(
            Role::Bad,
            format!("{} not stored: {fault}", pen.glyphs().warn),
        )
    } else if let Some(message) = &model.message {
        let role = match message.tone {
            Tone::Plain => Role::Text,
            Tone::Good => Role::Good,
            Tone::Warn => Role::Warn,
            Tone::Bad => Role::Bad,
        };
        let sign = match message.tone {
            Tone::Plain | Tone::Good => String::new(),
            Tone::Warn => format!("{} ", pen.glyphs().warn),
            Tone::Bad => format!("{} ", pen.glyphs().failed),
        };
        pen.words()
            .dim(hms(message.at.unix_ms))
            .gap(1)
            .role(role, format!("{sign}{}", message.text))
    } else if let Some(service) = model.rig.service.as_ref().filter(|_| model.on_trial()) {
        pen.words().dim(service.trial_note.clone())
    } else {
        return;
    };
    pen.put(indented(area), line);
}

/// Draws the keys that do something now, as many as have room; help and quit keep their place at the end.
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
    let end_wide: usize = end.iter().map(|(_, words)| words.width() + GAP).sum();
    let room = usize::from(area.width).saturating_sub(end_wide.saturating_sub(GAP));
    let mut line = pen.words();
    for (_, words) in start {
        if line.width() + words.width() + GAP <= room {
            line = line.and(words).gap(GAP);
        }
    }
    let line = line.join(end.into_iter().map(|(_, words)| words), GAP);
    pen.put(area, line);
}

/// Blanks between two keys.
const GAP: usize = 3;

fn indented(area: Rect) -> Rect {
    Rect {
        x: area.x + 1,
        ..first_columns(area, area.width.saturating_sub(2))
    }
}
