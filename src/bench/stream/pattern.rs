//! Events of one stream mostly differ in their text alone. Once one is parsed, another that has the same bytes before and after the
//! text is known without parsing it again: what was parsed cannot come out differently.

use memchr::memchr;

/// Which field the text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Of the answer.
    Answer,
    /// Of the thinking.
    Thought,
}

/// How an event begins and ends on the wire, where it is a chunk of its own.
const DATA: &[u8] = b"data: ";
const END: &[u8] = b"\n\n\r\n";

/// The bytes around the text of an event, with the quotes that enclose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// With [`DATA`] before it.
    before: Vec<u8>,
    /// With [`END`] after it.
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
            before: [DATA, before].concat(),
            after: [after, END].concat(),
            field,
        })
    }

    /// The text of an event that has this pattern.
    pub fn text<'a>(&self, event: &'a [u8]) -> Option<&'a str> {
        let before = self.before.get(DATA.len()..)?;
        let after = self.after.get(..self.after.len() - END.len())?;
        plain(event.strip_prefix(before)?.strip_suffix(after)?)
    }

    /// The text of `wire`, if that is nothing but one chunk with nothing but one event of this pattern: what a server that sends each
    /// token on its own sends at a time.
    pub fn text_of_chunk<'a>(&self, wire: &'a [u8]) -> Option<&'a str> {
        let (line, chunk) = wire.split_at_checked(memchr(b'\n', wire.get(..SIZE_LINE)?)? + 1)?;
        let size = hex(line.strip_suffix(b"\r\n")?)?;
        if size + b"\r\n".len() != chunk.len() {
            return None;
        }
        plain(
            chunk
                .strip_prefix(self.before.as_slice())?
                .strip_suffix(self.after.as_slice())?,
        )
    }
}

/// Most bytes of a chunk's size line that are looked at here, its end included.
const SIZE_LINE: usize = 6;

/// A size in up to four digits, as most are.
fn hex(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0, |sum, digit| {
        let value = char::from(*digit).to_digit(16)? as usize;
        Some(sum * 16 + value)
    })
}

/// What stands between two quotes, if it is a text as it stands.
fn plain(inside: &[u8]) -> Option<&str> {
    // A quote would end the text, a backslash begins an escape, and a bare control character is no JSON.
    let plain = |b: &u8| *b >= 0x20 && *b != b'"' && *b != b'\\';
    if inside.is_empty() || !inside.iter().all(plain) {
        return None;
    }
    std::str::from_utf8(inside).ok()
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
    fn a_chunk_is_known_whole_or_not_at_all() {
        let event = r#"{"choices":[{"delta":{"content":"one"}}]}"#;
        let pattern = pattern(event, "one").unwrap();
        let chunk = |event: &str| format!("{:x}\r\ndata: {event}\n\n\r\n", event.len() + 8);
        let text = |wire: &str| pattern.text_of_chunk(wire.as_bytes()).map(str::to_string);
        let good = chunk(event);
        assert_eq!(text(&good), Some("one".into()));
        let two = chunk(&event.replace("one", "two \u{fc}"));
        assert_eq!(text(&two), Some("two \u{fc}".into()));
        assert_eq!(text(&good.to_uppercase().replace("ONE", "one")), None);
        for other in [
            good.replacen("\r\n", ";x=1\r\n", 1),
            good.replacen("\r\n", "\n", 1),
            good.replacen("data: ", "data:", 1),
            good.replacen("31", "32", 1),
            good.replacen("31", "+31", 1),
            good.replacen("31", "", 1),
            good.clone() + "0",
            good.clone() + &good,
            good.trim_end().to_string(),
            chunk(&event.replace("one", "")),
            chunk(&event.replace("one", r"\n")),
            "0\r\n\r\n".to_string(),
            String::new(),
        ] {
            assert_eq!(text(&other), None, "{other:?}");
        }
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
