//! Takes the bytes of a log: plain lines, the timed form, or one JSON object a line as containers and the journal keep them.

use super::reader::Reader;
use serde_json::Value;

/// Longer lines are cut; no engine writes anything decisive behind that.
const LONGEST_LINE: usize = 64 * 1024;
/// A log in the timed form is one JSON document and must be held whole.
const LARGEST_DOCUMENT: usize = 64 * 1024 * 1024;

/// Why a log could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    #[error("the log begins as JSON but is not whole: {0}")]
    Broken(String),
    #[error("a log in the timed form may have {} MiB at most; give the plain lines", LARGEST_DOCUMENT >> 20)]
    TooLarge,
}

/// The form of a log, as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Undecided,
    Lines,
    Document,
}

/// Turns bytes into lines for a [`Reader`], in bounded memory however long the log is.
#[derive(Debug)]
pub struct Feed {
    reader: Reader,
    form: Form,
    held: Vec<u8>,
    /// The rest of the present line is too long to be kept.
    skipping: bool,
}

impl Feed {
    pub fn new(reader: Reader) -> Feed {
        Feed {
            reader,
            form: Form::Undecided,
            held: Vec::new(),
            skipping: false,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), FeedError> {
        if self.form == Form::Undecided {
            self.held.extend_from_slice(bytes);
            self.form = guess(&self.held);
            if self.form != Form::Lines {
                return Ok(());
            }
            let held = std::mem::take(&mut self.held);
            return self.push(&held);
        }
        if self.form == Form::Document {
            if self.held.len() + bytes.len() > LARGEST_DOCUMENT {
                return Err(FeedError::TooLarge);
            }
            self.held.extend_from_slice(bytes);
            return Ok(());
        }
        let mut rest = bytes;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, tail) = rest.split_at(end);
            self.keep(line);
            self.line();
            rest = tail.get(1..).unwrap_or_default();
        }
        self.keep(rest);
        Ok(())
    }

    /// The log has ended.
    pub fn finish(mut self) -> Result<Reader, FeedError> {
        if self.form == Form::Document {
            let document = serde_json::from_slice(&self.held)
                .map_err(|error| FeedError::Broken(error.to_string()))?;
            take(&document, &mut self.reader);
            return Ok(self.reader);
        }
        if self.form == Form::Undecided {
            self.form = Form::Lines;
            let held = std::mem::take(&mut self.held);
            self.push(&held)?;
        }
        self.line();
        Ok(self.reader)
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.held.len());
        self.skipping |= bytes.len() > room;
        self.held
            .extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    fn line(&mut self) {
        self.skipping = false;
        if self.held.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(&self.held);
        match wrapped(&text) {
            Some(line) => self.reader.read(&line),
            None => self.reader.read(&text),
        };
        drop(text);
        self.held.clear();
    }
}

/// Plain lines, unless the log begins like a JSON document: `[` and then an object, an array or a string.
fn guess(bytes: &[u8]) -> Form {
    let mut marks = bytes.iter().filter(|byte| !byte.is_ascii_whitespace());
    match (marks.next(), marks.next()) {
        (None, _) | (Some(b'[' | b'{'), None) => Form::Undecided,
        (Some(b'['), Some(b'{' | b'[')) => Form::Document,
        (Some(b'{'), Some(b'"')) => match memchr::memchr(b'\n', bytes) {
            None if bytes.len() < LONGEST_LINE => Form::Undecided,
            Some(end)
                if serde_json::from_slice::<Value>(bytes.get(..end).unwrap_or_default())
                    .is_err() =>
            {
                Form::Document
            }
            _ => Form::Lines,
        },
        _ => Form::Lines,
    }
}

/// The message inside a line that is a JSON object, as Docker and `journalctl -o json` write it.
fn wrapped(line: &str) -> Option<String> {
    line.starts_with('{').then_some(())?;
    let value: Value = serde_json::from_str(line).ok()?;
    Some(text(&value)?.to_string())
}

fn text(entry: &Value) -> Option<&str> {
    ["line", "text", "log", "MESSAGE", "message", "msg"]
        .iter()
        .find_map(|name| entry.get(name)?.as_str())
}

/// Seconds of an entry, under the names that such forms use.
fn seconds(entry: &Value) -> Option<f64> {
    let number = |name: &str| entry.get(name).and_then(Value::as_f64);
    ["t_s", "t", "s", "at_s", "at", "seconds", "time_s", "time"]
        .iter()
        .find_map(|name| number(name))
        .or_else(|| {
            ["t_ms", "ms", "at_ms"]
                .iter()
                .find_map(|name| Some(number(name)? / 1e3))
        })
        .filter(|seconds| seconds.is_finite())
}

/// A whole document: an array of entries, or an object that holds one beside figures of its own.
fn take(document: &Value, reader: &mut Reader) {
    match document {
        Value::Array(entries) => entries.iter().for_each(|entry| take_entry(entry, reader)),
        Value::Object(fields) => {
            if text(document).is_some() {
                take_entry(document, reader);
            }
            for entries in fields.values().filter_map(Value::as_array) {
                entries.iter().for_each(|entry| take_entry(entry, reader));
            }
            let end = ["now_s", "end_s", "until_s", "ended_s", "duration_s"];
            let end = end.iter().find_map(|name| fields.get(*name)?.as_f64());
            if let Some(end) = end.filter(|end| end.is_finite()) {
                reader.pulse.tick(end);
            }
        }
        _ => {}
    }
}

fn take_entry(entry: &Value, reader: &mut Reader) {
    let (at, line) = match entry {
        Value::Array(pair) => (
            pair.iter().find_map(Value::as_f64),
            pair.iter().find_map(Value::as_str),
        ),
        Value::String(line) => (None, Some(line.as_str())),
        other => (seconds(other), text(other)),
    };
    if let Some(busy) = busy(entry) {
        reader.cards_at(busy);
    }
    match (at.filter(|at| at.is_finite()), line) {
        (Some(at), Some(line)) => {
            reader.read_at(line, at);
        }
        (None, Some(line)) => {
            reader.read(line);
        }
        (Some(at), None) => reader.pulse.tick(at),
        (None, None) => {}
    }
}

/// How busy the cards were, wherever an entry says it: the least and the most.
fn busy(entry: &Value) -> Option<(u32, u32)> {
    let named = |name: &str| name.contains("util") || name.contains("busy");
    let mut found = Vec::new();
    let mut open: Vec<(bool, &Value)> = vec![(false, entry)];
    while let Some((counts, value)) = open.pop() {
        match value {
            Value::Object(fields) => open.extend(
                fields
                    .iter()
                    .map(|(name, value)| (counts || named(name), value)),
            ),
            Value::Array(values) => open.extend(values.iter().map(|value| (counts, value))),
            Value::Number(number) if counts => {
                found.extend(number.as_f64().map(|pct| pct.clamp(0.0, 100.0) as u32))
            }
            _ => {}
        }
    }
    found.iter().min().copied().zip(found.iter().max().copied())
}

#[cfg(test)]
#[path = "timed_tests.rs"]
mod tests;
