//! Shell text in words and operators.

use super::raw::{Part, Raw, Rule, Token, braces, variable};
use crate::launch::traced::{Byte, is_name, merged, plain, shown};

/// The tokens of a script. What it does not close ends with the text.
pub(super) fn tokens(text: &[Byte]) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        at: 0,
        pending: Vec::new(),
    };
    let mut out = Vec::new();
    while lexer.token(&mut out) {}
    out
}

/// The pieces of a text in which blanks and operators mean nothing: the inside of `${NAME:-…}`.
pub(super) fn parts_of(text: &[Byte]) -> Vec<Part> {
    let mut lexer = Lexer {
        text,
        at: 0,
        pending: Vec::new(),
    };
    let mut raw = Raw::default();
    while let Some(byte) = lexer.peek(0) {
        if !lexer.special(&mut raw) {
            raw.push(byte, false);
            lexer.at += 1;
        }
    }
    raw.parts
}

struct Lexer<'a> {
    text: &'a [Byte],
    at: usize,
    /// Words that end the here-documents which begin after this line.
    pending: Vec<Vec<u8>>,
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> Option<Byte> {
        self.text.get(self.at + ahead).copied()
    }

    fn is(&self, ahead: usize, value: u8) -> bool {
        self.peek(ahead).is_some_and(|b| b.is(value))
    }

    fn slice(&self, from: usize, to: usize) -> &'a [Byte] {
        self.text
            .get(from..to.min(self.text.len()))
            .unwrap_or_default()
    }

    /// A backslash at the end of a line; how many bytes it takes.
    fn continuation(&self) -> Option<usize> {
        if !self.is(0, b'\\') {
            return None;
        }
        if self.is(1, b'\n') {
            return Some(2);
        }
        (self.is(1, b'\r') && self.is(2, b'\n')).then_some(3)
    }

    /// Reads one token; `false` at the end.
    fn token(&mut self, out: &mut Vec<Token>) -> bool {
        loop {
            if let Some(length) = self.continuation() {
                self.at += length;
                continue;
            }
            let Some(byte) = self.peek(0) else {
                return false;
            };
            match byte.value {
                _ if byte.open => return self.word(out),
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'#' => {
                    while self.peek(0).is_some_and(|b| b.value != b'\n') {
                        self.at += 1;
                    }
                }
                b'\n' => {
                    self.at += 1;
                    self.skip_documents();
                    out.push(Token::End);
                    return true;
                }
                b'&' if self.is(1, b'>') => {
                    self.at += 1;
                    self.redirect(out);
                    return true;
                }
                b';' | b'&' | b'|' => {
                    while self.peek(0).is_some_and(|b| b";&|".contains(&b.value)) {
                        self.at += 1;
                    }
                    out.push(Token::End);
                    return true;
                }
                b'(' => {
                    self.at += 1;
                    out.push(Token::Open);
                    return true;
                }
                b')' => {
                    self.at += 1;
                    out.push(Token::Close);
                    return true;
                }
                b'<' | b'>' => {
                    self.redirect(out);
                    return true;
                }
                _ => return self.word(out),
            }
        }
    }

    fn redirect(&mut self, out: &mut Vec<Token>) {
        let start = self.at;
        while self.peek(0).is_some_and(|b| b"<>&|-".contains(&b.value)) {
            self.at += 1;
        }
        let sign = plain(self.slice(start, self.at));
        if self.is(0, b'(') {
            // <(…) is a word that running tells.
            let end = self.closing(self.at, b'(', b')');
            out.push(Token::Word(Raw {
                parts: vec![Part::Open(self.slice(start, end).to_vec())],
                last: self.text.get(end.saturating_sub(1)).copied(),
            }));
            self.at = end;
            return;
        }
        out.push(Token::Redirect);
        if sign == b"<<" || sign == b"<<-" {
            while self
                .peek(0)
                .is_some_and(|b| matches!(b.value, b' ' | b'\t'))
            {
                self.at += 1;
            }
            let before = out.len();
            self.word(out);
            if let Some(Token::Word(raw)) = out.get(before) {
                self.pending.push(
                    raw.parts
                        .iter()
                        .filter_map(|part| match part {
                            Part::Text { text, .. } => Some(plain(text)),
                            _ => None,
                        })
                        .flatten()
                        .collect(),
                );
            }
        }
    }

    fn skip_documents(&mut self) {
        for end in std::mem::take(&mut self.pending) {
            while self.at < self.text.len() {
                let start = self.at;
                while self.peek(0).is_some_and(|b| b.value != b'\n') {
                    self.at += 1;
                }
                let line = plain(self.slice(start, self.at));
                self.at += 1;
                if line.trim_ascii() == end {
                    break;
                }
            }
        }
    }

    fn word(&mut self, out: &mut Vec<Token>) -> bool {
        let mut raw = Raw::default();
        while let Some(byte) = self.peek(0) {
            if let Some(length) = self.continuation() {
                self.at += length;
                continue;
            }
            if self.special(&mut raw) {
                continue;
            }
            if !byte.open && (byte.blank() || b";&|<>()".contains(&byte.value)) {
                break;
            }
            raw.push(byte, false);
            self.at += 1;
        }
        raw.last = self
            .at
            .checked_sub(1)
            .and_then(|at| self.text.get(at))
            .copied();
        let bare = raw.bare();
        if self.is(0, b'(')
            && let Some((name, append)) = bare.as_deref().and_then(array_name)
        {
            let name = name.to_string();
            self.at += 1;
            let items = self.items();
            out.push(Token::Array {
                name,
                append,
                items,
            });
            return true;
        }
        // In 2>file the digits name a descriptor.
        let descriptor = bare.is_some_and(|text| text.bytes().all(|c| c.is_ascii_digit()));
        if !(descriptor && (self.is(0, b'<') || self.is(0, b'>'))) {
            out.push(Token::Word(raw));
        }
        true
    }

    /// The items of an array up to its closing parenthesis.
    fn items(&mut self) -> Vec<Raw> {
        let mut tokens = Vec::new();
        while self.token(&mut tokens) {
            if tokens.last() == Some(&Token::Close) {
                break;
            }
        }
        tokens
            .into_iter()
            .filter_map(|token| match token {
                Token::Word(raw) => Some(raw),
                _ => None,
            })
            .collect()
    }

    /// Takes a quote, an escape or an expansion; `false` where there is none.
    fn special(&mut self, raw: &mut Raw) -> bool {
        let Some(byte) = self.peek(0).filter(|b| !b.open) else {
            return false;
        };
        match byte.value {
            b'\\' => {
                match self.peek(1) {
                    Some(next) => raw.push(merged(next.value, &[byte, next]), true),
                    None => raw.push(byte, true),
                }
                self.at += 2;
            }
            b'\'' => self.single(raw),
            b'"' => self.double(raw),
            b'`' => {
                let end = self.after(self.at + 1, b'`');
                raw.parts
                    .push(Part::Open(self.slice(self.at, end).to_vec()));
                self.at = end;
            }
            b'$' => return self.dollar(raw, false),
            _ => return false,
        }
        true
    }

    fn single(&mut self, raw: &mut Raw) {
        self.at += 1;
        let start = self.at;
        while self.peek(0).is_some_and(|b| !b.is(b'\'')) {
            self.at += 1;
        }
        raw.parts.push(Part::Text {
            text: self.slice(start, self.at).to_vec(),
            quoted: true,
        });
        self.at += 1;
    }

    fn double(&mut self, raw: &mut Raw) {
        self.at += 1;
        raw.parts.push(Part::Text {
            text: Vec::new(),
            quoted: true,
        });
        while let Some(byte) = self.peek(0) {
            match byte.value {
                _ if byte.open => raw.push(byte, true),
                b'"' => break,
                b'\\' if self.continuation().is_some() => {
                    self.at += self.continuation().unwrap_or(1);
                    continue;
                }
                b'\\' => {
                    if let Some(next) = self.peek(1).filter(|b| b"$`\"\\".contains(&b.value)) {
                        raw.push(merged(next.value, &[byte, next]), true);
                        self.at += 1;
                    } else {
                        raw.push(byte, true);
                    }
                }
                b'`' => {
                    let end = self.after(self.at + 1, b'`');
                    raw.parts
                        .push(Part::Open(self.slice(self.at, end).to_vec()));
                    self.at = end;
                    continue;
                }
                b'$' if self.dollar(raw, true) => continue,
                _ => raw.push(byte, true),
            }
            self.at += 1;
        }
        self.at += 1;
    }

    /// Takes what a dollar sign begins; `false` where it is only a sign.
    fn dollar(&mut self, raw: &mut Raw, quoted: bool) -> bool {
        let start = self.at;
        let Some(next) = self.peek(1).filter(|b| !b.open) else {
            return false;
        };
        let end = match next.value {
            b'\'' if !quoted => {
                self.at += 1;
                self.single(raw);
                return true;
            }
            b'"' if !quoted => {
                self.at += 1;
                self.double(raw);
                return true;
            }
            b'(' => self.closing(start + 1, b'(', b')'),
            b'{' => self.closing(start + 1, b'{', b'}'),
            c if c.is_ascii_alphabetic() || c == b'_' => {
                let length = self
                    .slice(start + 1, self.text.len())
                    .iter()
                    .take_while(|b| b.value.is_ascii_alphanumeric() || b.value == b'_')
                    .count();
                start + 1 + length
            }
            c if c.is_ascii_digit() || b"@*#?$!-".contains(&c) => start + 2,
            _ => return false,
        };
        let whole = self.slice(start, end);
        self.at = end;
        raw.parts.push(match next.value {
            b'(' => Part::Open(whole.to_vec()),
            b'{' => braces(whole, quoted),
            _ => variable(
                shown(whole.get(1..).unwrap_or_default()),
                Rule::Value,
                quoted,
                whole,
            ),
        });
        true
    }

    /// Behind the next `mark` that no backslash escapes.
    fn after(&self, from: usize, mark: u8) -> usize {
        let mut at = from;
        while let Some(byte) = self.text.get(at) {
            at += 1;
            if byte.is(b'\\') {
                at += 1;
            } else if byte.is(mark) {
                break;
            }
        }
        at.min(self.text.len())
    }

    /// Behind the sign that closes the one at `from`; quotes inside hide theirs.
    fn closing(&self, from: usize, open: u8, close: u8) -> usize {
        let (mut at, mut depth) = (from, 0_usize);
        while let Some(byte) = self.text.get(at) {
            at += 1;
            match byte.value {
                _ if byte.open => {}
                b'\\' => at += 1,
                b'\'' => {
                    while self.text.get(at).is_some_and(|b| b.value != b'\'') {
                        at += 1;
                    }
                    at += 1;
                }
                b'"' => at = self.after(at, b'"'),
                c if c == open => depth += 1,
                c if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        at.min(self.text.len())
    }
}

fn array_name(word: &str) -> Option<(&str, bool)> {
    let name = word.strip_suffix('=')?;
    let (name, append) = match name.strip_suffix('+') {
        Some(name) => (name, true),
        None => (name, false),
    };
    is_name(name.as_bytes()).then_some((name, append))
}
