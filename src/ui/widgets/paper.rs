//! A few cells to draw on in tests.

use crate::keymap::Keymap;
use crate::theme::{DEFAULT, Depth, GlyphSet, Theme};
use crate::ui::pen::Pen;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Cells, with the default theme.
pub struct Paper {
    buf: Buffer,
    theme: Theme,
    keymap: Keymap,
}

impl Paper {
    pub fn new(width: u16, height: u16) -> Self {
        Paper {
            buf: Buffer::empty(Rect::new(0, 0, width, height)),
            theme: Theme::load(DEFAULT, &|_| None, Depth::Ansi256, GlyphSet::Unicode).unwrap(),
            keymap: Keymap::default(),
        }
    }

    /// Draws on empty cells.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Pen<'_>, Rect)) {
        self.buf.reset();
        let area = self.buf.area;
        let mut pen = Pen {
            buf: &mut self.buf,
            theme: &self.theme,
            keymap: &self.keymap,
        };
        draw(&mut pen, area);
    }

    /// One row as text.
    pub fn row(&self, y: u16) -> String {
        let cells = (0..self.buf.area.width).filter_map(|x| self.buf.cell((x, y)));
        cells.map(|cell| cell.symbol()).collect()
    }

    /// All rows as text, without blanks at their ends.
    pub fn text(&self) -> Vec<String> {
        (0..self.buf.area.height)
            .map(|y| self.row(y).trim_end().to_string())
            .collect()
    }
}
