//! The screen: reads the model, writes cells, changes nothing.

mod dialogs;
mod foot;
mod header;
mod layout;
mod panes;
mod pen;
pub mod text;
mod view;
mod widgets;
mod words;

pub use view::{Hit, ViewState};

use crate::app::model::Model;
use crate::keymap::Keymap;
use crate::theme::Theme;
use layout::{LEAST, Layout, layout};
use pen::{Pen, row};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Color;

/// Draws the whole screen.
pub fn draw(
    model: &Model,
    view: &mut ViewState,
    theme: &Theme,
    keymap: &Keymap,
    frame: &mut Frame<'_>,
) {
    let area = frame.area();
    let mut pen = Pen {
        buf: frame.buffer_mut(),
        theme,
        keymap,
    };
    // An empty frame is in the terminal's own colours.
    let own = |colour: Option<Color>| colour.is_none_or(|colour| colour == Color::Reset);
    let ground = theme.ground();
    if !(own(ground.fg) && own(ground.bg) && ground.add_modifier.is_empty()) {
        pen.tint(area, ground);
    }
    view.begin();
    match layout(area, model.focus, model.zoomed) {
        Layout::Small(area) => small(&mut pen, area),
        Layout::Full {
            header,
            panes,
            body,
            message,
            footer,
        } => {
            header::draw(&mut pen, header, model);
            if model.profile.is_none() {
                panes::first_run::draw(&mut pen, body, model);
            } else {
                for (pane, area, open) in panes {
                    view.panes.push((pane, area));
                    panes::draw(&mut pen, pane, area, open, model, view);
                }
            }
            foot::message(&mut pen, message, model);
            if !model.dialogs.is_empty() {
                widgets::frame::shade(&mut pen);
                dialogs::draw(&mut pen, body, model);
                view.asked = true;
            }
            foot::footer(&mut pen, footer, model);
        }
    }
}

/// The notice of a screen that is too small. A question is not asked where it cannot be read.
fn small(pen: &mut Pen<'_>, area: Rect) {
    let words = pen.words().strong(format!(
        "vramp needs {} x {}, this is {} x {}",
        LEAST.0, LEAST.1, area.width, area.height
    ));
    pen.put(row(area, area.height / 2), words);
}
