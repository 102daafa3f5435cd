//! A grid of dots under a chart: braille, 2 x 4 dots a cell, or one sign a cell where there is no braille.

use super::super::pen::Pen;
use super::axis::dot_row;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Dots a cell, across and down.
pub const ACROSS: usize = 2;
pub const DOWN: usize = 4;

/// Bits of a braille cell by row and column (Unicode, block "Braille Patterns").
const BITS: [[u8; ACROSS]; DOWN] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// Series that a cell can tell apart.
const SERIES: u8 = 32;
/// Cells in a row that a shared line shows in one hue.
const STRETCH: usize = 3;

/// Dots of several series. Where lines run in the same cells, stretches of each hue follow one another, so that none is hidden.
#[derive(Debug)]
pub struct Dots {
    columns: usize,
    rows: usize,
    /// Dots, and a bit for each series that has some.
    cells: Vec<(u8, u32)>,
}

impl Dots {
    /// An empty grid over `columns` x `rows` cells.
    pub fn new(columns: usize, rows: usize) -> Self {
        Dots {
            columns,
            rows,
            cells: vec![(0, 0); columns * rows],
        }
    }

    /// Dots across and down.
    pub fn size(&self) -> (usize, usize) {
        (self.columns * ACROSS, self.rows * DOWN)
    }

    /// Sets one dot of a series, counted from the top left. Outside nothing happens.
    pub fn set(&mut self, x: usize, y: usize, series: u8) {
        let (column, row) = (x / ACROSS, y / DOWN);
        if column >= self.columns || row >= self.rows {
            return;
        }
        let bit = BITS
            .get(y % DOWN)
            .and_then(|bits| bits.get(x % ACROSS))
            .copied()
            .unwrap_or(0);
        if let Some((bits, owners)) = self.cells.get_mut(row * self.columns + column) {
            *bits |= bit;
            *owners |= 1 << (series % SERIES);
        }
    }

    /// Sets the dots of one column from `top` to `bottom`, both included.
    pub fn column(&mut self, x: usize, top: usize, bottom: usize, series: u8) {
        for y in top.min(bottom)..=top.max(bottom).min(self.rows * DOWN) {
            self.set(x, y, series);
        }
    }

    /// Sets the dots of a straight line.
    pub fn line(&mut self, from: (usize, usize), to: (usize, usize), series: u8) {
        let (dx, dy) = (to.0.abs_diff(from.0), to.1.abs_diff(from.1));
        let steps = dx.max(dy).max(1);
        let between = |a: usize, b: usize, i: usize| {
            let (a, b) = (a as f64, b as f64);
            (a + (b - a) * i as f64 / steps as f64).round() as usize
        };
        for i in 0..=steps {
            self.set(between(from.0, to.0, i), between(from.1, to.1, i), series);
        }
    }

    /// Sets the line of a series over a scale from 0 to `high`: the least and the most in each column of dots, joined with the column
    /// before, so that a step is a line. What is unknown is a gap.
    pub fn spans(&mut self, spans: &[Option<(f64, f64)>], high: f64, series: u8) {
        let (across, down) = self.size();
        let mut before: Option<usize> = None;
        for (x, span) in spans.iter().take(across).enumerate() {
            let Some((low, most)) = span else {
                before = None;
                continue;
            };
            let (mut top, mut bottom) = (
                dot_row(*most, 0.0, high, down),
                dot_row(*low, 0.0, high, down),
            );
            let level = bottom;
            if let Some(last) = before {
                if last < top {
                    top = last + 1;
                } else if last > bottom {
                    bottom = last - 1;
                }
            }
            self.column(x, top, bottom, series);
            before = Some(level);
        }
    }

    /// Draws the grid at the top left of `area`. `look` gives each series its hue and, where there is no braille, its sign.
    pub fn draw(&self, pen: &mut Pen<'_>, area: Rect, look: &dyn Fn(u8) -> (Style, char)) {
        let braille = pen.glyphs().braille;
        for (at, (bits, owners)) in self.cells.iter().enumerate() {
            if *bits == 0 {
                continue;
            }
            let (x, y) = (at % self.columns, at / self.columns);
            let turn = x / STRETCH % owners.count_ones().max(1) as usize;
            let series = (0..SERIES)
                .filter(|series| owners & (1 << series) != 0)
                .nth(turn)
                .unwrap_or(0);
            let (style, sign) = look(series);
            let sign = if braille {
                char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(sign)
            } else {
                sign
            };
            let (x, y) = (area.x as usize + x, area.y as usize + y);
            if x < area.right() as usize
                && y < area.bottom() as usize
                && let Some(cell) = pen.buf.cell_mut((x as u16, y as u16))
            {
                cell.set_char(sign).set_style(style);
            }
        }
    }
}
