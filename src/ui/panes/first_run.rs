//! Without a profile: what to do.

use super::super::pen::{Pen, from_row, row};
use super::super::widgets::frame::frame;
use super::super::words::wrap;
use crate::app::model::Model;
use crate::theme::Role;
use ratatui::layout::Rect;

/// Commands and what they do.
const WAYS: [(&str, &str); 3] = [
    (
        "vramp demo",
        "the whole walk on a simulated rig: no GPU, no server, nothing to set up",
    ),
    (
        "vramp attach URL",
        "look at and measure a server that runs; it is never restarted",
    ),
    (
        "vramp init",
        "write a commented profile to start from, so that vramp can restart your server",
    ),
];

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let title = pen.words().role(Role::Title, "Welcome");
    let nothing = pen.words();
    let inner = frame(pen, area, true, title, nothing);
    let width = usize::from(inner.width).min(100);
    let mut lines = vec![
        pen.words()
            .strong("vramp measures an inference server and raises its context length."),
        pen.words(),
    ];
    let why = model
        .first_run
        .as_deref()
        .unwrap_or("There is no profile yet.");
    lines.extend(
        wrap(why, width)
            .into_iter()
            .map(|line| pen.words().text(line)),
    );
    lines.push(pen.words());
    lines.push(pen.words().text("Quit, then choose one of these:"));
    lines.push(pen.words());
    for (command, what) in WAYS {
        let parts = wrap(what, width.saturating_sub(20).max(20));
        for (i, part) in parts.into_iter().enumerate() {
            let head = if i == 0 { command } else { "" };
            lines.push(
                pen.words()
                    .gap(2)
                    .role(Role::Accent, head)
                    .padded_to(20)
                    .text(part),
            );
        }
    }
    for (y, words) in (0..inner.height).zip(lines) {
        pen.put(row(from_row(inner, y), 0), words);
    }
}
