//! Tables in Markdown, with columns that line up in the plain text as well.

use unicode_width::UnicodeWidthStr;

/// What stands where nothing is known.
pub(super) const NONE: &str = "–";

/// A table whose columns are left (`<`) or right (`>`) aligned, as the first character of their head says.
#[derive(Debug)]
pub(super) struct Table {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(heads: &[&str]) -> Self {
        Table {
            right: heads.iter().map(|head| head.starts_with('>')).collect(),
            rows: vec![
                heads
                    .iter()
                    .map(|head| head.trim_start_matches(['<', '>']).to_string())
                    .collect(),
            ],
        }
    }

    /// Cells hold Markdown: text from outside is escaped before.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    pub(super) fn write(&self, out: &mut String) {
        let widths: Vec<usize> = (0..self.right.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.width()).max().unwrap_or(0).max(3)
            })
            .collect();
        for (index, row) in self.rows.iter().enumerate() {
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                let pad = " ".repeat(width.saturating_sub(cell.width()));
                let padded = if *right {
                    pad + cell
                } else {
                    cell.clone() + &pad
                };
                out.push_str(&format!("| {padded} "));
            }
            out.push_str("|\n");
            if index == 0 {
                for (width, right) in widths.iter().zip(&self.right) {
                    let line = "-".repeat(width - 1);
                    out.push_str(&if *right {
                        format!("| {line}: ")
                    } else {
                        format!("| :{line} ")
                    });
                }
                out.push_str("|\n");
            }
        }
    }
}

/// A figure, or the sign for none.
pub(super) fn or_none<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_string(), show)
}

/// A share with its sign: `-12 %`.
pub(super) fn change(share: f64) -> String {
    let percent = (share * 100.0).round();
    if percent == 0.0 {
        "0 %".to_string()
    } else {
        format!("{percent:+.0} %")
    }
}
