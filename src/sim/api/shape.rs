//! The JSON of answers, as SGLang writes it.

use crate::clock::unix_ms;
use serde::Serialize;
use serde_json::{Value, json};

/// Which of the two completions a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Chat,
    Completion,
}

/// What all parts of one answer have in common.
#[derive(Debug, Clone)]
pub struct Shape {
    pub kind: Kind,
    pub id: String,
    pub model: String,
    pub created: i64,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Usage {
    completion_tokens: u64,
    prompt_tokens: u64,
    prompt_tokens_details: Details,
    reasoning_tokens: u64,
    total_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Details {
    cached_tokens: u64,
}

impl Usage {
    pub fn new(prompt: u64, completion: u64, cached: u64) -> Self {
        Usage {
            completion_tokens: completion,
            prompt_tokens: prompt,
            prompt_tokens_details: Details {
                cached_tokens: cached,
            },
            reasoning_tokens: 0,
            total_tokens: prompt + completion,
        }
    }
}

impl Shape {
    pub fn new(kind: Kind, model: String) -> Self {
        Shape {
            kind,
            id: format!("{:032x}", fastrand::u128(..)),
            model,
            created: unix_ms() / 1000,
        }
    }

    /// A whole answer.
    pub fn whole(&self, text: &str, finish: &str, usage: Usage) -> Value {
        let (object, said) = match self.kind {
            Kind::Chat => (
                "chat.completion",
                json!({"index": 0, "message": {"role": "assistant", "content": text, "reasoning_content": null}, "logprobs": null, "finish_reason": finish, "matched_stop": null}),
            ),
            Kind::Completion => (
                "text_completion",
                json!({"index": 0, "text": text, "logprobs": null, "finish_reason": finish, "matched_stop": null}),
            ),
        };
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": [said],
            "usage": usage,
            "metadata": {"weight_version": "default", "simulated": true},
        })
    }

    /// The event that names the role, before the first token of a chat.
    pub fn role(&self) -> Value {
        self.chunk(
            json!({"index": 0, "delta": {"reasoning_content": null, "role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null, "matched_stop": null}),
            None,
        )
    }

    /// An event with some text. A plain completion carries its end in the last one.
    pub fn text(&self, text: &str, finish: Option<&str>, usage: Option<Usage>) -> Value {
        let choice = match self.kind {
            Kind::Chat => {
                json!({"index": 0, "delta": {"reasoning_content": null, "content": text}, "logprobs": null, "finish_reason": null, "matched_stop": null})
            }
            Kind::Completion => {
                json!({"index": 0, "text": text, "logprobs": null, "finish_reason": finish, "matched_stop": null})
            }
        };
        self.chunk(choice, usage)
    }

    /// An event with some text of the reasoning that comes before the answer.
    pub fn reasoning(&self, text: &str) -> Value {
        self.chunk(
            json!({"index": 0, "delta": {"reasoning_content": text, "content": null}, "logprobs": null, "finish_reason": null, "matched_stop": null}),
            None,
        )
    }

    /// The event that ends a chat.
    pub fn end(&self, finish: &str, usage: Option<Usage>) -> Value {
        self.chunk(
            json!({"index": 0, "delta": {"reasoning_content": null}, "logprobs": null, "finish_reason": finish, "matched_stop": null}),
            usage,
        )
    }

    /// The event behind the end that carries nothing but the usage.
    pub fn trailer(&self, usage: Usage) -> Value {
        let mut event = self.chunk(Value::Null, Some(usage));
        if let Some(choices) = event.get_mut("choices") {
            *choices = json!([]);
        }
        event
    }

    fn chunk(&self, choice: Value, usage: Option<Usage>) -> Value {
        let object = match self.kind {
            Kind::Chat => "chat.completion.chunk",
            Kind::Completion => "text_completion",
        };
        let mut event = json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": [choice],
        });
        if let (Some(usage), Some(event)) = (usage, event.as_object_mut()) {
            event.insert("usage".to_string(), json!(usage));
        }
        event
    }
}
