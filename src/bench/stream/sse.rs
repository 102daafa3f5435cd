//! Server-sent events, decoded as they arrive (WHATWG HTML section 9.2.6).
//!
//! An event is complete with its blank line, wherever the reads were cut: inside a line, a line end, or a character.

use memchr::{memchr, memchr2};

/// Most bytes of one event that are accepted.
const EVENT_LIMIT: usize = 16 * 1024 * 1024;

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A complete event with data. `name` is its `event:` field, empty if it has none.
    Event { name: &'a [u8], data: &'a [u8] },
    /// A comment line: a sign of life, no event.
    Comment,
}

/// An event that never ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than 16 MiB")]
pub struct TooLong;

/// An incremental event decoder. One for each body.
#[derive(Debug, Default)]
pub struct Decoder {
    /// A line that the last read cut.
    partial: Vec<u8>,
    /// The data lines of the event so far, joined by line feeds.
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    /// The last byte was a carriage return that ended a line: a line feed after it belongs to it.
    after_cr: bool,
    /// The first line was seen, so no byte order mark can follow.
    begun: bool,
}

impl Decoder {
    /// Whether the next byte is the first of an event.
    pub fn is_between_events(&self) -> bool {
        let has_line = !self.partial.is_empty() || self.after_cr;
        self.begun && !has_line && !self.has_data && self.name.is_empty()
    }

    /// Decodes `input` and calls `on` for each item. An event of one data line that lies in `input` whole is not copied.
    pub fn feed(&mut self, mut input: &[u8], mut on: impl FnMut(Item<'_>)) -> Result<(), TooLong> {
        // A data line of this very input that waits for its blank line.
        let mut held: Option<&[u8]> = None;
        loop {
            if self.after_cr && !input.is_empty() {
                self.after_cr = false;
                if let Some(rest) = input.strip_prefix(b"\n") {
                    input = rest;
                }
            }
            let Some(end) = memchr2(b'\n', b'\r', input) else {
                break;
            };
            let (line, rest) = input.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            input = rest.get(1..).unwrap_or_default();
            if self.partial.is_empty() {
                held = self.line(line, held, &mut on);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                // What is held would be of an earlier input, and that was put into `data`.
                if let Some(data) = self.line(&whole, None, &mut on) {
                    self.keep(data);
                }
                whole.clear();
                self.partial = whole;
            }
        }
        if let Some(data) = held {
            self.keep(data);
        }
        self.partial.extend_from_slice(input);
        if self.partial.len() + self.data.len() > EVENT_LIMIT {
            return Err(TooLong);
        }
        Ok(())
    }

    /// The body has ended as it should: an event that lacks only its blank line counts, half a line does not.
    pub fn finish(&mut self, mut on: impl FnMut(Item<'_>)) {
        self.partial.clear();
        self.dispatch(None, &mut on);
    }

    /// One complete line. `held` is the data of the event so far if none of it was copied; so is the result.
    fn line<'a>(
        &mut self,
        line: &'a [u8],
        held: Option<&'a [u8]>,
        on: &mut impl FnMut(Item<'_>),
    ) -> Option<&'a [u8]> {
        let line = if self.begun {
            line
        } else {
            self.begun = true;
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            self.dispatch(held, on);
            return None;
        }
        let colon = memchr(b':', line);
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"" => on(Item::Comment),
            b"data" => {
                if held.is_none() && !self.has_data {
                    return Some(value);
                }
                if let Some(first) = held {
                    self.keep(first);
                }
                self.keep(value);
                return None;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // `id`, `retry` and unknown fields say nothing here.
            _ => {}
        }
        held
    }

    fn keep(&mut self, data: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(data);
    }

    fn dispatch(&mut self, held: Option<&[u8]>, on: &mut impl FnMut(Item<'_>)) {
        let data = held.unwrap_or(&self.data);
        if !data.is_empty() {
            on(Item::Event {
                name: &self.name,
                data,
            });
        }
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(wire: &[u8], cuts: &[usize], clean_end: bool) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut seen = Vec::new();
        let mut on = |item: Item<'_>| {
            seen.push(match item {
                Item::Comment => "comment".to_string(),
                Item::Event { name, data } => format!(
                    "{}|{}",
                    String::from_utf8_lossy(name),
                    String::from_utf8_lossy(data)
                ),
            });
        };
        let mut rest = wire;
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let n = cuts
                .next()
                .map_or(rest.len(), |n| (*n).clamp(1, rest.len()));
            let (piece, more) = rest.split_at(n);
            decoder.feed(piece, &mut on).unwrap();
            rest = more;
        }
        if clean_end {
            decoder.finish(&mut on);
        }
        seen
    }

    #[test]
    fn all_line_ends_comments_and_many_data_lines() {
        let lf = "\u{feff}: hi\n\ndata: a\ndata:b\ndata\n\nevent: error\nid: 7\ndata:  x: y\n\n\n\nretry: 5\n\nevent: lost\n\ndata: ü🚀\n\n";
        let want = ["comment", "|a\nb\n", "error| x: y", "|ü🚀"];
        for wire in [
            lf.to_string(),
            lf.replace('\n', "\r\n"),
            lf.replace('\n', "\r"),
        ] {
            assert_eq!(decode(wire.as_bytes(), &[], false), want, "{wire:?}");
            for cuts in [&[1][..], &[2], &[3, 1], &[7, 2, 1], &[64, 1]] {
                assert_eq!(decode(wire.as_bytes(), cuts, false), want, "{cuts:?}");
            }
        }
    }

    #[test]
    fn a_clean_end_completes_a_line_and_never_half_a_line() {
        assert_eq!(decode(b"data: a\n\ndata: b\n", &[], true), ["|a", "|b"]);
        assert_eq!(decode(b"data: a\n\ndata: b\n", &[], false), ["|a"]);
        assert_eq!(decode(b"data: a\n\ndata: b", &[], true), ["|a"]);
    }

    #[test]
    fn an_endless_event_is_given_up() {
        let mut decoder = Decoder::default();
        let piece = vec![b'x'; 1 << 20];
        let result = (0..20).try_for_each(|_| decoder.feed(&piece, |_| {}));
        assert_eq!(result, Err(TooLong));
    }

    proptest::proptest! {
        #[test]
        fn cuts_change_nothing(
            text in "(data: ?[a-z:\u{e9}]{0,9}|:x|event: e|id|)?(\r\n|\n|\r)(data: [a-z]{1,3})?(\r\n|\r|\n){1,3}(data:a)?\n",
            cuts in proptest::collection::vec(1usize..9, 1..6),
        ) {
            proptest::prop_assert_eq!(decode(text.as_bytes(), &cuts, true), decode(text.as_bytes(), &[], true));
        }
    }
}
