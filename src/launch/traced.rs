//! Text in which every byte knows where it was written.
//!
//! A number that reaches a server may have gone through a variable of an environment file, the quotes of a unit and the words of a
//! shell. The bytes carry their origin through all of it, so that the digits themselves can be changed and nothing else.

use std::ops::Range;

/// Where a byte was written: the file by its number, and the bytes there (more than one for an escape).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub file: usize,
    pub start: usize,
    pub end: usize,
}

/// One byte of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Byte {
    pub value: u8,
    /// `None`: nobody wrote it, it was made on the way.
    pub at: Option<At>,
    /// Stands for something that only the running system knows (`$(nproc)`, `%h`).
    pub open: bool,
}

pub(super) type Text = Vec<Byte>;

impl Byte {
    pub fn is(self, value: u8) -> bool {
        self.value == value && !self.open
    }

    pub fn blank(self) -> bool {
        matches!(self.value, b' ' | b'\t' | b'\n' | b'\r') && !self.open
    }
}

/// The bytes of a file.
pub(super) fn of_file(file: usize, bytes: &[u8]) -> Text {
    slice(file, bytes, 0..bytes.len())
}

/// The bytes of a part of a file.
pub(super) fn slice(file: usize, bytes: &[u8], range: Range<usize>) -> Text {
    let start = range.start;
    bytes
        .get(range)
        .unwrap_or_default()
        .iter()
        .enumerate()
        .map(|(i, value)| Byte {
            value: *value,
            at: Some(At {
                file,
                start: start + i,
                end: start + i + 1,
            }),
            open: false,
        })
        .collect()
}

/// Text that stands in no file.
pub(super) fn made(text: &[u8]) -> Text {
    text.iter()
        .map(|value| Byte {
            value: *value,
            at: None,
            open: false,
        })
        .collect()
}

/// One byte that several written ones stand for.
pub(super) fn merged(value: u8, from: &[Byte]) -> Byte {
    let first = from.first().and_then(|b| b.at);
    let last = from.last().and_then(|b| b.at);
    let at = match (first, last) {
        (Some(a), Some(b)) if a.file == b.file && a.start < b.end => Some(At { end: b.end, ..a }),
        _ => None,
    };
    Byte {
        value,
        at,
        open: false,
    }
}

/// The same bytes, as something that only the running system knows.
pub(super) fn opened(text: &[Byte]) -> Text {
    text.iter().map(|b| Byte { open: true, ..*b }).collect()
}

pub(super) fn plain(text: &[Byte]) -> Vec<u8> {
    text.iter().map(|b| b.value).collect()
}

pub(super) fn shown(text: &[Byte]) -> String {
    String::from_utf8_lossy(&plain(text)).into_owned()
}

/// The one stretch of one file that this text was written as; `None` where it was put together from pieces.
pub(super) fn stretch(text: &[Byte]) -> Option<(usize, Range<usize>)> {
    let first = text.first()?.at?;
    let mut end = first.end;
    for byte in text.get(1..)? {
        let at = byte.at?;
        if at.file != first.file || at.start != end {
            return None;
        }
        end = at.end;
    }
    Some((first.file, first.start..end))
}

/// Cuts at blanks; blanks at the ends and runs of them make no empty pieces.
pub(super) fn split_blank(text: &[Byte]) -> Vec<Text> {
    text.split(|b| b.blank())
        .filter(|piece| !piece.is_empty())
        .map(<[Byte]>::to_vec)
        .collect()
}

/// The lines with their ends cut off (`\n`, `\r\n`), a byte order mark at the start left out.
pub(super) fn lines(text: &[Byte]) -> Vec<&[Byte]> {
    let bom = text.len() >= 3
        && text
            .iter()
            .zip([0xef, 0xbb, 0xbf])
            .all(|(b, mark)| b.value == mark);
    let text = text.get(if bom { 3 } else { 0 }..).unwrap_or_default();
    let mut lines: Vec<&[Byte]> = text
        .split(|b| b.value == b'\n')
        .map(|line| line.strip_suffix_cr())
        .collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

trait StripCr {
    fn strip_suffix_cr(&self) -> &Self;
}

impl StripCr for [Byte] {
    fn strip_suffix_cr(&self) -> &Self {
        match self.split_last() {
            Some((last, rest)) if last.value == b'\r' => rest,
            _ => self,
        }
    }
}

/// Without the blanks at both ends.
pub(super) fn trim(text: &[Byte]) -> &[Byte] {
    let start = text.iter().position(|b| !b.blank()).unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(|b| !b.blank())
        .map_or(start, |at| at + 1);
    text.get(start..end).unwrap_or_default()
}

/// `name` and what follows the first `=`, where there is one.
pub(super) fn split_assignment(text: &[Byte]) -> Option<(&[Byte], &[Byte])> {
    let at = text.iter().position(|b| b.is(b'='))?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Whether a shell would take this as the name of a variable.
pub(super) fn is_name(name: &[u8]) -> bool {
    name.first()
        .is_some_and(|c| c.is_ascii_alphabetic() || *c == b'_')
        && name.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'_')
}
