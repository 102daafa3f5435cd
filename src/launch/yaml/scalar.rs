//! Where the characters of a scalar stand in the file.

use crate::launch::traced::{Byte, Text, made, merged, slice};
use saphyr_parser::ScalarStyle;

/// A scalar's text, and where it ends in the file (behind its quote).
pub(super) struct Traced {
    pub text: Text,
    pub end: usize,
}

/// Follows `value`, as the parser read it, through the file from `start`. What cannot be followed has no place, so that nothing
/// is ever changed at a wrong one.
pub(super) fn trace(
    file: usize,
    bytes: &[u8],
    start: usize,
    style: ScalarStyle,
    value: &str,
) -> Traced {
    let mut walk = Walk {
        file,
        bytes,
        at: start,
        style,
        indent: 0,
        end: start,
    };
    let text = walk.begin(value).and_then(|()| walk.follow(value));
    let quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    Traced {
        text: text.unwrap_or_else(|| made(value.as_bytes())),
        end: walk.end + usize::from(quoted),
    }
}

struct Walk<'a> {
    file: usize,
    bytes: &'a [u8],
    at: usize,
    style: ScalarStyle,
    /// Blanks before each line of a block.
    indent: usize,
    end: usize,
}

impl Walk<'_> {
    fn now(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn block(&self) -> bool {
        matches!(self.style, ScalarStyle::Literal | ScalarStyle::Folded)
    }

    /// Goes to the first character of the content.
    fn begin(&mut self, value: &str) -> Option<()> {
        // An anchor and a tag stand before the scalar that they belong to.
        while matches!(self.now(), Some(b'&' | b'!')) {
            while self.now().is_some_and(|b| !b.is_ascii_whitespace()) {
                self.at += 1;
            }
            while self.now().is_some_and(|b| b.is_ascii_whitespace()) {
                self.at += 1;
            }
        }
        match self.style {
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                let mark = if self.style == ScalarStyle::SingleQuoted {
                    b'\''
                } else {
                    b'"'
                };
                if self.now() != Some(mark) {
                    return None;
                }
                self.at += 1;
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                if matches!(self.now(), Some(b'|' | b'>')) {
                    self.next_line();
                } else {
                    // The parser gives the first line itself.
                    let before = self.bytes.get(..self.at)?;
                    self.at = before
                        .iter()
                        .rposition(|b| *b == b'\n')
                        .map_or(0, |at| at + 1);
                }
                let first = value.lines().find(|line| !line.trim().is_empty())?;
                let inner = first.len() - first.trim_start_matches(' ').len();
                let rest = self.bytes.get(self.at..)?;
                let line = rest
                    .split(|b| *b == b'\n')
                    .find(|line| !line.trim_ascii().is_empty())?;
                let outer = line.iter().take_while(|b| **b == b' ').count();
                self.indent = outer.checked_sub(inner)?;
                self.skip_indent();
            }
            ScalarStyle::Plain => {}
        }
        self.end = self.at;
        Some(())
    }

    fn next_line(&mut self) {
        while self.now().is_some_and(|b| b != b'\n') {
            self.at += 1;
        }
        self.at += 1;
    }

    fn skip_indent(&mut self) {
        let mut left = self.indent;
        while left > 0 && self.now() == Some(b' ') {
            self.at += 1;
            left -= 1;
        }
    }

    fn follow(&mut self, value: &str) -> Option<Text> {
        let mut out = Text::new();
        let mut rest = value.as_bytes();
        while let Some((&wanted, behind)) = rest.split_first() {
            if self.style == ScalarStyle::DoubleQuoted && self.now() == Some(b'\\') {
                let taken = self.escape(value, rest.len(), &mut out)?;
                rest = rest.get(taken..)?;
                continue;
            }
            rest = behind;
            if self.style == ScalarStyle::SingleQuoted
                && wanted == b'\''
                && self.bytes.get(self.at..self.at + 2) == Some(b"''")
            {
                out.push(merged(
                    wanted,
                    &slice(self.file, self.bytes, self.at..self.at + 2),
                ));
                self.at += 2;
                self.end = self.at;
            } else if self.block() && wanted == b'\n' && self.line_end() {
                self.line_break(&mut out);
            } else if self.now() == Some(wanted) && wanted != b'\n' {
                out.extend(slice(self.file, self.bytes, self.at..self.at + 1));
                self.at += 1;
                self.end = self.at;
            } else {
                self.fold(wanted, &mut out)?;
            }
        }
        Some(out)
    }

    fn line_end(&self) -> bool {
        matches!(self.now(), Some(b'\n') | None)
            || self.bytes.get(self.at..self.at + 2) == Some(b"\r\n")
    }

    fn line_break(&mut self, out: &mut Text) {
        self.next_line();
        out.extend(made(b"\n"));
        self.skip_indent();
    }

    /// A line break that became a blank, or blanks at its sides that became nothing.
    fn fold(&mut self, wanted: u8, out: &mut Text) -> Option<()> {
        let start = self.at;
        while self.now().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
        let skipped = self.bytes.get(start..self.at)?;
        if wanted == b' ' || wanted == b'\n' {
            out.extend(made(&[wanted]));
            return Some(());
        }
        let broke = skipped.contains(&b'\n');
        if !broke || self.now() != Some(wanted) {
            return None;
        }
        // The blank that was matched before the line end stands for the whole fold.
        out.extend(slice(self.file, self.bytes, self.at..self.at + 1));
        self.at += 1;
        self.end = self.at;
        Some(())
    }

    /// An escape in double quotes; how many bytes of the value it gives.
    fn escape(&mut self, value: &str, left: usize, out: &mut Text) -> Option<usize> {
        let letter = *self.bytes.get(self.at + 1)?;
        if letter == b'\n' || letter == b'\r' {
            self.at += 1;
            while self.now().is_some_and(|b| b.is_ascii_whitespace()) {
                self.at += 1;
            }
            return Some(0);
        }
        let length = match letter {
            b'x' => 4,
            b'u' => 6,
            b'U' => 10,
            _ => 2,
        };
        let from = value.len().checked_sub(left)?;
        let character = value.get(from..)?.chars().next()?;
        let written = slice(self.file, self.bytes, self.at..self.at + length);
        let taken = character.len_utf8();
        if taken == 1 {
            out.push(merged(u8::try_from(character).ok()?, &written));
        } else {
            let bytes = value.as_bytes().get(from..from + taken)?;
            out.extend(bytes.iter().map(|value| Byte {
                value: *value,
                at: None,
                open: false,
            }));
        }
        self.at += length;
        self.end = self.at;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Node, documents};
    use crate::launch::traced::{shown, stretch};

    fn scalars(node: &Node, out: &mut Vec<Node>) {
        match &node.kind {
            Kind::Scalar(_) => out.push(node.clone()),
            Kind::Null => {}
            Kind::List(items) => items.iter().for_each(|item| scalars(item, out)),
            Kind::Map(entries) => entries.iter().for_each(|(key, value)| {
                scalars(key, out);
                scalars(value, out);
            }),
        }
    }

    /// Every `32768` in every scalar stands where the trace says.
    fn checked(text: &str) -> usize {
        let mut found = 0;
        for document in documents(0, text.as_bytes()).unwrap() {
            let mut all = Vec::new();
            scalars(&document, &mut all);
            for node in all {
                let scalar = node.scalar().unwrap();
                let Some(at) = shown(scalar).find("32768") else {
                    continue;
                };
                let (_, range) = stretch(&scalar[at..at + 5]).expect(text);
                assert_eq!(text.get(range), Some("32768"), "{text:?}");
                found += 1;
            }
        }
        found
    }

    #[test]
    fn every_style_knows_its_places() {
        let texts = [
            "a: 32768\n",
            "\u{feff}a: ü 32768 # x\n",
            "a: '32768'\n",
            "a: \"32768\"\n",
            "a: 'it''s 32768'\n",
            "a: \"\\t\\x41 \\u00fc 32768\"\n",
            "a: [x, 32768, y]\n",
            "{\"a\": [\"x\", \"32768\"]}\n",
            "a: one\n  two   \n  32768 three\n",
            "a: 'one\n\n  two\n  32768'\n",
            "a: \"one \\\n  two\n  32768\"\n",
            "a: |\n  one \\\n    --x 32768\n  two\n",
            "a: |-\n\n    one\n  \n    32768",
            "a: |2\n    one\n  32768\n",
            "a: >\n  one\n  32768\n\n  two\n",
            "a: >-\n  one\n    two\n  32768\n",
            "- |\n  a\n  32768\n- b\n",
            "a:\r\n  - x\r\n  - \"32768\"\r\n",
            "a: |\r\n  one\r\n  32768\r\nb: 1\r\n",
            "a: >\r\n  one\r\n  32768\r\nb: 1\r\n",
            "---\na: 1\n---\nb: 32768\n...\n",
            "a: &x 32768\n",
            "a: !!str 32768\n",
        ];
        for text in texts {
            assert_eq!(checked(text), 1, "{text:?}");
        }
        assert_eq!(checked("a: &x [32768]\nb: *x\nc: *x\n"), 3);
    }
}
