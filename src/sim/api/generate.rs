//! Completions, streamed and whole.

use super::refuse::{bad_request, check_length};
use super::shape::{Kind, Shape, Usage};
use super::{MODEL, Rig};
use crate::sim::core::{Emission, Work};
use crate::sim::engine::Ticket;
use crate::sim::reply::Reply;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;

/// Tokens of a plain completion that does not say how many.
const DEFAULT_COMPLETION: u64 = 16;

/// What a client may ask; everything else is ignored.
#[derive(Debug, Deserialize)]
pub struct Ask<'a> {
    model: Option<String>,
    #[serde(borrow)]
    pub prompt: Option<&'a RawValue>,
    pub messages: Option<Vec<Message>>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    ignore_eos: Option<bool>,
}

impl Ask<'_> {
    /// Tokens of the answer, where the request says how many.
    pub fn wanted(&self, kind: Kind) -> Result<Option<u64>, String> {
        let wanted = self.max_completion_tokens.or(self.max_tokens);
        if wanted == Some(0) {
            return Err("max_tokens must be at least 1, got 0.".to_string());
        }
        Ok(wanted.or((kind == Kind::Completion).then_some(DEFAULT_COMPLETION)))
    }
}

/// The refusal of a request without its `field`.
pub fn missing(field: &str) -> String {
    format!(
        "1 validation error:\n  {{'type': 'missing', 'loc': ('body', '{field}'), 'msg': 'Field required'}}"
    )
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Texts(Vec<String>),
    Batch(Vec<Vec<u32>>),
}

/// One message of a conversation.
#[derive(Debug, Deserialize)]
pub struct Message {
    role: String,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    text: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub struct StreamOptions {
    pub include_usage: Option<bool>,
    pub continuous_usage_stats: Option<bool>,
}

/// The text of a message.
pub fn chat_text(message: &Message) -> Cow<'_, str> {
    match &message.content {
        None => Cow::default(),
        Some(Content::Text(text)) => Cow::Borrowed(text),
        Some(Content::Parts(parts)) => {
            let texts = parts.iter().filter_map(|part| part.text.as_deref());
            Cow::Owned(texts.collect())
        }
    }
}

/// Role and text of each message.
pub fn turns(messages: Vec<Message>) -> Vec<(String, String)> {
    messages
        .into_iter()
        .map(|message| {
            let text = chat_text(&message).into_owned();
            (message.role, text)
        })
        .collect()
}

/// The ids of a conversation by the chat template.
pub fn chat_ids(rig: &Rig, turns: &[(String, String)]) -> Vec<u32> {
    rig.tokenizer.encode_chat(
        turns
            .iter()
            .map(|(role, text)| (role.as_str(), text.as_str())),
    )
}

pub async fn chat(State(rig): State<Arc<Rig>>, body: Bytes) -> Response {
    answer(rig, Kind::Chat, &body).await
}

pub async fn completions(State(rig): State<Arc<Rig>>, body: Bytes) -> Response {
    answer(rig, Kind::Completion, &body).await
}

async fn answer(rig: Arc<Rig>, kind: Kind, body: &[u8]) -> Response {
    if !rig.is_ready() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let ask: Ask<'_> = match serde_json::from_slice(body) {
        Ok(ask) => ask,
        Err(error) => return bad_request(&format!("1 validation error:\n  {error}")),
    };
    match begin(&rig, kind, ask) {
        Err(message) => bad_request(&message),
        Ok(answer) if answer.streamed => stream_of(answer),
        Ok(answer) => whole(answer).await,
    }
}

/// An answer that is being given.
struct Answer {
    shape: Shape,
    ticket: Ticket,
    reply: Reply,
    prompt: u64,
    done: u64,
    finish: &'static str,
    streamed: bool,
    options: StreamOptions,
}

fn begin(rig: &Arc<Rig>, kind: Kind, ask: Ask<'_>) -> Result<Answer, String> {
    let wanted = ask.wanted(kind)?;
    let (ids, text, question) = match (kind, ask.messages, ask.prompt) {
        (Kind::Chat, Some(messages), _) if !messages.is_empty() => {
            let turns = turns(messages);
            let ids = chat_ids(rig, &turns);
            let question = turns
                .last()
                .map(|(_, text)| text.clone())
                .unwrap_or_default();
            let text: Vec<String> = turns.into_iter().map(|(_, text)| text).collect();
            (ids, text.join("\n"), question)
        }
        (Kind::Completion, _, Some(prompt)) => {
            let prompt = serde_json::from_str(prompt.get())
                .map_err(|error| format!("1 validation error:\n  {error}"))?;
            let (ids, text) = read_prompt(rig, prompt)?;
            (ids, text.clone(), text)
        }
        (Kind::Chat, ..) => return Err(missing("messages")),
        (Kind::Completion, ..) => return Err(missing("prompt")),
    };
    let input = ids.len() as u64;
    let room = check_length(rig, input, wanted)?;
    let reply = Reply::plan(&text, &question, rig.args.seed, rig.args.loops);
    let natural = u64::from(reply.natural);
    let (output, finish) = if ask.ignore_eos == Some(true) || natural > room {
        (room, "length")
    } else {
        (natural, "stop")
    };
    let ticket = rig.engine.submit(Work {
        reserve: input + output,
        prompt: ids,
        output: u32::try_from(output).unwrap_or(u32::MAX),
    });
    Ok(Answer {
        shape: Shape::new(kind, ask.model.unwrap_or_else(|| MODEL.to_string())),
        ticket,
        reply,
        prompt: input,
        done: 0,
        finish,
        streamed: ask.stream == Some(true),
        options: ask.stream_options.unwrap_or_default(),
    })
}

/// A prompt as ids and as text.
fn read_prompt(rig: &Rig, prompt: Prompt) -> Result<(Vec<u32>, String), String> {
    let batch = || Err("this server answers one prompt a request".to_string());
    match prompt {
        Prompt::Text(text) => Ok((rig.tokenizer.encode(&text), text)),
        Prompt::Ids(ids) => {
            let text = rig.tokenizer.decode(&ids);
            Ok((ids, text))
        }
        Prompt::Texts(texts) => match <[String; 1]>::try_from(texts) {
            Ok([text]) => Ok((rig.tokenizer.encode(&text), text)),
            Err(_) => batch(),
        },
        Prompt::Batch(batches) => match <[Vec<u32>; 1]>::try_from(batches) {
            Ok([ids]) => read_prompt(rig, Prompt::Ids(ids)),
            Err(_) => batch(),
        },
    }
}

impl Answer {
    fn usage(&self, emission: &Emission) -> Usage {
        Usage::new(self.prompt, self.done, emission.cached)
    }

    /// The text of some tokens more.
    fn speak(&mut self, emission: &Emission) -> String {
        self.done += u64::from(emission.tokens);
        self.reply.take(emission.tokens)
    }

    /// The events of some tokens more.
    fn events(&mut self, emission: &Emission) -> String {
        let first = self.done == 0;
        let text = self.speak(emission);
        let usage = self.usage(emission);
        let running = (self.options.continuous_usage_stats == Some(true)).then_some(usage);
        let finish = emission.last.then_some(self.finish);
        let chat = self.shape.kind == Kind::Chat;
        let mut events = Vec::with_capacity(4);
        if first && chat {
            events.push(self.shape.role());
        }
        events.push(self.shape.text(&text, finish, running));
        if let Some(finish) = finish {
            if chat {
                events.push(self.shape.end(finish, running));
            }
            if self.options.include_usage == Some(true) {
                events.push(self.shape.trailer(usage));
            }
        }
        let mut out = String::new();
        for event in events {
            // Writing to a string cannot fail.
            let _ = write!(out, "data: {event}\n\n");
        }
        if emission.last {
            out.push_str("data: [DONE]\n\n");
        }
        out
    }
}

async fn whole(mut answer: Answer) -> Response {
    let mut text = String::new();
    while let Some(emission) = answer.ticket.next().await {
        text.push_str(&answer.speak(&emission));
        if emission.last {
            let usage = answer.usage(&emission);
            return Json(answer.shape.whole(&text, answer.finish, usage)).into_response();
        }
    }
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

fn stream_of(answer: Answer) -> Response {
    let events = stream::unfold(Some(answer), |answer| async move {
        let mut answer = answer?;
        let emission = answer.ticket.next().await?;
        let bytes = Bytes::from(answer.events(&emission));
        let rest = (!emission.last).then_some(answer);
        Some((Ok::<_, Infallible>(bytes), rest))
    });
    (
        [(CONTENT_TYPE, "text/event-stream; charset=utf-8")],
        Body::from_stream(events),
    )
        .into_response()
}
