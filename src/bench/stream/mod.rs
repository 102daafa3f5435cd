//! The stream reader: bytes and their time stamps in, the state of an answer out. No sockets in here.

mod answer;
mod chunk;
mod http;
mod inflate;
mod pattern;
mod refusal;
mod sse;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Mark};
pub use chunk::{Timings, Usage};
pub use http::Head;
pub use refusal::{Refusal, tidy};

use super::point::{Failure, FailureKind};
use inflate::Inflate;

/// Most bytes of a body that is not a stream.
const BODY_LIMIT: usize = 64 * 1024;

/// How the connection went on after the last byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The body ended by its framing, or everything wanted was read.
    Whole,
    /// The other side closed the connection.
    Closed,
    /// Reading failed, in words (`connection reset by peer`).
    Broken(String),
}

/// The events of a body without the HTTP around it.
#[derive(Debug, Default)]
pub struct Events {
    decoder: sse::Decoder,
    pub answer: Answer,
}

impl Events {
    /// Takes the bytes of one read, stamped `at_ns`.
    pub fn feed(&mut self, bytes: &[u8], at_ns: u64) {
        let answer = &mut self.answer;
        let fed = self.decoder.feed(bytes, |item| answer.take(item, at_ns));
        if let Err(error) = fed {
            answer.malformed.get_or_insert(error.to_string());
        }
    }

    /// The body has ended as it should.
    pub fn finish(&mut self, at_ns: u64) {
        let answer = &mut self.answer;
        self.decoder.finish(|item| answer.take(item, at_ns));
    }
}

/// Reads one HTTP response that should be a stream of events.
#[derive(Debug)]
pub struct Reader {
    http: http::Decoder,
    events: Events,
    /// The body, where it is not a stream.
    body: Vec<u8>,
    /// Decodes the body, where it is compressed.
    inflate: Option<Inflate>,
    /// Bytes came after the end of the body.
    surplus: bool,
}

impl Reader {
    /// A reader for an answer of about `tokens` tokens.
    pub fn new(tokens: usize) -> Self {
        Reader {
            http: http::Decoder::default(),
            events: Events {
                answer: Answer::with_room(tokens),
                ..Events::default()
            },
            body: Vec::new(),
            inflate: None,
            surplus: false,
        }
    }

    pub fn head(&self) -> Option<&Head> {
        self.http.head()
    }

    pub fn answer(&self) -> &Answer {
        &self.events.answer
    }

    pub fn into_answer(self) -> Answer {
        self.events.answer
    }

    /// The body of an answer that is no stream, up to 64 KiB.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The response is whole by its own framing.
    pub fn is_whole(&self) -> bool {
        self.http.is_done()
    }

    /// The connection may serve another request: both sides agree on where this answer ended.
    pub fn may_keep(&self) -> bool {
        self.is_whole() && !self.surplus && self.head().is_some_and(|head| head.keep_alive)
    }

    /// Nothing more is wanted of this stream: it said `[DONE]`, or it failed.
    pub fn is_settled(&self) -> bool {
        let answer = self.answer();
        answer.done || answer.error.is_some() || answer.malformed.is_some()
    }

    /// Takes the bytes of one read, stamped `at_ns`. An error is final.
    pub fn feed(&mut self, bytes: &[u8], at_ns: u64) -> Result<(), Failure> {
        // A chunk that is one more event like the last needs none of what follows; it would come out the same.
        if self.inflate.is_none()
            && self.http.is_between_chunks()
            && self.events.decoder.is_between_events()
            && self.events.answer.take_chunk(bytes, at_ns)
        {
            return Ok(());
        }
        let mut rest = bytes;
        let mut is_stream = self.http.head().is_some_and(streams);
        loop {
            match self.http.next(&mut rest) {
                Ok(None) => {
                    self.surplus |= !rest.is_empty();
                    return Ok(());
                }
                Ok(Some(http::Part::Head)) => {
                    is_stream = self.http.head().is_some_and(streams);
                    let encoding = self.http.head().and_then(|head| head.encoding);
                    self.inflate = encoding.map(Inflate::new);
                }
                Ok(Some(http::Part::Body(bytes))) => {
                    let (events, body) = (&mut self.events, &mut self.body);
                    let mut take = |bytes: &[u8]| match is_stream {
                        true => events.feed(bytes, at_ns),
                        false => keep(body, bytes),
                    };
                    match &mut self.inflate {
                        None => take(bytes),
                        Some(inflate) => inflate.feed(bytes, &mut take).map_err(undecodable)?,
                    }
                }
                Ok(Some(http::Part::End)) => self.events.finish(at_ns),
                Err(error) => {
                    return Err(Failure {
                        kind: FailureKind::Protocol,
                        message: error.to_string(),
                    });
                }
            }
        }
    }

    /// The connection gives nothing more. Says whether the answer is good.
    pub fn end(&mut self, end: &End, at_ns: u64) -> Result<(), Failure> {
        if *end == End::Closed && self.http.may_close() {
            self.events.finish(at_ns);
        }
        let fail = |kind, message: String| Err(Failure { kind, message });
        let broken = match end {
            End::Broken(what) => format!(" ({what})"),
            _ => String::new(),
        };
        let Some(head) = self.http.head() else {
            return fail(
                FailureKind::CutOff,
                format!("the connection was closed before any answer{broken}"),
            );
        };
        if head.status != 200 {
            let refusal = Refusal::from_body(&self.body);
            let kind = if refusal.over_context && (400..500).contains(&head.status) {
                FailureKind::ContextExceeded
            } else {
                FailureKind::Status(head.status)
            };
            return fail(kind, refusal.message);
        }
        if !streams(head) {
            let refusal = Refusal::from_body(&self.body);
            return fail(
                FailureKind::Protocol,
                format!(
                    "the answer is {} and not a stream of events: {}",
                    tidy(&head.content_type),
                    refusal.message
                ),
            );
        }
        let answer = self.answer();
        if let Some(error) = &answer.error {
            let kind = if error.over_context {
                FailureKind::ContextExceeded
            } else {
                FailureKind::ErrorInStream
            };
            return fail(kind, error.message.clone());
        }
        if let Some(what) = &answer.malformed {
            return fail(FailureKind::Protocol, what.clone());
        }
        if !answer.is_complete() {
            let reason = match answer.finish_reason.as_deref() {
                Some(reason) => format!(", the server says {reason}"),
                None => broken,
            };
            return fail(
                FailureKind::CutOff,
                format!("stream ended early, after {} chunks{reason}", answer.chunks),
            );
        }
        if answer.first_token_ns.is_none() {
            return fail(
                FailureKind::Empty,
                "the answer has no token that can be read".to_string(),
            );
        }
        Ok(())
    }
}

/// Keeps a body that is no stream, up to its limit.
fn keep(body: &mut Vec<u8>, bytes: &[u8]) {
    let room = BODY_LIMIT.saturating_sub(body.len());
    body.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
}

fn undecodable(error: std::io::Error) -> Failure {
    Failure {
        kind: FailureKind::Protocol,
        message: format!(
            "the answer is compressed, although it was asked not to be, and cannot be decoded ({error}); look at what lies between here \
             and the server"
        ),
    }
}

/// A good status and a body that may be events. A wrong or missing type is forgiven, JSON and HTML are not.
fn streams(head: &Head) -> bool {
    head.status == 200
        && !matches!(
            head.content_type.as_str(),
            "application/json" | "text/html" | "application/problem+json"
        )
}
