//! Tables with fixed widths, so that a changing digit never shifts a column.

use super::super::pen::cells;
use super::super::words::{Words, cut, right, safe, width};
use crate::theme::Role;

/// A column: its title, its cells, and whether figures stand at its right.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub title: &'static str,
    pub width: u16,
    pub right: bool,
}

impl Column {
    pub const fn figures(title: &'static str, width: u16) -> Self {
        Column {
            title,
            width,
            right: true,
        }
    }

    pub const fn text(title: &'static str, width: u16) -> Self {
        Column {
            title,
            width,
            right: false,
        }
    }
}

/// Blanks between two columns.
const GAP: u16 = 2;

/// Cells that the columns take together.
pub fn total(columns: &[Column]) -> u16 {
    let gaps = GAP * cells(columns.len().saturating_sub(1));
    columns.iter().map(|column| column.width).sum::<u16>() + gaps
}

/// The titles as a line.
pub fn titles<'t>(words: Words<'t>, columns: &[Column]) -> Words<'t> {
    let row: Vec<_> = columns
        .iter()
        .map(|column| (column.title.to_string(), Role::Dim))
        .collect();
    line(words, columns, row)
}

/// One row of cells as a line, added to `words`. Cells that are missing at the end stay empty.
pub fn line<'t>(words: Words<'t>, columns: &[Column], cells: Vec<(String, Role)>) -> Words<'t> {
    let ellipsis = words.ellipsis();
    let mut words = words;
    for (i, (column, (text, role))) in columns.iter().zip(cells).enumerate() {
        if i > 0 {
            words = words.gap(usize::from(GAP));
        }
        let room = usize::from(column.width);
        let text = safe(text);
        words = if column.right {
            words.role(role, right(&text, room, ellipsis))
        } else {
            let text = cut(&text, room, ellipsis);
            let blanks = room.saturating_sub(width(&text));
            words.role(role, text).gap(blanks)
        };
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{DEFAULT, Depth, GlyphSet, Theme};

    #[test]
    fn columns_keep_their_widths_whatever_stands_in_them() {
        let theme = Theme::load(DEFAULT, &|_| None, Depth::None, GlyphSet::Unicode).unwrap();
        let columns = [Column::figures("input", 7), Column::text("state", 5)];
        for (figure, word) in [("1", "ok"), ("123,456,789", "模型名称"), ("", "")] {
            let cells = vec![
                (figure.to_string(), Role::Text),
                (word.to_string(), Role::Text),
            ];
            let line = line(Words::new(&theme), &columns, cells);
            assert_eq!(line.width(), 14, "{figure:?} {word:?}");
        }
        assert_eq!(total(&columns), 14);
    }
}
