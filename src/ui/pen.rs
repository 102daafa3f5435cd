//! Drawing into the frame's cells, never outside of them.

use super::words::Words;
use crate::keymap::{Action, Context, Keymap};
use crate::theme::{Glyphs, Role, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// The cells of a frame, how things look, and which keys there are.
#[derive(Debug)]
pub struct Pen<'a> {
    pub buf: &'a mut Buffer,
    pub theme: &'a Theme,
    pub keymap: &'a Keymap,
}

impl<'a> Pen<'a> {
    /// An empty line in this theme.
    pub fn words(&self) -> Words<'a> {
        Words::new(self.theme)
    }

    pub fn glyphs(&self) -> &'a Glyphs {
        &self.theme.glyphs
    }

    pub fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// A key and what it does here; nothing if no key does it.
    pub fn key(&self, context: Context, action: Action, words: &str) -> Words<'a> {
        match self.keymap.key_for(context, action) {
            Some(key) => self.words().role(Role::Key, key).gap(1).dim(words),
            None => self.words(),
        }
    }

    /// Writes a line into the first row of `area`, cut to its width. Gives the cells used.
    pub fn put(&mut self, area: Rect, words: Words<'_>) -> u16 {
        let area = area.intersection(self.buf.area);
        if area.is_empty() {
            return 0;
        }
        let mut x = area.x;
        for (text, style) in words.fitted(usize::from(area.width)) {
            let left = area.right().saturating_sub(x);
            if left == 0 {
                break;
            }
            x = if text.is_ascii() {
                self.ascii(x, area.y, &text, left, style)
            } else {
                let most = usize::from(left);
                self.buf.set_stringn(x, area.y, text, most, style).0
            };
        }
        x.saturating_sub(area.x)
    }

    /// The first `most` bytes of a text whose every byte is a cell, with nothing to take apart. Gives the column after it.
    fn ascii(&mut self, x: u16, y: u16, text: &str, most: u16, style: Style) -> u16 {
        let wide = cells(text.len()).min(most);
        let first = self.buf.index_of(x, y);
        let row = self.buf.content.iter_mut().skip(first);
        for (at, cell) in row.take(usize::from(wide)).enumerate() {
            cell.set_symbol(text.get(at..=at).unwrap_or(" "))
                .set_style(style);
        }
        x.saturating_add(wide)
    }

    /// Writes a line to the right end of the first row of `area`. Gives the cells used.
    pub fn put_right(&mut self, area: Rect, words: Words<'_>) -> u16 {
        let wide = u16::try_from(words.width())
            .unwrap_or(u16::MAX)
            .min(area.width);
        let right = Rect {
            x: area.right().saturating_sub(wide),
            width: wide,
            ..area
        };
        self.put(right, words)
    }

    /// Writes one sign.
    pub fn sign(&mut self, x: u16, y: u16, sign: &str, style: Style) {
        if let Some(cell) = self.buf.cell_mut((x, y)) {
            cell.set_symbol(sign).set_style(style);
        }
    }

    /// Gives `area` a look and leaves what is written there.
    pub fn tint(&mut self, area: Rect, style: Style) {
        self.buf.set_style(area.intersection(self.buf.area), style);
    }

    /// Shows that the row `area` is selected: by its ground and by a sign before it. Where the ground is shown reversed, nothing on it
    /// stays dim.
    pub fn select(&mut self, area: Rect) {
        let style = self.style(Role::Selection);
        let whole = Rect {
            x: area.x.saturating_sub(1),
            width: area.width.saturating_add(2),
            ..area
        };
        self.tint(whole, style);
        if style.add_modifier.contains(Modifier::REVERSED) {
            let bright = Style::new()
                .remove_modifier(Modifier::DIM)
                .add_modifier(Modifier::BOLD);
            self.tint(whole, bright);
        }
        let (sign, style) = (self.glyphs().pointer, self.style(Role::Accent));
        if let Some(cell) = self.buf.cell_mut((whole.x, whole.y)) {
            cell.set_symbol(sign);
            if let Some(colour) = style.fg {
                cell.set_fg(colour);
            }
        }
    }

    /// Empties `area`.
    pub fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buf.area);
        let ground = self.theme.ground();
        for position in area.positions() {
            if let Some(cell) = self.buf.cell_mut(position) {
                cell.reset();
                cell.set_style(ground);
            }
        }
    }
}

/// The row `index` of `area`; empty where there is none.
pub fn row(area: Rect, index: u16) -> Rect {
    if index >= area.height {
        return Rect::default();
    }
    Rect {
        y: area.y.saturating_add(index),
        height: 1,
        ..area
    }
}

/// `area` without its first `cells` columns.
pub fn from_column(area: Rect, cells: u16) -> Rect {
    let cells = cells.min(area.width);
    Rect {
        x: area.x.saturating_add(cells),
        width: area.width - cells,
        ..area
    }
}

/// `area` without its first `rows`.
pub fn from_row(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect {
        y: area.y.saturating_add(rows),
        height: area.height - rows,
        ..area
    }
}

/// The first `rows` of `area`.
pub fn first_rows(area: Rect, rows: u16) -> Rect {
    Rect {
        height: area.height.min(rows),
        ..area
    }
}

/// The last `rows` of `area`.
pub fn last_rows(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect {
        y: area.bottom().saturating_sub(rows),
        height: rows,
        ..area
    }
}

/// The first `cells` columns of `area`.
pub fn first_columns(area: Rect, cells: u16) -> Rect {
    Rect {
        width: area.width.min(cells),
        ..area
    }
}

/// A `usize` as cells.
pub fn cells(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}
