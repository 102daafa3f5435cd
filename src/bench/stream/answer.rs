//! What a stream has said so far, and when.

use super::chunk::{Choice, Chunk, Delta, Timings, Usage, filled};
use super::pattern::{Field, Pattern};
use super::refusal::{Refusal, tidy};
use super::sse;

/// Most bytes of the answer, and of the thinking, that are kept for judging them.
const TEXT_LIMIT: usize = 64 * 1024;
/// A text that comes so near to the limit may have lost an event.
const WHOLE_MARGIN: usize = 4 * 1024;

/// One read that brought tokens. Events of the same read share its stamp and make no gap between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub at_ns: u64,
    /// Events with tokens in this read.
    pub chunks: u32,
    /// Output tokens up to here by continuous usage; 0 without it.
    pub counted: u64,
}

/// The state of one answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    pub text: String,
    /// Thinking, apart from the answer.
    pub reasoning: String,
    /// First non-empty content, reasoning or tool call.
    pub first_token_ns: Option<u64>,
    /// First non-empty content or tool call: the answer itself.
    pub first_answer_ns: Option<u64>,
    pub last_token_ns: Option<u64>,
    /// One a read, in order.
    pub marks: Vec<Mark>,
    /// Events with tokens.
    pub chunks: u64,
    /// Events of any kind.
    pub events: u64,
    /// Comment lines.
    pub keepalives: u64,
    pub finish_reason: Option<String>,
    pub usage: Option<Usage>,
    /// Output tokens by the server's tokenizer, asked after the answer because its count did not come with it.
    pub tokenized: Option<u64>,
    pub timings: Option<Timings>,
    /// The server's error within the stream.
    pub error: Option<Refusal>,
    /// An event that is not of this protocol; what came after it is not to be trusted.
    pub malformed: Option<String>,
    /// `[DONE]` came. No proof of completeness: vLLM sends it when it is stopped in the middle, too.
    pub done: bool,
    /// Of the last event that had nothing but text.
    pub(in crate::bench) pattern: Option<Pattern>,
}

impl Answer {
    /// An answer of about `tokens` tokens: marks and text have their room from the start.
    pub fn with_room(tokens: usize) -> Self {
        Answer {
            marks: Vec::with_capacity(tokens.min(1 << 16) + 8),
            text: String::with_capacity(tokens.saturating_mul(6).min(TEXT_LIMIT)),
            ..Answer::default()
        }
    }

    /// The server ended the answer itself: it gave a reason, and none that stands for a broken-off one.
    pub fn is_complete(&self) -> bool {
        let broken = ["abort", "error", "cancelled", "canceled"];
        self.error.is_none()
            && self.malformed.is_none()
            && self
                .finish_reason
                .as_deref()
                .is_some_and(|reason| !broken.contains(&reason))
    }

    /// Output tokens by the server's count.
    pub fn counted_tokens(&self) -> Option<u64> {
        self.usage.and_then(|usage| usage.completion_tokens)
    }

    /// Whether all of its text is kept.
    pub fn is_kept_whole(&self) -> bool {
        // A text that filled its room may have gone on.
        let whole = |text: &str| text.len() + WHOLE_MARGIN <= TEXT_LIMIT;
        whole(&self.text) && whole(&self.reasoning)
    }

    pub fn prompt_tokens(&self) -> Option<u64> {
        self.usage.and_then(|usage| usage.prompt_tokens)
    }

    /// Prompt tokens from the prefix cache.
    pub fn cached_tokens(&self) -> Option<u64> {
        self.usage
            .and_then(|usage| usage.cached_tokens())
            .or_else(|| self.timings.and_then(|timings| timings.cache_n))
    }

    /// Takes a whole chunk of the body that is just one more event like the last, if it is that.
    pub fn take_chunk(&mut self, wire: &[u8], at_ns: u64) -> bool {
        if self.malformed.is_some() {
            return false;
        }
        let Some(pattern) = &self.pattern else {
            return false;
        };
        let Some(text) = pattern.text_of_chunk(wire) else {
            return false;
        };
        let field = pattern.field;
        self.events += 1;
        self.only_text(text, field, at_ns);
        true
    }

    /// Takes what the event decoder found at `at_ns`.
    pub fn take(&mut self, item: sse::Item<'_>, at_ns: u64) {
        match item {
            sse::Item::Comment => self.keepalives += 1,
            sse::Item::Event { name, data } => {
                if self.malformed.is_none() {
                    self.events += 1;
                    self.event(name, data, at_ns);
                }
            }
        }
    }

    fn event(&mut self, name: &[u8], data: &[u8], at_ns: u64) {
        let data = data.trim_ascii();
        if name.is_empty()
            && let Some(pattern) = &self.pattern
            && let Some(text) = pattern.text(data)
        {
            let field = pattern.field;
            self.only_text(text, field, at_ns);
            return;
        }
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        if data.is_empty() {
            return;
        }
        match serde_json::from_slice::<Chunk<'_>>(data) {
            Ok(chunk) => self.parsed(name, data, &chunk, at_ns),
            // An error event may have any form.
            Err(_) if name == b"error" => self.refuse(data),
            Err(error) => match std::str::from_utf8(data) {
                Ok(text) => {
                    self.malformed = Some(tidy(&format!(
                        "an event is not a chunk of an OpenAI stream ({error}): {}",
                        text.chars().take(80).collect::<String>()
                    )));
                }
                // Bytes that are no text are read as the standard says: each stands for U+FFFD.
                Err(_) => self.event(name, String::from_utf8_lossy(data).as_bytes(), at_ns),
            },
        }
    }

    fn parsed(&mut self, name: &[u8], data: &[u8], chunk: &Chunk<'_>, at_ns: u64) {
        let flat_error = chunk.object.as_ref().is_some_and(|o| o.as_str() == "error");
        match chunk.error {
            Some(error) => self.refuse(error.get().as_bytes()),
            None if flat_error || name == b"error" => self.refuse(data),
            None => {
                self.chunk(chunk, at_ns);
                if let Some((text, field)) = nothing_but_text(chunk) {
                    self.pattern = Pattern::learn(data, text, field);
                }
            }
        }
    }

    /// What [`Answer::chunk`] does with an event that has nothing but text.
    fn only_text(&mut self, text: &str, field: Field, at_ns: u64) {
        match field {
            Field::Thought => append(&mut self.reasoning, text),
            Field::Answer => {
                append(&mut self.text, text);
                self.first_answer_ns.get_or_insert(at_ns);
            }
        }
        self.first_token_ns.get_or_insert(at_ns);
        self.token(at_ns, 0);
    }

    fn refuse(&mut self, body: &[u8]) {
        self.error.get_or_insert_with(|| Refusal::from_body(body));
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, at_ns: u64) {
        let counted_before = self.counted_tokens().unwrap_or(0);
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage);
        }
        if let Some(timings) = chunk.timings {
            self.timings = Some(timings);
        }
        let Some(choice) = &chunk.choices.0 else {
            return;
        };
        let mut thinks = false;
        let mut answers = false;
        if let Some(text) = filled(&choice.text) {
            answers = true;
            append(&mut self.text, text);
        }
        if let Some(delta) = &choice.delta {
            let thought = filled(&delta.reasoning_content).or(filled(&delta.reasoning));
            if let Some(text) = thought {
                thinks = true;
                append(&mut self.reasoning, text);
            }
            if let Some(text) = filled(&delta.content) {
                answers = true;
                append(&mut self.text, text);
            }
            answers |= delta.tool_calls.0 || delta.function_call.is_some();
        }
        let finish = filled(&choice.finish_reason);
        if let Some(reason) = finish {
            self.finish_reason = Some(tidy(reason));
        }
        // An empty text may stand for a token, of which the characters come later: sure if the server counts one more, likely on
        // `/v1/completions`, where a chunk has no other use until the one that ends the answer.
        let counted = chunk.usage.and_then(|usage| usage.completion_tokens);
        let hidden = match counted {
            Some(n) if counted_before > 0 => n > counted_before,
            _ => choice.text.is_some() && finish.is_none(),
        };
        if thinks || answers {
            self.first_token_ns.get_or_insert(at_ns);
        }
        if answers {
            self.first_answer_ns.get_or_insert(at_ns);
        }
        if thinks || answers || (hidden && self.first_token_ns.is_some()) {
            self.token(at_ns, counted.unwrap_or(0));
        }
    }

    fn token(&mut self, at_ns: u64, counted: u64) {
        self.chunks += 1;
        // Stamps come from a clock that may be set in between.
        let at_ns = at_ns.max(self.last_token_ns.unwrap_or(0));
        self.last_token_ns = Some(at_ns);
        match self.marks.last_mut() {
            Some(mark) if mark.at_ns == at_ns => {
                mark.chunks += 1;
                mark.counted = counted;
            }
            _ => self.marks.push(Mark {
                at_ns,
                chunks: 1,
                counted,
            }),
        }
    }
}

/// The text of an event that says nothing else.
fn nothing_but_text<'a>(chunk: &'a Chunk<'_>) -> Option<(&'a str, Field)> {
    let silent = chunk.usage.is_none() && chunk.timings.is_none();
    let choice = chunk.choices.0.as_ref().filter(|_| silent)?;
    let ends = filled(&choice.finish_reason).is_some();
    let Choice { delta, text, .. } = choice;
    let answer = filled(text);
    let Some(delta) = delta else {
        return answer.filter(|_| !ends).map(|text| (text, Field::Answer));
    };
    let Delta {
        content,
        reasoning_content,
        reasoning,
        tool_calls,
        function_call,
    } = delta;
    if ends || answer.is_some() || tool_calls.0 || function_call.is_some() {
        return None;
    }
    match (
        filled(content),
        filled(reasoning_content),
        filled(reasoning),
    ) {
        (Some(text), None, None) => Some((text, Field::Answer)),
        (None, Some(text), None) | (None, None, Some(text)) => Some((text, Field::Thought)),
        _ => None,
    }
}

fn append(to: &mut String, text: &str) {
    if to.len() + text.len() <= TEXT_LIMIT {
        to.push_str(text);
    }
}
