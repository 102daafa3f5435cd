//! The bytes of a stream: what is the same for all of them is made once, what is the same for one of them when it is asked for.

use crate::sim::api::MODEL;
use crate::sim::api::shape::{Kind, Shape, Usage};
use crate::sim::prose::Prose;
use serde_json::Value;
use std::io::Write;

/// Tokens of text before it begins again: more than any measured answer has.
const TEXT: usize = 16_384;
/// Stands for the text while a form is made. It needs no escape.
const MARK: &str = "@@TEXT@@";

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nserver: vramp-sim\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// What stands before and behind the text of an event, without the closing brace.
#[derive(Debug)]
struct Form {
    before: String,
    behind: String,
}

impl Form {
    fn new(event: &Value) -> Self {
        let json = event.to_string();
        let (before, behind) = json.split_once(MARK).unwrap_or((&json, ""));
        Form {
            before: format!("data: {before}"),
            behind: behind.strip_suffix('}').unwrap_or(behind).to_string(),
        }
    }
}

/// The text of all streams and the forms of their events.
#[derive(Debug)]
pub struct Voice {
    /// One token each, escaped for JSON.
    pieces: Vec<String>,
    chat: Form,
    reasoning: Form,
    completion: Form,
    reasoning_tokens: u32,
}

impl Voice {
    pub fn new(seed: u64, loops: bool, reasoning_tokens: u32) -> Self {
        let mut prose = Prose::new(seed, loops);
        let chat = Shape::new(Kind::Chat, MODEL.to_string());
        let completion = Shape::new(Kind::Completion, MODEL.to_string());
        Voice {
            pieces: (0..TEXT)
                .map(|_| {
                    let quoted = Value::from(prose.next_piece()).to_string();
                    quoted.trim_matches('"').to_string()
                })
                .collect(),
            chat: Form::new(&chat.text(MARK, None, None)),
            reasoning: Form::new(&chat.reasoning(MARK)),
            completion: Form::new(&completion.text(MARK, None, None)),
            reasoning_tokens,
        }
    }

    /// Tokens of the event that follows `sent` tokens: the first comes alone, from the prefill; reasoning and answer share none.
    pub fn next_tokens(&self, script: &Script, sent: u32, most: u32) -> u32 {
        let left = script.total - sent;
        let edge = match (script.kind, self.reasoning_tokens) {
            (Kind::Chat, reasoning) if sent < reasoning => reasoning - sent,
            _ => u32::MAX,
        };
        let most = if sent == 0 { 1 } else { most };
        most.min(left).min(edge)
    }

    /// Appends the event with the `tokens` tokens after `sent`.
    pub fn event(&self, script: &Script, sent: u32, tokens: u32, out: &mut Vec<u8>) {
        let form = match script.kind {
            Kind::Completion => &self.completion,
            Kind::Chat if sent < self.reasoning_tokens => &self.reasoning,
            Kind::Chat => &self.chat,
        };
        let at = script.text_from + sent as usize;
        let pieces = || {
            self.pieces
                .iter()
                .cycle()
                .skip(at % TEXT)
                .take(tokens as usize)
        };
        let usage = if script.running_usage {
            let usage = Usage::new(script.prompt, u64::from(sent + tokens), 0);
            // A struct of numbers has a JSON form.
            serde_json::to_string(&usage).unwrap_or_default()
        } else {
            String::new()
        };
        let usage_len = if usage.is_empty() {
            0
        } else {
            ",\"usage\":".len() + usage.len()
        };
        let text_len: usize = pieces().map(String::len).sum();
        let len = form.before.len() + text_len + form.behind.len() + usage_len + "}\n\n".len();
        // Writing to a vector cannot fail.
        let _ = write!(out, "{len:x}\r\n");
        out.extend_from_slice(form.before.as_bytes());
        for piece in pieces() {
            out.extend_from_slice(piece.as_bytes());
        }
        out.extend_from_slice(form.behind.as_bytes());
        if usage_len > 0 {
            out.extend_from_slice(b",\"usage\":");
            out.extend_from_slice(usage.as_bytes());
        }
        out.extend_from_slice(b"}\n\n\r\n");
    }
}

/// What one stream sends.
#[derive(Debug)]
pub struct Script {
    pub kind: Kind,
    pub prompt: u64,
    /// Tokens of the answer.
    pub total: u32,
    pub number: u64,
    /// Sent with the first token.
    pub opening: Vec<u8>,
    /// Sent with the last.
    pub closing: Vec<u8>,
    pub running_usage: bool,
    /// Cut off once so many tokens are sent.
    pub cut_at: Option<u32>,
    /// Paused once so many tokens are sent.
    pub stall_at: Option<u32>,
    text_from: usize,
}

impl Script {
    pub fn new(kind: Kind, prompt: u64, total: u32, number: u64) -> Self {
        Script {
            kind,
            prompt,
            total,
            number,
            opening: HEAD.to_vec(),
            closing: Vec::new(),
            running_usage: false,
            cut_at: None,
            stall_at: None,
            // Two answers side by side never say the same.
            text_from: (number as usize).wrapping_mul(1009) % TEXT,
        }
    }

    /// Adds an event before the first token.
    pub fn open_with(&mut self, event: &Value) {
        chunk(&mut self.opening, &format!("data: {event}\n\n"));
    }

    /// Adds an event behind the last token.
    pub fn close_with(&mut self, event: &Value) {
        chunk(&mut self.closing, &format!("data: {event}\n\n"));
    }

    /// Nothing follows.
    pub fn end(&mut self) {
        chunk(&mut self.closing, "data: [DONE]\n\n");
        self.closing.extend_from_slice(b"0\r\n\r\n");
    }
}

fn chunk(out: &mut Vec<u8>, text: &str) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{:x}\r\n{text}\r\n", text.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(voice: &Voice, script: &Script, sent: u32, tokens: u32) -> Value {
        let mut out = Vec::new();
        voice.event(script, sent, tokens, &mut out);
        let text = String::from_utf8(out).expect("text");
        let (len, rest) = text.split_once("\r\n").expect("a length");
        let body = rest.strip_suffix("\r\n").expect("an end");
        assert_eq!(usize::from_str_radix(len, 16), Ok(body.len()));
        let json = body
            .strip_prefix("data: ")
            .and_then(|b| b.strip_suffix("\n\n"));
        serde_json::from_str(json.expect("an event")).expect("json")
    }

    #[test]
    fn events_are_those_of_the_real_dialect() {
        let voice = Voice::new(1, false, 3);
        let mut script = Script::new(Kind::Chat, 12, 10, 1);
        assert_eq!(voice.next_tokens(&script, 0, 4), 1, "the prefill gives one");
        assert_eq!(voice.next_tokens(&script, 1, 4), 2, "up to the answer");
        assert_eq!(voice.next_tokens(&script, 3, 4), 4);
        assert_eq!(voice.next_tokens(&script, 7, 4), 3, "what is left");
        let thought = event(&voice, &script, 1, 2);
        assert!(thought["choices"][0]["delta"]["reasoning_content"].is_string());
        script.running_usage = true;
        let said = event(&voice, &script, 3, 4);
        let text = said["choices"][0]["delta"]["content"]
            .as_str()
            .expect("text");
        assert_eq!(crate::sim::tokens::count(text), 4, "{text}");
        assert_eq!(said["usage"]["completion_tokens"], 7);
        assert_eq!(said["usage"]["prompt_tokens"], 12);
        let plain = Script::new(Kind::Completion, 12, 10, 2);
        assert!(event(&voice, &plain, 0, 1)["choices"][0]["text"].is_string());
    }
}
