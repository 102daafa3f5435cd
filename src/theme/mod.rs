//! Themes: roles and their looks, colour depth, glyph sets.

mod depth;
mod glyphs;
mod read;
mod role;

pub use depth::Depth;
pub use glyphs::{Borders, GlyphSet, Glyphs};
pub use read::ThemeError;
pub use role::Role;

use ratatui::style::{Color, Modifier, Style};
use std::collections::BTreeMap;

/// The shipped themes: name and text.
pub const SHIPPED: &[(&str, &str)] = &[
    (
        "default-dark",
        include_str!("../../themes/default-dark.toml"),
    ),
    (
        "default-light",
        include_str!("../../themes/default-light.toml"),
    ),
    (
        "high-contrast",
        include_str!("../../themes/high-contrast.toml"),
    ),
    ("mono", include_str!("../../themes/mono.toml")),
    (
        "colour-blind",
        include_str!("../../themes/colour-blind.toml"),
    ),
    (
        "catppuccin-mocha",
        include_str!("../../themes/catppuccin-mocha.toml"),
    ),
    ("gruvbox", include_str!("../../themes/gruvbox.toml")),
    ("nord", include_str!("../../themes/nord.toml")),
];

/// The theme when none is chosen.
pub const DEFAULT: &str = "default-dark";

/// How the screen looks, reduced to what the terminal can show.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    pub name: String,
    pub depth: Depth,
    pub glyphs: Glyphs,
    ground: Style,
    roles: BTreeMap<Role, Style>,
    cards: Vec<Style>,
}

impl Theme {
    /// Builds a theme. `user` gives the text of the operator's own theme of a name, which goes before a shipped one.
    ///
    /// # Errors
    /// An unknown theme, a file that is wrong (with line and column), themes that inherit from each other in a ring.
    pub fn load(
        name: &str,
        user: &dyn Fn(&str) -> Option<String>,
        depth: Depth,
        set: GlyphSet,
    ) -> Result<Self, ThemeError> {
        let looks = read::resolve(name, user)?;
        let text = looks.roles.get(&Role::Text).copied().unwrap_or_default();
        let roles = Role::ALL
            .iter()
            .map(|role| {
                let mut style = looks.roles.get(role).copied().unwrap_or_default();
                if !role.is_ground() {
                    // What is written over something else must not take over its colour.
                    style.fg = style.fg.or(text.fg).or(Some(Color::Reset));
                }
                if *role == Role::Text {
                    // Its ground is the screen's; text on another ground leaves that.
                    style.bg = None;
                }
                (*role, reduce(style, depth, role.needs_ground()))
            })
            .collect();
        let cards = looks
            .cards
            .iter()
            .map(|color| reduce(Style::new().fg(*color), depth, false))
            .collect();
        Ok(Theme {
            name: name.to_string(),
            depth,
            glyphs: Glyphs::of(set),
            ground: reduce(text, depth, false),
            roles,
            cards,
        })
    }

    /// The look of an empty screen.
    pub fn ground(&self) -> Style {
        self.ground
    }

    /// The look of a role.
    pub fn style(&self, role: Role) -> Style {
        self.roles.get(&role).copied().unwrap_or_default()
    }

    /// The hue of a card by its index, the same everywhere. With more cards than hues they repeat.
    pub fn card(&self, index: u32) -> Style {
        let count = self.cards.len().max(1);
        self.cards
            .get(index as usize % count)
            .copied()
            .unwrap_or_default()
    }
}

/// What remains of a look at a depth. A ground that 16 colours cannot show is dropped; a role told by it is reversed.
fn reduce(style: Style, depth: Depth, needs_ground: bool) -> Style {
    let mut out = style;
    out.fg = style.fg.map(|color| depth.nearest(color));
    let ground = style.bg.filter(|color| *color != Color::Reset);
    let shown = ground
        .map(|color| depth.nearest(color))
        .filter(|color| !lost(*color, ground));
    out.bg = shown;
    if ground.is_some() && shown.is_none() && needs_ground {
        // The text's own colour may have been chosen for the lost ground.
        out.fg = None;
        out = out.add_modifier(Modifier::REVERSED);
    }
    out
}

/// A grey ground that became black, white or nothing says no more what it said.
fn lost(shown: Color, wanted: Option<Color>) -> bool {
    shown == Color::Reset
        || (Some(shown) != wanted && matches!(shown, Color::Black | Color::White | Color::Gray))
}

#[cfg(test)]
mod tests;
