//! Text by cells: measured, cut, wrapped, and made safe for the terminal.

use crate::theme::{GlyphSet, Role, Theme};
use crate::units::clean;
use ratatui::style::Style;
use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Gaps are cut from it.
const BLANKS: &str = "                                                                ";

/// Cells that `text` takes, which is [`safe`].
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.width()
    }
}

/// `text` without anything that a terminal would obey.
pub fn safe(text: String) -> String {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        text
    } else {
        clean(&text)
    }
}

/// `text` in ASCII, in as many cells: signs of ours by their twins, the rest by question marks.
fn ascii(text: String) -> String {
    if text.is_ascii() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => out.push(c),
            '…' | '±' => out.push('~'),
            '→' | '›' => out.push('>'),
            '‹' => out.push('<'),
            '×' => out.push('x'),
            '·' | '–' | '—' => out.push('-'),
            c => out.extend(std::iter::repeat_n('?', c.width().unwrap_or(0))),
        }
    }
    out
}

/// The first cells of `text`, at most `cells`, with `ellipsis` as the last one where something was cut.
pub fn cut(text: &str, cells: usize, ellipsis: &str) -> String {
    if width(text) <= cells {
        return text.to_string();
    }
    let room = cells.saturating_sub(ellipsis.width());
    let mut out = take(text, room);
    if cells >= ellipsis.width() {
        out.push_str(ellipsis);
    }
    out
}

fn take(text: &str, cells: usize) -> String {
    let mut used = 0;
    text.chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= cells
        })
        .collect()
}

/// `text` with blanks before it up to `cells`; longer text is cut.
pub fn right(text: &str, cells: usize, ellipsis: &str) -> String {
    let text = cut(text, cells, ellipsis);
    let blanks = cells.saturating_sub(width(&text));
    " ".repeat(blanks) + &text
}

/// `text` in lines of at most `cells`, broken at blanks where possible.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if cells == 0 {
        return lines;
    }
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word.to_string();
        if !line.is_empty() {
            if line.width() + 1 + word.width() <= cells {
                line.push(' ');
                line.push_str(&word);
                continue;
            }
            lines.push(std::mem::take(&mut line));
        }
        while word.width() > cells {
            let head = take(&word, cells);
            if head.is_empty() {
                return lines;
            }
            word = word.get(head.len()..).unwrap_or_default().to_string();
            lines.push(head);
        }
        line = word;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A line in the making: pieces of text, each with its look.
#[derive(Debug, Clone)]
pub struct Words<'t> {
    theme: &'t Theme,
    pieces: Vec<(Cow<'static, str>, Style)>,
}

impl<'t> Words<'t> {
    pub fn new(theme: &'t Theme) -> Self {
        Words {
            theme,
            pieces: Vec::new(),
        }
    }

    /// What stands for cut text.
    pub fn ellipsis(&self) -> &'static str {
        self.theme.glyphs.ellipsis
    }

    /// Adds text in a look.
    pub fn styled(mut self, style: Style, text: impl Into<String>) -> Self {
        let text = safe(text.into());
        let text = match self.theme.glyphs.set {
            GlyphSet::Unicode => text,
            GlyphSet::Ascii => ascii(text),
        };
        self.pieces.push((text.into(), style));
        self
    }

    /// Adds text in the look of a role.
    pub fn role(self, role: Role, text: impl Into<String>) -> Self {
        let style = self.theme.style(role);
        self.styled(style, text)
    }

    pub fn text(self, text: impl Into<String>) -> Self {
        self.role(Role::Text, text)
    }

    pub fn dim(self, text: impl Into<String>) -> Self {
        self.role(Role::Dim, text)
    }

    pub fn strong(self, text: impl Into<String>) -> Self {
        self.role(Role::Strong, text)
    }

    /// Adds blanks.
    pub fn gap(mut self, cells: usize) -> Self {
        let blanks = match BLANKS.get(..cells) {
            Some(blanks) => blanks.into(),
            None => " ".repeat(cells).into(),
        };
        self.pieces.push((blanks, Style::new()));
        self
    }

    /// Adds blanks up to the column `cells` of the line.
    pub fn padded_to(self, cells: usize) -> Self {
        let missing = cells.saturating_sub(self.width());
        self.gap(missing)
    }

    /// Adds another line.
    pub fn and(mut self, other: Words<'t>) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    /// Adds lines with blanks between them.
    pub fn join(self, parts: impl IntoIterator<Item = Words<'t>>, blanks: usize) -> Self {
        let mut out = self;
        for (i, part) in parts.into_iter().enumerate() {
            out = if i > 0 { out.gap(blanks) } else { out }.and(part);
        }
        out
    }

    /// Cells that the line takes.
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(text, _)| width(text)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The pieces of at most `cells`, the last one cut with an ellipsis where the line is longer.
    pub fn fitted(mut self, cells: usize) -> Vec<(Cow<'static, str>, Style)> {
        // Blanks at the end are nothing that could be missed.
        while self.width() > cells
            && self
                .pieces
                .pop_if(|(text, _)| text.bytes().all(|b| b == b' '))
                .is_some()
        {}
        if self.width() <= cells {
            return self.pieces;
        }
        let ellipsis = self.theme.glyphs.ellipsis;
        let mut left = cells;
        let mut out = Vec::with_capacity(self.pieces.len());
        for (text, style) in self.pieces {
            let wide = width(&text);
            // One cell stays free for the ellipsis: the line is longer, so something will be cut.
            if wide < left {
                left -= wide;
                out.push((text, style));
            } else {
                let mut head = take(&text, left.saturating_sub(ellipsis.width()));
                if left >= ellipsis.width() {
                    head.push_str(ellipsis);
                }
                out.push((head.into(), style));
                break;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_cells_not_by_characters() {
        assert_eq!(cut("model", 5, "…"), "model");
        assert_eq!(cut("modelling", 5, "…"), "mode…");
        assert_eq!(cut("模型名称", 5, "…"), "模型…");
        assert_eq!(cut("模型名称", 4, "…"), "模…");
        assert_eq!(cut("abc", 1, "…"), "…");
        assert_eq!(cut("abc", 0, "…"), "");
        assert_eq!(right("7", 3, "…"), "  7");
        assert_eq!(right("模", 3, "…"), " 模");
    }

    #[test]
    fn text_wraps_at_blanks_and_breaks_what_is_too_long() {
        assert_eq!(
            wrap("needs 120,200, server serves 65,536", 16),
            ["needs 120,200,", "server serves", "65,536"]
        );
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("模型名", 3), ["模", "型", "名"]);
        assert_eq!(wrap("模", 1), Vec::<String>::new());
        assert!(wrap("a b", 0).is_empty());
        assert!(wrap("", 5).is_empty());
    }

    #[test]
    fn ascii_takes_as_many_cells() {
        for text in ["2.4 × → 1.2 ×", "模型 qwen…", "a ± b · c", "plain"] {
            let plain = ascii(text.to_string());
            assert!(plain.is_ascii(), "{plain}");
            assert_eq!(width(&plain), width(text), "{plain}");
        }
    }

    #[test]
    fn nothing_passes_that_a_terminal_obeys() {
        assert_eq!(safe("a\u{1b}[31mb".into()), "ab");
        assert_eq!(safe("plain".into()), "plain");
        assert_eq!(safe("x\ny".into()), "xy");
    }
}
