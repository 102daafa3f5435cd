//! Variables of a script, and what its words become with them.

use super::raw::{Part, Raw, Rule};
use crate::launch::command::{Env, Word};
use crate::launch::traced::{Byte, Text, opened};
use std::collections::{HashMap, HashSet};

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    One(Text),
    Many(Vec<Text>),
}

/// What is known at one point of a script.
#[derive(Debug, Default)]
pub(super) struct Variables {
    values: HashMap<String, Value>,
    exported: HashSet<String>,
    /// In the order in which they came, for a stable environment.
    order: Vec<String>,
    pub export_all: bool,
    /// `$1` and on; `None` where the caller is not known.
    pub arguments: Option<Vec<Text>>,
}

impl Variables {
    pub fn set(&mut self, name: &str, value: Value) {
        if self.values.insert(name.to_string(), value).is_none() {
            self.order.push(name.to_string());
        }
        if self.export_all {
            self.export(name);
        }
    }

    /// `NAME=value`, or `NAME+=value`.
    pub fn put(&mut self, name: &str, append: bool, value: Value) {
        let value = match (self.values.remove(name).filter(|_| append), value) {
            (Some(Value::One(mut old)), Value::One(new)) => {
                old.extend(new);
                Value::One(old)
            }
            (Some(Value::Many(mut old)), Value::Many(new)) => {
                old.extend(new);
                Value::Many(old)
            }
            (_, new) => new,
        };
        if !self.order.iter().any(|known| known == name) {
            self.order.push(name.to_string());
        }
        self.values.insert(name.to_string(), value);
        if self.export_all {
            self.export(name);
        }
    }

    pub fn unset(&mut self, name: &str) {
        self.values.remove(name);
    }

    pub fn export(&mut self, name: &str) {
        self.exported.insert(name.to_string());
    }

    /// The environment that a command gets.
    pub fn exported(&self) -> Env {
        let mut env = Env::default();
        for name in &self.order {
            if let Some(Value::One(value)) = self.values.get(name)
                && self.exported.contains(name)
            {
                env.set(name, value.clone());
            }
        }
        env
    }

    fn get(&self, name: &str) -> Option<Value> {
        if name == "@" || name == "*" {
            return self.arguments.clone().map(Value::Many);
        }
        if let Ok(number) = name.parse::<usize>() {
            let at = number.checked_sub(1)?;
            return self.arguments.as_ref()?.get(at).cloned().map(Value::One);
        }
        self.values.get(name).cloned()
    }

    /// The text of a word that is not split (the right side of an assignment).
    pub fn text(&mut self, raw: &Raw) -> Text {
        let mut out = Vec::new();
        for part in &raw.parts {
            match self.part(part) {
                Piece::Whole(text) => out.extend(text),
                Piece::Fields(fields) => {
                    for (i, field) in fields.into_iter().enumerate() {
                        if i > 0 {
                            out.extend(crate::launch::traced::made(b" "));
                        }
                        out.extend(field);
                    }
                }
                Piece::Split(text) => out.extend(text),
            }
        }
        out
    }

    /// The words that one word becomes.
    pub fn words(&mut self, raw: &Raw) -> Vec<Word> {
        let mut fields = Fields::default();
        for part in &raw.parts {
            match self.part(part) {
                Piece::Whole(text) => fields.add(text),
                Piece::Fields(list) => {
                    for (i, text) in list.into_iter().enumerate() {
                        if i > 0 {
                            fields.cut();
                        }
                        fields.add(text);
                    }
                }
                Piece::Split(text) => fields.split(&text),
            }
        }
        fields.cut();
        fields
            .done
            .into_iter()
            .map(|text| Word::ending(text, raw.last.as_ref()))
            .collect()
    }

    fn part(&mut self, part: &Part) -> Piece {
        match part {
            Part::Text { text, .. } => Piece::Whole(text.clone()),
            Part::Open(text) => Piece::Whole(opened(text)),
            Part::Variable {
                name,
                all,
                rule,
                quoted,
                raw,
            } => self.variable(name, *all, rule, *quoted, raw),
        }
    }

    fn variable(
        &mut self,
        name: &str,
        all: bool,
        rule: &Rule,
        quoted: bool,
        raw: &[Byte],
    ) -> Piece {
        let value = self.get(name);
        let empty = match &value {
            None => true,
            Some(Value::One(text)) => text.is_empty(),
            Some(Value::Many(items)) => items.is_empty(),
        };
        let inner = |variables: &mut Self, parts: &[Part]| {
            variables.text(&Raw {
                parts: parts.to_vec(),
                last: None,
            })
        };
        let text = match (value, rule) {
            (_, Rule::Default { parts, assign }) if empty => {
                let text = inner(self, parts);
                if *assign {
                    self.set(name, Value::One(text.clone()));
                }
                text
            }
            (_, Rule::Instead(parts)) => match empty {
                true => Vec::new(),
                false => inner(self, parts),
            },
            (Some(Value::One(text)), _) => text,
            (Some(Value::Many(items)), _) if all && quoted => return Piece::Fields(items),
            (Some(Value::Many(items)), _) if all => {
                let joined = items.join(crate::launch::traced::made(b" ").as_slice());
                return Piece::Split(joined);
            }
            (Some(Value::Many(items)), _) => items.into_iter().next().unwrap_or_default(),
            (None, _) => return Piece::Whole(opened(raw)),
        };
        match quoted {
            true => Piece::Whole(text),
            false => Piece::Split(text),
        }
    }
}

enum Piece {
    Whole(Text),
    /// Words of their own, joined to their neighbours at both ends.
    Fields(Vec<Text>),
    /// Cut at blanks.
    Split(Text),
}

#[derive(Default)]
struct Fields {
    done: Vec<Text>,
    current: Option<Text>,
}

impl Fields {
    fn add(&mut self, text: Text) {
        self.current.get_or_insert_default().extend(text);
    }

    fn cut(&mut self) {
        self.done.extend(self.current.take());
    }

    fn split(&mut self, text: &[Byte]) {
        for (i, piece) in text.split(|b| b.blank()).enumerate() {
            if i > 0 {
                self.cut();
            }
            if !piece.is_empty() {
                self.add(piece.to_vec());
            }
        }
    }
}
