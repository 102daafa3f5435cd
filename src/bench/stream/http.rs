//! HTTP/1.1 responses, decoded as they arrive.
//!
//! Pure: bytes go in, parts come out, nothing is read from a socket. The body is handed out in place, as slices of the input.

use memchr::memchr;
use thiserror::Error;

/// Most bytes of a head, or of a chunk's size line, that are accepted.
const LINE_LIMIT: usize = 64 * 1024;

/// What is not HTTP/1.1 as the standard has it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpError {
    #[error("the answer does not begin like HTTP/1.1: {0:?}")]
    NotHttp(String),
    #[error("the answer's head is longer than 64 KiB")]
    HeadTooLong,
    #[error("the answer's Content-Length is not a number: {0:?}")]
    Length(String),
    #[error("a chunk of the answer has no valid size: {0:?}")]
    ChunkSize(String),
    #[error("a chunk of the answer is longer than its size says")]
    ChunkEnd,
    #[error(
        "the answer is compressed ({0}), which only gzip and deflate may be here; it was asked not to be at all, so look at what lies between"
    )]
    Compressed(String),
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Gzip,
    Deflate,
}

/// Status and the headers that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// Lower case, without parameters; empty if absent.
    pub content_type: String,
    pub encoding: Option<Encoding>,
    /// Whether the connection may serve another request once the body has ended.
    pub keep_alive: bool,
}

/// What the next bytes of a response are.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The head is complete: [`Decoder::head`].
    Head,
    Body(&'a [u8]),
    /// The body has ended by its own framing.
    End,
}

/// How the end of the body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    UntilClose,
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailers,
    Done,
}

/// An incremental response decoder. One for each response.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// A head or line that is not complete yet.
    partial: Vec<u8>,
    head: Option<Head>,
    /// The head was handed out and its body is next.
    announced: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder {
            state: State::Head,
            partial: Vec::new(),
            head: None,
            announced: false,
        }
    }
}

impl Decoder {
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Whether the body has ended by its own framing.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether a connection that closes now ends the body as it should.
    pub fn may_close(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// Whether the next byte is the first of a chunk.
    pub fn is_between_chunks(&self) -> bool {
        self.state == State::ChunkSize && self.announced && self.partial.is_empty()
    }

    /// The next part of `input`, which is advanced past it. `None` when all of it is used up.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Part<'a>>, HttpError> {
        loop {
            match self.state {
                State::Head => {
                    if !self.take_head(input)? {
                        return Ok(None);
                    }
                }
                State::Done if self.announced => {
                    self.announced = false;
                    return Ok(Some(Part::End));
                }
                State::Done => return Ok(None),
                _ if !self.announced => {
                    self.announced = true;
                    return Ok(Some(Part::Head));
                }
                State::UntilClose => return Ok(take(input, u64::MAX).map(Part::Body)),
                State::Length(left) => {
                    let Some(body) = take(input, left) else {
                        return Ok(None);
                    };
                    self.state = match left - body.len() as u64 {
                        0 => State::Done,
                        left => State::Length(left),
                    };
                    return Ok(Some(Part::Body(body)));
                }
                State::ChunkData(left) => {
                    let Some(body) = take(input, left) else {
                        return Ok(None);
                    };
                    self.state = match left - body.len() as u64 {
                        0 => State::ChunkEnd,
                        left => State::ChunkData(left),
                    };
                    return Ok(Some(Part::Body(body)));
                }
                State::ChunkSize | State::ChunkEnd | State::Trailers => {
                    if !self.take_chunk_line(input)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Reads one line of the chunked framing; false if it is not complete.
    fn take_chunk_line(&mut self, input: &mut &[u8]) -> Result<bool, HttpError> {
        // A line that lies in the input whole is read where it lies.
        let line = match memchr(b'\n', input).and_then(|at| input.split_at_checked(at + 1)) {
            Some((line, rest)) if self.partial.is_empty() => {
                *input = rest;
                line
            }
            _ if take_line(&mut self.partial, input)? => &self.partial,
            _ => return Ok(false),
        };
        let line = line.trim_ascii_end();
        self.state = match self.state {
            State::ChunkEnd if line.is_empty() => State::ChunkSize,
            State::ChunkEnd => return Err(HttpError::ChunkEnd),
            State::Trailers if line.is_empty() => State::Done,
            State::Trailers => State::Trailers,
            _ => match chunk_size(line)? {
                0 => State::Trailers,
                size => State::ChunkData(size),
            },
        };
        self.partial.clear();
        Ok(true)
    }

    /// Gathers the head; true once a final one (not 1xx) is complete.
    fn take_head(&mut self, input: &mut &[u8]) -> Result<bool, HttpError> {
        loop {
            if !take_line(&mut self.partial, input)? {
                return Ok(false);
            }
            let (ended, _) = self.partial.split_last_chunk::<1>().unwrap_or((&[], &[0]));
            let start = ended
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at + 1);
            let line = self.partial.get(start..).unwrap_or_default();
            if start == 0 && !line.starts_with(b"HTTP/1.") {
                // Blank lines before the status line are passed over, as RFC 9112 section 2.2 advises.
                if line.trim_ascii().is_empty() {
                    self.partial.clear();
                    continue;
                }
                return Err(HttpError::NotHttp(excerpt(line)));
            }
            if !line.trim_ascii().is_empty() {
                continue;
            }
            let (head, framing) = parse_head(&self.partial)?;
            self.partial.clear();
            // 101 cannot come: no upgrade was asked for. The other 1xx are followed by the real head.
            if (100..200).contains(&head.status) {
                continue;
            }
            let bodiless = matches!(head.status, 204 | 304);
            self.state = match framing {
                _ if bodiless => State::Length(0),
                Framing::Length(n) => State::Length(n),
                Framing::Chunked => State::ChunkSize,
                Framing::UntilClose => State::UntilClose,
            };
            self.head = Some(head);
            return Ok(true);
        }
    }
}

/// Up to `most` bytes off the front; `None` if there are none and some are wanted.
fn take<'a>(input: &mut &'a [u8], most: u64) -> Option<&'a [u8]> {
    if input.is_empty() && most > 0 {
        return None;
    }
    let n = usize::try_from(most).map_or(input.len(), |most| most.min(input.len()));
    let (body, rest) = input.split_at_checked(n)?;
    *input = rest;
    Some(body)
}

/// Moves bytes up to and with the next line feed into `partial`; false if there is none.
fn take_line(partial: &mut Vec<u8>, input: &mut &[u8]) -> Result<bool, HttpError> {
    let end = memchr(b'\n', input);
    let n = end.map_or(input.len(), |at| at + 1);
    if partial.len() + n > LINE_LIMIT {
        return Err(HttpError::HeadTooLong);
    }
    let Some((line, rest)) = input.split_at_checked(n) else {
        return Ok(false);
    };
    partial.extend_from_slice(line);
    *input = rest;
    Ok(end.is_some())
}

fn chunk_size(line: &[u8]) -> Result<u64, HttpError> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default();
    let bad = || HttpError::ChunkSize(excerpt(line));
    let digits = std::str::from_utf8(digits.trim_ascii()).map_err(|_| bad())?;
    if digits.starts_with('+') {
        return Err(bad());
    }
    u64::from_str_radix(digits, 16).map_err(|_| bad())
}

fn parse_head(bytes: &[u8]) -> Result<(Head, Framing), HttpError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let status_line = lines.next().unwrap_or_default();
    let mut words = status_line.split_ascii_whitespace();
    let version = words.next().unwrap_or_default();
    let status = words
        .next()
        .and_then(|s| s.parse::<u16>().ok())
        .filter(|s| (100..1000).contains(s))
        .ok_or_else(|| HttpError::NotHttp(excerpt(status_line.as_bytes())))?;
    let mut head = Head {
        status,
        content_type: String::new(),
        encoding: None,
        keep_alive: version != "HTTP/1.0",
    };
    let mut length = None;
    let mut chunked = false;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "content-type" => {
                let kind = value.split(';').next().unwrap_or_default();
                head.content_type = kind.trim().to_ascii_lowercase();
            }
            "content-length" => {
                // A list of equal lengths counts as one (RFC 9110 section 8.6).
                let first = value.split(',').next().unwrap_or_default().trim();
                let n = first
                    .parse::<u64>()
                    .map_err(|_| HttpError::Length(excerpt(value.as_bytes())))?;
                length = Some(n);
            }
            "transfer-encoding" => {
                chunked |= has_word(value, "chunked");
                let codings = value.split(',').map(str::trim);
                for coding in codings.filter(|c| !c.eq_ignore_ascii_case("chunked")) {
                    compress(&mut head, coding)?;
                }
            }
            "connection" => {
                if has_word(value, "close") {
                    head.keep_alive = false;
                } else if has_word(value, "keep-alive") {
                    head.keep_alive = true;
                }
            }
            "content-encoding" => {
                for coding in value.split(',').map(str::trim) {
                    compress(&mut head, coding)?;
                }
            }
            _ => {}
        }
    }
    let framing = match length {
        _ if chunked => Framing::Chunked,
        Some(n) => Framing::Length(n),
        None => Framing::UntilClose,
    };
    head.keep_alive &= framing != Framing::UntilClose;
    Ok((head, framing))
}

/// Notes that the body is compressed so, if that is known here and it is the only time.
fn compress(head: &mut Head, coding: &str) -> Result<(), HttpError> {
    let known = match coding.to_ascii_lowercase().as_str() {
        "" | "identity" => return Ok(()),
        "gzip" | "x-gzip" => Some(Encoding::Gzip),
        "deflate" => Some(Encoding::Deflate),
        _ => None,
    };
    if known.is_none() || head.encoding.is_some() {
        return Err(HttpError::Compressed(excerpt(coding.as_bytes())));
    }
    head.encoding = known;
    Ok(())
}

fn has_word(list: &str, word: &str) -> bool {
    list.split(',').any(|w| w.trim().eq_ignore_ascii_case(word))
}

fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..60).unwrap_or(bytes)).into_owned();
    crate::units::clean(text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Whole = (Option<Head>, Vec<u8>, bool);

    fn decode(wire: &[u8], cut: usize) -> Result<Whole, HttpError> {
        let mut decoder = Decoder::default();
        let mut body = Vec::new();
        let mut ended = false;
        for piece in wire.chunks(cut.max(1)) {
            let mut rest = piece;
            while let Some(part) = decoder.next(&mut rest)? {
                match part {
                    Part::Head => {}
                    Part::Body(bytes) => body.extend_from_slice(bytes),
                    Part::End => ended = true,
                }
            }
        }
        assert_eq!(ended, decoder.is_done());
        Ok((decoder.head().cloned(), body, ended))
    }

    fn both(wire: &[u8]) -> (Head, Vec<u8>, bool) {
        let whole = decode(wire, wire.len()).unwrap();
        for cut in 1..20 {
            assert_eq!(decode(wire, cut).unwrap(), whole, "cut {cut}");
        }
        (whole.0.unwrap(), whole.1, whole.2)
    }

    #[test]
    fn chunks_with_extensions_and_trailers() {
        let (head, body, ended) = both(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n5;name=\"a;b\"\r\nhello\r\n1 \r\n!\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n",
        );
        assert_eq!(body, b"hello!");
        assert!(ended && head.keep_alive);
        assert_eq!(head.content_type, "text/event-stream");
        assert_eq!(head.encoding, Some(Encoding::Gzip));
    }

    #[test]
    fn lengths_and_closes() {
        let (head, body, ended) = both(b"HTTP/1.1 500 Oh\r\ncontent-length: 3\r\n\r\nabcjunk");
        assert_eq!(
            (head.status, body.as_slice(), ended),
            (500, &b"abc"[..], true)
        );
        let (head, body, ended) = both(b"HTTP/1.1 200 OK\n\nabc");
        assert_eq!((body.as_slice(), ended), (&b"abc"[..], false));
        assert!(!head.keep_alive);
        let (head, _, ended) =
            both(b"HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 0\r\n\r\n");
        assert!(ended && !head.keep_alive);
        let (_, body, ended) = both(b"HTTP/1.1 204 No\r\n\r\n");
        assert!(ended && body.is_empty());
        let (head, ..) =
            both(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\ncontent-length: 0\r\n\r\n");
        assert!(head.keep_alive);
    }

    #[test]
    fn interim_heads_are_passed_over() {
        let (head, body, _) = both(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nz",
        );
        assert_eq!((head.status, body.as_slice()), (200, &b"z"[..]));
    }

    proptest::proptest! {
        #[test]
        fn cuts_of_anything_agree(
            head in "HTTP/1.[01] [0-9]{1,4}[a-z ]{0,3}\r?\n((transfer-encoding|content-length|connection|x): ?(chunked|[0-9]{0,3}|close)\r?\n){0,3}\r?\n",
            body in "([0-9a-f]{1,2}(;x)?\r\n|[a-z]{0,4}|\r\n|0\r\n\r\n){0,8}",
            cut in 1usize..9,
        ) {
            let wire = format!("{head}{body}");
            proptest::prop_assert_eq!(decode(wire.as_bytes(), cut), decode(wire.as_bytes(), wire.len()));
        }
    }

    #[test]
    fn what_is_not_http_is_refused() {
        let bad: [(&[u8], &str); 7] = [
            (b"SSH-2.0-OpenSSH_9\r\n", "SSH-2.0"),
            (b"HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 abc"),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
                "Content-Length",
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                "size",
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n",
                "longer",
            ),
            (b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\n", "(br)"),
            (
                b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip, gzip\r\n\r\n",
                "(gzip)",
            ),
        ];
        for (wire, says) in bad {
            let error = decode(wire, wire.len()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let long = [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'a'; 70_000]].concat();
        assert_eq!(decode(&long, 1000), Err(HttpError::HeadTooLong));
    }
}
