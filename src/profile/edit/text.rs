//! Byte edits of a TOML text.

use std::ops::Range;
use toml_edit::{Item, Value};

/// The bytes of `range` become `new`.
pub(super) struct Edit {
    range: Range<usize>,
    new: String,
}

impl Edit {
    pub fn new(range: Range<usize>, new: impl Into<String>) -> Self {
        Edit {
            range,
            new: new.into(),
        }
    }
}

/// `text` with all `edits` done; `None` if two of them overlap or one lies outside.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|edit| edit.range.start);
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for edit in &edits {
        out.push_str(text.get(at..edit.range.start)?);
        out.push_str(&edit.new);
        at = edit.range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// `text` as a TOML string.
pub(super) fn string(text: &str) -> String {
    Value::from(text).to_string()
}

/// The line end that the file uses.
pub(super) fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// A new entry `name = value` beside the existing `sibling` of the table `item`, in the form that the sibling has.
pub(super) fn add_after(
    text: &str,
    item: &Item,
    sibling: &str,
    name: &str,
    value: &str,
) -> Option<Edit> {
    let (key, old) = item.as_table_like()?.get_key_value(sibling)?;
    let (key_start, value_end) = (key.span()?.start, old.span()?.end);
    let entry_start = text
        .get(..key_start)?
        .rfind(['\n', '{', ','])
        .map_or(0, |at| at + 1);
    // Indentation and, in `profile.x.url = …`, the path before the last part.
    let prefix = text.get(entry_start..key_start)?;
    if item.is_inline_table() {
        let new = format!(", {}{name} = {value}", prefix.trim_start());
        return Some(Edit::new(value_end..value_end, new));
    }
    let at = line_stop(text, value_end);
    Some(Edit::new(
        at..at,
        format!("{}{prefix}{name} = {value}", line_end(text)),
    ))
}

/// A new line after the one on which byte `at` lies.
pub(super) fn add_line(text: &str, at: usize, line: &str) -> Edit {
    let at = line_stop(text, at);
    Edit::new(at..at, format!("{}{line}", line_end(text)))
}

/// Removes the lines that hold the entry `key` of the table `item`.
pub(super) fn remove_lines(text: &str, item: &Item, key: &str) -> Option<Edit> {
    let (name, value) = item.as_table_like()?.get_key_value(key)?;
    let start = text
        .get(..name.span()?.start)?
        .rfind('\n')
        .map_or(0, |at| at + 1);
    let value_end = value.span()?.end;
    let end = text
        .get(value_end..)?
        .find('\n')
        .map_or(text.len(), |at| value_end + at + 1);
    Some(Edit::new(start..end, ""))
}

/// Where the line of byte `at` stops, before its line end.
fn line_stop(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let line = rest.split_once('\n').map_or(rest, |(line, _)| line);
    at + line.strip_suffix('\r').unwrap_or(line).len()
}
