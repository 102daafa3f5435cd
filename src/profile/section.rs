//! Typed reading of a TOML table, where every complaint has its place.

use super::error::{Place, ProfileError, meant};
use crate::units::LengthError;
use std::ops::Range;
use std::path::Path;
use toml_edit::{Item, TableLike, Value};

/// The file that is being read.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

impl Source<'_> {
    pub fn invalid(&self, span: Option<Range<usize>>, message: impl Into<String>) -> ProfileError {
        ProfileError::Invalid {
            place: Box::new(Place::of(self.path, self.text, span.unwrap_or(0..0))),
            message: message.into(),
        }
    }
}

/// One table of the file. `title` is how the user names it: `[profile.qwen]`.
pub(super) struct Section<'a> {
    source: Source<'a>,
    table: &'a dyn TableLike,
    title: String,
    span: Option<Range<usize>>,
}

type Parse = fn(&str) -> Result<u64, LengthError>;

impl<'a> Section<'a> {
    pub fn root(source: Source<'a>, table: &'a dyn TableLike) -> Self {
        Section {
            source,
            table,
            title: String::new(),
            span: None,
        }
    }

    /// Refuses every entry that is not in `known`.
    pub fn only(&self, known: &[&str]) -> Result<(), ProfileError> {
        for (name, _) in self.table.iter() {
            if !known.contains(&name) {
                let whose = if self.title.is_empty() {
                    String::new()
                } else {
                    format!(" in [{}]", self.title)
                };
                return Err(self.at_key(
                    name,
                    format!(
                        "unknown entry {name:?}{whose}{}",
                        meant(name, known.iter().copied())
                    ),
                ));
            }
        }
        Ok(())
    }

    pub fn names(&self) -> Vec<String> {
        self.table
            .iter()
            .map(|(name, _)| name.to_string())
            .collect()
    }

    /// A complaint about the section as a whole.
    pub fn invalid(&self, message: impl Into<String>) -> ProfileError {
        self.source.invalid(self.span.clone(), message)
    }

    /// A complaint about the value of `key`.
    pub fn at(&self, key: &str, message: impl Into<String>) -> ProfileError {
        let span = self.table.get(key).and_then(Item::span);
        self.source
            .invalid(span.or_else(|| self.span.clone()), message)
    }

    fn at_key(&self, key: &str, message: impl Into<String>) -> ProfileError {
        let span = self.table.get_key_value(key).and_then(|(k, _)| k.span());
        self.source
            .invalid(span.or_else(|| self.span.clone()), message)
    }

    fn wrong(&self, key: &str, item: &Item, expected: &str) -> ProfileError {
        self.at(
            key,
            format!("{key} must be {expected}, not {}", kind_words(item)),
        )
    }

    /// The table under `key`.
    pub fn section(&self, key: &str) -> Result<Option<Section<'a>>, ProfileError> {
        let Some((name, item)) = self.table.get_key_value(key) else {
            return Ok(None);
        };
        let title = if self.title.is_empty() {
            key.to_string()
        } else {
            format!("{}.{key}", self.title)
        };
        match item.as_table_like() {
            Some(table) => Ok(Some(Section {
                source: self.source,
                table,
                title,
                span: name.span().or_else(|| item.span()),
            })),
            None => Err(self.wrong(key, item, &format!("a table, [{title}]"))),
        }
    }

    pub fn string(&self, key: &str, expected: &str) -> Result<Option<String>, ProfileError> {
        let Some(item) = self.table.get(key) else {
            return Ok(None);
        };
        match item.as_str() {
            Some("") => Err(self.at(key, format!("{key} is empty; it must be {expected}"))),
            Some(text) => Ok(Some(text.to_string())),
            None => Err(self.wrong(key, item, expected)),
        }
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, ProfileError> {
        let Some(item) = self.table.get(key) else {
            return Ok(None);
        };
        item.as_bool()
            .map(Some)
            .ok_or_else(|| self.wrong(key, item, "true or false"))
    }

    /// A whole number in `range`, without a suffix.
    pub fn integer(
        &self,
        key: &str,
        range: Range<u64>,
        expected: &str,
    ) -> Result<Option<u64>, ProfileError> {
        let Some(item) = self.table.get(key) else {
            return Ok(None);
        };
        item.as_integer()
            .and_then(|n| u64::try_from(n).ok())
            .filter(|n| range.contains(n))
            .map(Some)
            .ok_or_else(|| self.wrong(key, item, expected))
    }

    /// A length: digits, or text with a suffix as `parse` reads it.
    pub fn length(&self, key: &str, parse: Parse) -> Result<Option<u64>, ProfileError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Item::Value(value)) => self.one_length(key, value, parse).map(Some),
            Some(item) => Err(self.wrong(key, item, LENGTH)),
        }
    }

    /// A time in seconds: digits, or text with a letter as `parse` reads it.
    pub fn time(&self, key: &str, parse: Parse) -> Result<Option<u64>, ProfileError> {
        let text = match self.table.get(key) {
            None => return Ok(None),
            Some(item) => item.as_value().and_then(text_of).ok_or_else(|| {
                self.wrong(key, item, "a time, for example 90 (seconds) or \"30m\"")
            })?,
        };
        parse(&text)
            .map(Some)
            .map_err(|error| self.at(key, format!("{key}: {error}")))
    }

    /// Several lengths, ascending and each once; at least one.
    pub fn lengths(&self, key: &str, parse: Parse) -> Result<Option<Vec<u64>>, ProfileError> {
        let Some(values) = self.array(key, "a list of lengths, for example [\"32K\", 65536]")?
        else {
            return Ok(None);
        };
        let mut lengths = values
            .map(|value| self.one_length(key, value, parse))
            .collect::<Result<Vec<u64>, _>>()?;
        if lengths.is_empty() {
            return Err(self.at(key, format!("{key} is empty; it needs at least one length")));
        }
        lengths.sort_unstable();
        lengths.dedup();
        Ok(Some(lengths))
    }

    /// Several small whole numbers, each once, in the given order.
    pub fn numbers(&self, key: &str, least: u32) -> Result<Option<Vec<u32>>, ProfileError> {
        let expected = format!("a list of whole numbers from {least} up");
        let Some(values) = self.array(key, &expected)? else {
            return Ok(None);
        };
        let mut numbers = Vec::new();
        for value in values {
            let number = value
                .as_integer()
                .and_then(|n| u32::try_from(n).ok())
                .filter(|n| *n >= least);
            match number {
                Some(number) if numbers.contains(&number) => {
                    return Err(self
                        .source
                        .invalid(value.span(), format!("{number} is named twice in {key}")));
                }
                Some(number) => numbers.push(number),
                None => {
                    return Err(self
                        .source
                        .invalid(value.span(), format!("{key} must be {expected}")));
                }
            }
        }
        Ok(Some(numbers))
    }

    /// Texts; numbers are taken as their digits, so that `"--port", 8000` works.
    pub fn strings(&self, key: &str) -> Result<Option<Vec<String>>, ProfileError> {
        let Some(values) = self.array(key, "a list of texts")? else {
            return Ok(None);
        };
        values
            .map(|value| {
                text_of(value).ok_or_else(|| {
                    self.source
                        .invalid(value.span(), format!("{key} takes texts, in quotes"))
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Some)
    }

    /// Every entry of this section as name and text, in the file's order.
    pub fn pairs(&self) -> Result<Vec<(String, String)>, ProfileError> {
        self.table
            .iter()
            .map(|(name, item)| {
                let text = item.as_value().and_then(text_of);
                text.map(|text| (name.to_string(), text))
                    .ok_or_else(|| self.wrong(name, item, "a text, in quotes"))
            })
            .collect()
    }

    fn array(
        &self,
        key: &str,
        expected: &str,
    ) -> Result<Option<impl Iterator<Item = &'a Value>>, ProfileError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(item) => match item.as_array() {
                Some(array) => Ok(Some(array.iter())),
                None => Err(self.wrong(key, item, expected)),
            },
        }
    }

    fn one_length(&self, key: &str, value: &Value, parse: Parse) -> Result<u64, ProfileError> {
        let read = match value {
            Value::Integer(n) => parse(&n.value().to_string()),
            Value::String(text) => parse(text.value()),
            _ => {
                return Err(self
                    .source
                    .invalid(value.span(), format!("{key} must be {LENGTH}")));
            }
        };
        read.map_err(|error| self.source.invalid(value.span(), format!("{key}: {error}")))
    }
}

const LENGTH: &str = "a length, for example 65536 or \"64K\"";

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(n) => Some(n.value().to_string()),
        _ => None,
    }
}

fn kind_words(item: &Item) -> String {
    match item {
        Item::Value(Value::String(text)) => format!("the text {:?}", text.value()),
        Item::Value(Value::Integer(n)) => n.value().to_string(),
        Item::Value(Value::Float(n)) => n.value().to_string(),
        Item::Value(Value::Boolean(b)) => b.value().to_string(),
        Item::Value(Value::Array(_)) => "a list".into(),
        Item::Value(Value::Datetime(_)) => "a date".into(),
        Item::ArrayOfTables(_) => "a list of tables".into(),
        Item::Value(Value::InlineTable(_)) | Item::Table(_) => "a table".into(),
        Item::None => "nothing".into(),
    }
}
