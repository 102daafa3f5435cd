//! What a server says when it says no: the many forms of an error body, and whether it is about the context length.

use crate::engine::is_over_limit;
use crate::units::clean;
use serde_json::Value;

/// Most characters of a server's message that are kept.
const MESSAGE_LIMIT: usize = 400;

/// An error in the server's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code inside the body, where it has one.
    pub code: Option<i64>,
    /// Cleaned and cut to a readable length.
    pub message: String,
    /// The request was longer than the context.
    pub over_context: bool,
}

impl Refusal {
    /// From the bytes of an error body: JSON of any known form, or text.
    pub fn from_body(body: &[u8]) -> Refusal {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Refusal::from_json(&value),
            Err(_) => Refusal::from_text(&String::from_utf8_lossy(body)),
        }
    }

    /// `{"error":{"message","type","code"}}`, `{"error":"…"}`, `{"message","code"}`, `{"detail":…}`, or the object within `error`.
    pub fn from_json(value: &Value) -> Refusal {
        let inner = value.get("error").filter(|e| !e.is_null()).unwrap_or(value);
        let message = ["message", "detail", "msg", "error"]
            .iter()
            .find_map(|key| inner.get(key))
            .unwrap_or(inner);
        let mut text = match message {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let word = |name: &str| inner.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = word("type");
        if text.is_empty() {
            text = if kind.is_empty() { "no message" } else { kind }.to_string();
        }
        let code = inner.get("code").and_then(|code| {
            code.as_i64()
                .or_else(|| code.as_str().and_then(|text| text.parse().ok()))
        });
        Refusal {
            code,
            over_context: is_over_limit([kind, word("code")], &text),
            message: tidy(&text),
        }
    }

    fn from_text(text: &str) -> Refusal {
        let text = if text.trim_start().starts_with('<') {
            without_tags(text)
        } else {
            text.to_string()
        };
        Refusal {
            code: None,
            over_context: is_over_limit([""; 2], &text),
            message: match tidy(&text) {
                empty if empty.is_empty() => "no message".to_string(),
                message => message,
            },
        }
    }
}

/// One line, without what a terminal would obey, not longer than a few screen lines.
pub fn tidy(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cleaned = clean(&joined);
    match cleaned.char_indices().nth(MESSAGE_LIMIT) {
        None => cleaned,
        Some((at, _)) => format!("{}…", cleaned.get(..at).unwrap_or_default()),
    }
}

fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    for c in html.chars() {
        match c {
            '<' => in_tag = true,
            '>' => {
                in_tag = false;
                text.push(' ');
            }
            c if !in_tag => text.push(c),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_give_their_words() {
        let forms: [(&str, Option<i64>, &str, bool); 10] = [
            (
                r#"{"error":{"message":"min_tokens must be less than or equal to max_tokens=12, got 64.","type":"BadRequestError","code":400}}"#,
                Some(400),
                "min_tokens must be",
                true,
            ),
            (
                r#"{"error":{"code":400,"message":"request (2148 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error"}}"#,
                Some(400),
                "request (2148 tokens)",
                true,
            ),
            (
                r#"{"object":"error","message":"The input (8292 tokens) is longer than the model's context length (8192 tokens).","code":400}"#,
                Some(400),
                "The input (8292",
                true,
            ),
            (
                r#"{"error":{"message":"Input length (70000 tokens) exceeds the maximum allowed length (65530 tokens).","code":"400"}}"#,
                Some(400),
                "Input length",
                true,
            ),
            (
                r#"{"error":"CUDA out of memory"}"#,
                None,
                "CUDA out of memory",
                false,
            ),
            (r#"{"detail":"Not Found"}"#, None, "Not Found", false),
            (
                r#"{"detail":[{"msg":"x"}]}"#,
                None,
                r#"[{"msg":"x"}]"#,
                false,
            ),
            (
                r#"{"error":{"message":"","type":"server_error","code":null}}"#,
                None,
                "server_error",
                false,
            ),
            (
                "<html><body><h1>502 Bad Gateway</h1>\u{1b}[31m</body></html>",
                None,
                "502 Bad Gateway",
                false,
            ),
            ("", None, "no message", false),
        ];
        for (body, code, starts, over) in forms {
            let refusal = Refusal::from_body(body.as_bytes());
            assert_eq!((refusal.code, refusal.over_context), (code, over), "{body}");
            assert!(refusal.message.starts_with(starts), "{refusal:?}");
            assert!(!refusal.message.contains('\u{1b}'));
        }
        let long = Refusal::from_body("x ".repeat(5000).as_bytes());
        assert_eq!(long.message.chars().count(), MESSAGE_LIMIT + 1);
    }
}
