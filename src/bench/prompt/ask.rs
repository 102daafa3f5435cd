//! The body of a request.

use super::Prompt;
use crate::engine::Kind;
use serde::Serialize;

/// What is asked of the server, apart from the prompt.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub model: &'a str,
    /// Most tokens of the answer.
    pub output: u64,
    pub kind: Kind,
    pub aim: Aim,
}

/// What the answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Its speed: exactly `output` tokens where the engine can be told so, drawn as the server's users have them drawn.
    Speed,
    /// Its words: it ends where the model ends it, with the likeliest tokens.
    Words,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Input<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<[Message<'a>; 1]>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Ids(&'a [u32]),
    Text(&'a str),
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
    /// Counts with every event, so that each gap has its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    continuous_usage_stats: Option<bool>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

impl Ask<'_> {
    /// Path and JSON body of a streamed request. Fields that only some engines know are sent to those alone.
    pub fn body(&self, prompt: &Prompt) -> (&'static str, Vec<u8>) {
        let for_speed = self.aim == Aim::Speed;
        let mut body = Body {
            model: self.model,
            max_tokens: self.output,
            stream: true,
            stream_options: StreamOptions {
                include_usage: true,
                continuous_usage_stats: matches!(self.kind, Kind::Vllm | Kind::Sglang)
                    .then_some(true),
            },
            ignore_eos: (for_speed && self.kind != Kind::OpenAi).then_some(true),
            min_tokens: (for_speed && self.kind == Kind::Vllm).then_some(self.output),
            temperature: (!for_speed).then_some(0.0),
            prompt: None,
            messages: None,
        };
        let path = match prompt {
            Prompt::Ids(ids) => {
                body.prompt = Some(Input::Ids(ids));
                "/v1/completions"
            }
            Prompt::Text(text) => {
                body.prompt = Some(Input::Text(text));
                "/v1/completions"
            }
            Prompt::Message(content) => {
                body.messages = Some([Message {
                    role: "user",
                    content,
                }]);
                "/v1/chat/completions"
            }
        };
        // Strings and numbers always have a JSON form.
        (path, serde_json::to_vec(&body).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn body(kind: Kind, aim: Aim, prompt: &Prompt) -> (&'static str, Value) {
        let ask = Ask {
            model: "m",
            output: 9,
            kind,
            aim,
        };
        let (path, bytes) = ask.body(prompt);
        (path, serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn engines_get_what_they_know() {
        let (path, vllm) = body(Kind::Vllm, Aim::Speed, &Prompt::Ids(vec![1, 2]));
        assert_eq!(path, "/v1/completions");
        assert_eq!(
            vllm,
            json!({"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"ignore_eos":true,"min_tokens":9,"prompt":[1,2]})
        );
        let (_, sglang) = body(Kind::Sglang, Aim::Speed, &Prompt::Ids(vec![1]));
        assert_eq!(
            (&sglang["ignore_eos"], &sglang["min_tokens"]),
            (&json!(true), &Value::Null)
        );
        let (path, plain) = body(Kind::OpenAi, Aim::Speed, &Prompt::Message("hi".into()));
        let (_, words) = body(Kind::Sglang, Aim::Words, &Prompt::Ids(vec![1]));
        assert_eq!(
            (&words["ignore_eos"], &words["temperature"]),
            (&Value::Null, &json!(0.0))
        );
        let (text_path, text) = body(Kind::OpenAi, Aim::Speed, &Prompt::Text("hi".into()));
        assert_eq!(
            (text_path, &text["prompt"]),
            ("/v1/completions", &json!("hi"))
        );
        assert_eq!(path, "/v1/chat/completions");
        assert_eq!(
            plain,
            json!({"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]})
        );
    }
}
