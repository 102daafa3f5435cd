//! One key press as plain data, and how people write it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A character as it arrives, case included: `K` is Shift and k.
    Char(char),
    F(u8),
    Enter,
    Esc,
    Tab,
    Backspace,
    Delete,
    Insert,
    Home,
    End,
    PageUp,
    PageDown,
    Up,
    Down,
    Left,
    Right,
}

/// A key with what is held down beside it. Built by [`Key::new`], so that each press has one form only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

const NAMES: &[(&str, Code)] = &[
    ("Enter", Code::Enter),
    ("Esc", Code::Esc),
    ("Tab", Code::Tab),
    ("Backspace", Code::Backspace),
    ("Delete", Code::Delete),
    ("Insert", Code::Insert),
    ("Home", Code::Home),
    ("End", Code::End),
    ("PageUp", Code::PageUp),
    ("PageDown", Code::PageDown),
    ("Up", Code::Up),
    ("Down", Code::Down),
    ("Left", Code::Left),
    ("Right", Code::Right),
    ("Space", Code::Char(' ')),
];

impl Key {
    /// The key in its one form. Terminals differ in whether they report Shift beside a capital, and the case of a letter under Ctrl:
    /// Shift is part of a character, and a letter under Ctrl is small.
    pub fn new(code: Code, ctrl: bool, alt: bool, shift: bool) -> Self {
        match code {
            Code::Char(c) => {
                let c = if ctrl {
                    c.to_ascii_lowercase()
                } else if shift {
                    c.to_ascii_uppercase()
                } else {
                    c
                };
                Key {
                    code: Code::Char(c),
                    ctrl,
                    alt,
                    shift: false,
                }
            }
            code => Key {
                code,
                ctrl,
                alt,
                shift,
            },
        }
    }

    /// A key with nothing held down.
    pub fn plain(code: Code) -> Self {
        Key::new(code, false, false, false)
    }
}

impl fmt::Display for Key {
    /// As people write it: `Ctrl-s`, `Shift-Tab`, `K`, `Space`, `F1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        if self.alt {
            f.write_str("Alt-")?;
        }
        if self.shift {
            f.write_str("Shift-")?;
        }
        if let Some((name, _)) = NAMES.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            Code::Char(c) => write!(f, "{c}"),
            Code::F(n) => write!(f, "F{n}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Key {
    type Err = String;

    /// Reads `Ctrl-s`, `ctrl-s`, `Alt-Enter`, `Shift-Tab`, `K`, `-`, `Ctrl--`, `F1`. Names are read in any case, characters as they are.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut ctrl, mut alt, mut shift) = (false, false, false);
        let mut rest = text;
        while let Some((head, tail)) = rest.split_once('-') {
            if tail.is_empty() {
                break;
            }
            match head.to_ascii_lowercase().as_str() {
                "ctrl" | "c" => ctrl = true,
                "alt" | "a" => alt = true,
                "shift" | "s" => shift = true,
                _ => break,
            }
            rest = tail;
        }
        code(rest)
            .map(|code| Key::new(code, ctrl, alt, shift))
            .ok_or_else(|| {
                format!(
                    "{text:?} is not a key; write one character, or Ctrl-s, Alt-x, Shift-Tab, F1, Enter, Esc, Space, Up, PageDown and the like"
                )
            })
    }
}

fn code(text: &str) -> Option<Code> {
    let mut chars = text.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return (!c.is_control()).then_some(Code::Char(c));
    }
    if let Some((_, code)) = NAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))
    {
        return Some(*code);
    }
    let number: u8 = text.strip_prefix(['F', 'f'])?.parse().ok()?;
    (1..=12).contains(&number).then_some(Code::F(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in [
            "Ctrl-s",
            "Shift-Tab",
            "K",
            "k",
            "-",
            "Ctrl--",
            "F12",
            "Space",
            "Alt-Enter",
            "?",
            ":",
            "PageDown",
            "é",
            "Ctrl-Alt-Left",
        ] {
            let key: Key = text.parse().unwrap();
            assert_eq!(key.to_string(), text);
        }
        assert_eq!("esc".parse(), Ok(Key::plain(Code::Esc)));
        for wrong in ["", "Ctrl-", "Hyper-x", "F13", "F0", "ab", "\u{1b}"] {
            assert!(wrong.parse::<Key>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn terminals_that_report_shift_and_those_that_do_not_agree() {
        let with = Key::new(Code::Char('K'), false, false, true);
        let without = Key::new(Code::Char('K'), false, false, false);
        let kitty = Key::new(Code::Char('k'), false, false, true);
        assert_eq!(with, without);
        assert_eq!(kitty, without);
        assert_eq!(
            Key::new(Code::Char('S'), true, false, true),
            "Ctrl-s".parse().unwrap()
        );
    }
}
