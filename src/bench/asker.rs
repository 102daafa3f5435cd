//! Asking one server: requests of a stated length, and what must be learnt for it.

use super::client::{Access, Client, Deadlines, Exchange, Request};
use super::options::Api;
use super::point::{Failure, FailureKind};
use super::prompt::{self, Aim, Ask, Ids, Number, Prompt, Scale};
use super::stream::Answer;
use crate::engine::Kind;
use serde::Deserialize;
use std::cell::Cell;

/// Groups of prompts that belong to no cell.
const LEARNING: u64 = u64::MAX;
/// Up to this length the exact number of words is tried out; beyond, the scale alone is well within half a percent.
const TRIED_UP_TO: u64 = 4096;

/// One server, one model.
pub struct Asker {
    pub client: Client,
    pub model: String,
    pub kind: Kind,
    pub seed: u64,
    pub api: Api,
    /// Tokens that the server's tokenizer puts before every text; the inner `None`: it has no tokenizer. Not known before it was asked.
    marks: Cell<Option<Option<u64>>>,
}

/// The form that prompts take for this server.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    Ids(Ids),
    Words(Scale),
}

/// How to make prompts of one length.
#[derive(Debug, Clone, PartialEq)]
pub enum Recipe {
    Ids { ids: Ids, tokens: u64 },
    Words { count: usize, api: Api },
}

impl Recipe {
    pub fn prompt(&self, number: Number) -> Prompt {
        match self {
            Recipe::Ids { ids, tokens } => ids.prompt(*tokens, number),
            Recipe::Words { count, api } => in_words(*count, *api, number),
        }
    }
}

#[derive(Deserialize)]
struct Tokenized {
    tokens: Vec<u32>,
}

impl Asker {
    pub fn new(access: Access, kind: Kind, model: &str, seed: u64, api: Api) -> Asker {
        Asker {
            client: Client::new(access),
            model: model.to_string(),
            kind,
            seed,
            api,
            marks: Cell::new(None),
        }
    }

    /// A request for `ask`, ready to be written.
    pub fn request(&self, ask: &Ask<'_>, prompt: &Prompt, limits: Deadlines) -> Request {
        let (path, body) = ask.body(prompt);
        Request {
            bytes: self.client.target().post(path, &body),
            output: ask.output,
            limits,
        }
    }

    /// Sends one prompt and reads its answer.
    pub async fn ask(&self, prompt: &Prompt, output: u64, aim: Aim, limits: Deadlines) -> Exchange {
        let ask = Ask {
            model: &self.model,
            output,
            kind: self.kind,
            aim,
        };
        let request = self.request(&ask, prompt, limits);
        self.client.send(&request, &|_| {}).await
    }

    /// Finds the form of prompts for this server, and wakes it and its first connection on the way.
    pub async fn learn(&self, context: Option<u64>) -> Result<Form, Failure> {
        let takes_ids = match self.api {
            Api::Auto => self.kind != Kind::OpenAi,
            Api::Chat => false,
            Api::Completions => true,
        };
        if takes_ids && let Some(ids) = self.learn_ids().await? {
            return Ok(Form::Ids(ids));
        }
        self.learn_scale(context).await.map(Form::Words)
    }

    /// The ids of real words, if the server tells them and takes a prompt of ids.
    async fn learn_ids(&self) -> Result<Option<Ids>, Failure> {
        let [words, tail] = Ids::texts();
        let Some(words) = self.tokenize(&words).await? else {
            return Ok(None);
        };
        let Some(tail) = self.tokenize(&tail).await? else {
            return Ok(None);
        };
        let Some(ids) = Ids::new(&words, &tail) else {
            return Ok(None);
        };
        let prompt = ids.prompt(32, self.learning(0));
        let exchange = self.ask(&prompt, 2, Aim::Speed, small(32)).await;
        match (server_gone(&exchange), &exchange.result) {
            (Some(failure), _) => Err(failure),
            // Two tokens may be no text yet; the prompt was taken all the same.
            (None, Ok(())) => Ok(Some(ids)),
            (None, Err(failure)) => Ok((failure.kind == FailureKind::Empty).then_some(ids)),
        }
    }

    /// How many tokens an answer has by the server's own tokenizer, where its count did not come with it. `None` where the server has no
    /// tokenizer, and for an answer that is not kept whole.
    pub async fn tokens_of(&self, answer: &Answer) -> Option<u64> {
        if !answer.is_kept_whole() {
            return None;
        }
        let count = async |text: &str| {
            let told = self.tokenize(text).await.ok().flatten();
            told.map(|tokens| tokens.len() as u64)
        };
        let marks = match self.marks.get() {
            Some(known) => known,
            None => {
                let marks = count("").await;
                self.marks.set(Some(marks));
                marks
            }
        };
        let marks = marks?;
        let text = format!("{}{}", answer.reasoning, answer.text);
        let tokens = count(&text).await?.checked_sub(marks)?;
        (tokens > 0).then_some(tokens)
    }

    /// `POST /tokenize`, in the words of llama.cpp (`content`) and of vLLM and SGLang (`prompt`).
    async fn tokenize(&self, text: &str) -> Result<Option<Vec<u32>>, Failure> {
        let field = match self.kind {
            Kind::LlamaCpp => "content",
            _ => "prompt",
        };
        let body = serde_json::json!({
            field: text,
            "model": self.model,
            "add_special_tokens": false,
        });
        let request = Request {
            bytes: self
                .client
                .target()
                .post("/tokenize", body.to_string().as_bytes()),
            output: 0,
            limits: small(0),
        };
        let exchange = self.client.send(&request, &|_| {}).await;
        if let Some(failure) = server_gone(&exchange) {
            return Err(failure);
        }
        let told: Option<Tokenized> = serde_json::from_slice(&exchange.body).ok();
        Ok(told
            .map(|t| t.tokens)
            .filter(|_| exchange.status == Some(200)))
    }

    /// How many tokens messages have, from two of them. A server that counts nothing leaves the guess.
    pub async fn learn_scale(&self, context: Option<u64>) -> Result<Scale, Failure> {
        let context = context.unwrap_or(u64::MAX);
        // Whole decks where the context has room for them: these are counted exactly.
        let deck = prompt::DECK_WORDS;
        let (few, many) = match context {
            4096.. => (deck, 3 * deck),
            2048.. => (deck, 2 * deck),
            _ => (deck / 8, deck / 4),
        };
        let first = self.count(few, 1).await?;
        let second = self.count(many, 2).await?;
        let scale = first
            .zip(second)
            .and_then(|(a, b)| Scale::from_counts((few, a), (many, b)));
        Ok(scale.unwrap_or(Scale::GUESS))
    }

    /// Prompt tokens of a message of so many words. `None` if the server does not say.
    async fn count(&self, words: usize, number: u64) -> Result<Option<u64>, Failure> {
        let prompt = in_words(words, self.api, self.learning(number));
        let exchange = self.ask(&prompt, 2, Aim::Speed, small(words as u64)).await;
        match server_gone(&exchange) {
            Some(failure) => Err(failure),
            None => Ok(exchange.answer.prompt_tokens()),
        }
    }

    /// How to make prompts of `tokens` tokens.
    pub async fn recipe(&self, form: &Form, tokens: u64) -> Result<Recipe, Failure> {
        let scale = match form {
            Form::Ids(ids) => {
                return Ok(Recipe::Ids {
                    ids: ids.clone(),
                    tokens,
                });
            }
            Form::Words(scale) => scale,
        };
        let mut count = scale.words_for(tokens);
        if tokens > TRIED_UP_TO {
            return Ok(Recipe::Words {
                count,
                api: self.api,
            });
        }
        for attempt in 0..3 {
            let Some(told) = self.count(count, 3 + attempt).await? else {
                break;
            };
            let off = tokens as f64 - told as f64;
            if off.abs() * 400.0 <= tokens as f64 {
                break;
            }
            let better = (count as f64 + off / scale.per_word).round().max(1.0) as usize;
            if better == count {
                break;
            }
            count = better;
        }
        Ok(Recipe::Words {
            count,
            api: self.api,
        })
    }

    fn learning(&self, request: u64) -> Number {
        Number {
            seed: self.seed,
            group: LEARNING,
            request,
        }
    }
}

/// A prompt of so many words, for the part of the API that is asked.
pub fn in_words(count: usize, api: Api, number: Number) -> Prompt {
    match api {
        Api::Auto | Api::Chat => prompt::message(count, number),
        Api::Completions => prompt::text(count, number),
    }
}

fn small(input: u64) -> Deadlines {
    Deadlines::for_request(input, 16, 1)
}

/// A failure that means the server cannot be talked to at all.
fn server_gone(exchange: &Exchange) -> Option<Failure> {
    let failure = exchange.result.as_ref().err()?;
    matches!(
        failure.kind,
        FailureKind::Refused
            | FailureKind::TimeoutConnect
            | FailureKind::TimeoutFirstByte
            | FailureKind::Status(401 | 403)
    )
    .then(|| failure.clone())
}
