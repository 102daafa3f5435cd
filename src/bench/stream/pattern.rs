//! Events of one stream mostly differ in their text alone. Once one is parsed, another that has the same bytes before and after the
//! text is known without parsing it again: what was parsed cannot come out differently.

/// Which field the text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Of the answer.
    Answer,
    /// Of the thinking.
    Thought,
}

/// The bytes around the text of an event, with the quotes that enclose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    before: Vec<u8>,
    after: Vec<u8>,
    pub field: Field,
}

impl Pattern {
    /// From an event and its text, if that lies in the event as it is: one with escapes does not.
    pub fn learn(event: &[u8], text: &str, field: Field) -> Option<Pattern> {
        let start = (text.as_ptr() as usize).checked_sub(event.as_ptr() as usize)?;
        let (before, rest) = event.split_at_checked(start)?;
        let (inside, after) = rest.split_at_checked(text.len())?;
        let is_whole =
            inside == text.as_bytes() && before.ends_with(b"\"") && after.starts_with(b"\"");
        is_whole.then(|| Pattern {
            before: before.to_vec(),
            after: after.to_vec(),
            field,
        })
    }

    /// The text of an event that has this pattern.
    pub fn text<'a>(&self, event: &'a [u8]) -> Option<&'a str> {
        let inside = event
            .strip_prefix(self.before.as_slice())?
            .strip_suffix(self.after.as_slice())?;
        // A quote would end the text, a backslash begins an escape, and a bare control character is no JSON.
        let plain = |b: &u8| *b >= 0x20 && *b != b'"' && *b != b'\\';
        if inside.is_empty() || !inside.iter().all(plain) {
            return None;
        }
        std::str::from_utf8(inside).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(event: &str, text: &str) -> Option<Pattern> {
        let at = event.find(text)?;
        let text = event.get(at..at + text.len())?;
        Pattern::learn(event.as_bytes(), text, Field::Answer)
    }

    #[test]
    fn only_the_text_may_differ() {
        let one = r#"{"id":1,"choices":[{"delta":{"content":"one"}}]}"#;
        let pattern = pattern(one, "one").unwrap();
        let text = |event: &str| pattern.text(event.as_bytes()).map(str::to_string);
        let with = |inside: &str| one.replace("one", inside);
        assert_eq!(text(&with("two \u{fc}")), Some("two \u{fc}".into()));
        for other in [
            with(""),
            with(r#"a\n"#),
            with("a\nb"),
            with(r#"a","role":"b"#),
            with("two").replace("1", "2"),
            with("two") + " ",
        ] {
            assert_eq!(text(&other), None, "{other}");
        }
        assert_eq!(
            pattern.text(b"{\"id\":1,\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}"),
            None
        );
    }

    #[test]
    fn what_was_copied_or_has_no_quotes_is_no_pattern() {
        let event = r#"{"choices":[{"text":"one"}]}"#;
        let copied = String::from("one");
        assert_eq!(
            Pattern::learn(event.as_bytes(), copied.as_str(), Field::Answer),
            None
        );
        assert_eq!(pattern(event, "ne"), None);
        assert!(pattern(event, "one").is_some());
    }
}
