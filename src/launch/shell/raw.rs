//! Words of a script before anything is expanded.

use super::lex::parts_of;
use crate::launch::traced::{Byte, Text, plain, shown};

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Characters as they are; quoted ones are never split.
    Text { text: Text, quoted: bool },
    /// A variable, with what stands behind its name in braces.
    Variable {
        name: String,
        all: bool,
        rule: Rule,
        quoted: bool,
        raw: Text,
    },
    /// Something that only running it tells.
    Open(Text),
}

/// What a `${…}` gives besides the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    Value,
    /// `:-` and `:=`: this where there is no value; `assign` keeps it.
    Default {
        parts: Vec<Part>,
        assign: bool,
    },
    /// `:+`: this where there is a value.
    Instead(Vec<Part>),
}

/// A word before anything is expanded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Raw {
    pub parts: Vec<Part>,
    pub last: Option<Byte>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Raw),
    /// `NAME=(…)` or `NAME+=(…)`.
    Array {
        name: String,
        append: bool,
        items: Vec<Raw>,
    },
    /// The end of a command: a line end, `;`, `&`, `|` and their doubles.
    End,
    Open,
    Close,
    /// The next word is a file.
    Redirect,
}

impl Raw {
    /// The text of a word without quotes and variables.
    pub fn bare(&self) -> Option<String> {
        match self.parts.as_slice() {
            [
                Part::Text {
                    text,
                    quoted: false,
                },
            ] => Some(shown(text)),
            _ => None,
        }
    }

    pub fn push(&mut self, byte: Byte, quoted: bool) {
        if let Some(Part::Text { text, quoted: q }) = self.parts.last_mut()
            && *q == quoted
        {
            text.push(byte);
            return;
        }
        self.parts.push(Part::Text {
            text: vec![byte],
            quoted,
        });
    }
}

pub(super) fn variable(name: String, rule: Rule, quoted: bool, raw: &[Byte]) -> Part {
    let all = name == "@" || name == "*";
    Part::Variable {
        name,
        all,
        rule,
        quoted,
        raw: raw.to_vec(),
    }
}

/// `${…}` as a whole.
pub(super) fn braces(whole: &[Byte], quoted: bool) -> Part {
    let inner = whole
        .get(2..whole.len().saturating_sub(1))
        .unwrap_or_default();
    let length = match inner.first() {
        Some(b) if b.value == b'@' || b.value == b'*' => 1,
        _ => inner
            .iter()
            .take_while(|b| b.value.is_ascii_alphanumeric() || b.value == b'_')
            .count(),
    };
    let name = shown(inner.get(..length).unwrap_or_default());
    let rest = inner.get(length..).unwrap_or_default();
    if name.is_empty() {
        return Part::Open(whole.to_vec());
    }
    let sign: Vec<u8> = plain(rest.get(..rest.len().min(3)).unwrap_or_default());
    let from = |at: usize| parts_of(rest.get(at..).unwrap_or_default());
    let default = |at, assign| Rule::Default {
        parts: from(at),
        assign,
    };
    let rule = match sign.as_slice() {
        [] => Rule::Value,
        b"[@]" | b"[*]" if rest.len() == 3 => {
            return Part::Variable {
                name,
                all: true,
                rule: Rule::Value,
                quoted,
                raw: whole.to_vec(),
            };
        }
        [b':', b'-', ..] => default(2, false),
        [b':', b'=', ..] => default(2, true),
        [b':', b'?', ..] | [b'?', ..] => Rule::Value,
        [b':', b'+', ..] => Rule::Instead(from(2)),
        [b'-', ..] => default(1, false),
        [b'=', ..] => default(1, true),
        [b'+', ..] => Rule::Instead(from(1)),
        _ => return Part::Open(whole.to_vec()),
    };
    variable(name, rule, quoted, whole)
}
