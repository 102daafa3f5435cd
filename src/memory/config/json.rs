//! JSON as Python writes it: a byte order mark, `NaN` and `Infinity` happen in real configurations.

use crate::memory::error::MemoryError;
use serde_json::Value;

/// Parses `text`. The three names that Python adds to JSON become null.
pub fn parse(text: &str) -> Result<Value, MemoryError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(MemoryError::NotConfig("it is empty".into()));
    }
    serde_json::from_str(text)
        .or_else(|first| serde_json::from_str(&plain(text)).map_err(|_| first))
        .map_err(|error| MemoryError::NotConfig(format!("it is not JSON: {error}")))
}

/// `text` with `NaN`, `Infinity` and `-Infinity` outside of strings as `null`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut quoted = false;
    while let Some(c) = rest.chars().next() {
        if !quoted
            && let Some(name) = ["-Infinity", "Infinity", "NaN"]
                .iter()
                .find(|name| rest.starts_with(**name))
        {
            out.push_str("null");
            rest = rest.get(name.len()..).unwrap_or_default();
            continue;
        }
        let mut taken = c.len_utf8();
        if c == '"' {
            quoted = !quoted;
        } else if quoted && c == '\\' {
            taken += rest.chars().nth(1).map_or(0, char::len_utf8);
        }
        let (head, tail) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        out.push_str(head);
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_adds_to_json_is_read() {
        let value = parse(
            "\u{feff}{\"a\": [0.0, Infinity, -Infinity], \"NaN\": \"In\\\"finity NaN\", \"c\": NaN}",
        );
        assert_eq!(
            value,
            Ok(serde_json::json!({"a": [0.0, null, null], "NaN": "In\"finity NaN", "c": null}))
        );
        for bad in ["", "  ", "{", "<html>", "NaN NaN", "{\"a\": \"\\"] {
            assert!(
                matches!(parse(bad), Err(MemoryError::NotConfig(_))),
                "{bad}"
            );
        }
    }
}
