//! A command in words, and its environment.

use super::traced::{Byte, Text, plain, shown};

/// Where a new argument goes behind a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    /// In running text, behind a blank.
    Text { file: usize, at: usize },
    /// In a YAML list, one item a line.
    Block {
        file: usize,
        at: usize,
        indent: String,
        quote: &'static str,
        newline: &'static str,
    },
    /// In a list in brackets (YAML, JSON, TOML).
    Flow {
        file: usize,
        at: usize,
        quote: &'static str,
    },
    /// Nowhere, with the reason.
    Nowhere(&'static str),
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub text: Text,
    pub after: After,
}

impl Word {
    /// A word of running text that ends with the byte `last`.
    pub fn ending(text: Text, last: Option<&Byte>) -> Self {
        let after = match last.and_then(|b| b.at) {
            Some(at) => After::Text {
                file: at.file,
                at: at.end,
            },
            None => After::Nowhere("the end of the command is made from a variable"),
        };
        Word { text, after }
    }

    pub fn shown(&self) -> String {
        shown(&self.text)
    }

    /// The last part of a path.
    pub fn base(&self) -> String {
        let text = self.shown();
        let base = text.rsplit(['/', '\\']).next().unwrap_or_default();
        base.strip_suffix(".exe").unwrap_or(base).to_string()
    }

    /// Whether something that only the running system knows is in it.
    pub fn open(&self) -> bool {
        self.text.iter().any(|b| b.open)
    }

    pub fn is(&self, text: &str) -> bool {
        !self.open() && plain(&self.text) == text.as_bytes()
    }
}

/// Variables; the last of a name counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Env(Vec<(String, Text)>);

impl Env {
    pub fn get(&self, name: &str) -> Option<&Text> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    pub fn set(&mut self, name: &str, value: Text) {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_string(), value)),
        }
    }

    pub fn unset(&mut self, name: &str) {
        self.0.retain(|(n, _)| n != name);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Text)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// A command as its text starts it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// The service, container or function it belongs to.
    pub names: Vec<String>,
    pub words: Vec<Word>,
    pub env: Env,
    /// The image, where it runs in a container.
    pub image: Option<String>,
    /// Whether its files are those of an image.
    pub inside: bool,
    /// Whether it is a profile's, with the production value filled in: always a length per request, written as people write one.
    pub template: bool,
}
