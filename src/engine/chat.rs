//! One short conversation with a server: the proof of a token, and the questions of a smoke test.

use super::http::{Answer, Client, shorten};
use super::{EngineError, Probe};
use crate::units::clean;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A busy or slow server (a CPU one reads 100 prompt tokens a second) may take its time for a first token.
const LIMIT: Duration = Duration::from_secs(120);
/// Tokens of a probe: enough for some text even where the first one is a blank or half a character.
const PROBE_TOKENS: u32 = 8;
/// A longer answer than this is cut before it is kept.
const MAX_TEXT: usize = 64 << 10;

/// Asks for a few tokens with a prompt whose first words no cache has seen.
pub async fn probe(client: &Client, model: &str) -> Result<Probe, EngineError> {
    let mark: u64 = fastrand::u64(..);
    let prompt =
        format!("{mark:016x} is a mark that makes this question new. Answer it with a greeting.");
    ask(client, model, &prompt, PROBE_TOKENS).await
}

/// Asks one question at temperature 0, as a chat where the server has one and as a plain completion where it has not (a base
/// model without a chat template). An answer without a single token is an error.
pub async fn ask(
    client: &Client,
    model: &str,
    question: &str,
    max_tokens: u32,
) -> Result<Probe, EngineError> {
    let started = Instant::now();
    let body = json!({
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": false,
    });
    let answer = client.post("/v1/chat/completions", &body, LIMIT).await?;
    let answer = if has_no_chat(&answer) {
        let body = json!({
            "model": model,
            "prompt": question,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": false,
        });
        client.post("/v1/completions", &body, LIMIT).await?
    } else {
        answer
    };
    let value = answer.json()?;
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    read(&value, ms).ok_or_else(|| EngineError::Strange {
        url: answer.url().to_string(),
        what: format!(
            "its answer holds no token: {}",
            shorten(&clean(&value.to_string()), 200)
        ),
    })
}

/// Servers say so in their own ways: no such page, or no template for it.
fn has_no_chat(answer: &Answer) -> bool {
    match answer.status {
        404 | 405 => !String::from_utf8_lossy(&answer.body).contains("model"),
        400 | 500 => super::http::message(&answer.body)
            .to_ascii_lowercase()
            .contains("chat template"),
        _ => false,
    }
}

/// The answer of either kind of completion; `None` without a token. Reasoning stands in where there is no answer yet.
fn read(value: &Value, ms: u64) -> Option<Probe> {
    let choice = value.get("choices")?.get(0)?;
    let text = [
        "/message/content",
        "/text",
        "/message/reasoning_content",
        "/message/reasoning",
    ]
    .iter()
    .filter_map(|at| choice.pointer(at).and_then(Value::as_str))
    .find(|text| !text.is_empty())
    .unwrap_or_default();
    let counted = value
        .pointer("/usage/completion_tokens")
        .and_then(Value::as_u64);
    let output_tokens = match counted {
        Some(count) => count,
        // Without usage, text proves one token at least.
        None => u64::from(!text.is_empty()),
    };
    (output_tokens > 0).then(|| Probe {
        text: clean(&shorten(text, MAX_TEXT)),
        output_tokens,
        finish_reason: choice
            .get("finish_reason")
            .and_then(Value::as_str)
            .map(clean),
        ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_all_servers_are_read() {
        let sglang = json!({"choices":[{"message":{"role":"assistant","content":"each","reasoning_content":null},"finish_reason":"length"}],"usage":{"completion_tokens":8}});
        let probe = read(&sglang, 5).expect("token");
        assert_eq!((probe.text.as_str(), probe.output_tokens), ("each", 8));
        assert_eq!(probe.finish_reason.as_deref(), Some("length"));
        let thinking = json!({"choices":[{"message":{"content":null,"reasoning":"well"},"finish_reason":"length"}],"usage":{"completion_tokens":8}});
        assert_eq!(read(&thinking, 0).expect("token").text, "well");
        let plain = json!({"choices":[{"text":"a\u{1b}[2Jb"}]});
        let probe = read(&plain, 0).expect("token");
        assert_eq!((probe.text.as_str(), probe.output_tokens), ("ab", 1));
    }

    #[test]
    fn no_token_is_no_proof() {
        for empty in [
            json!({"choices":[]}),
            json!({"choices":[{"message":{"content":""},"finish_reason":"stop"}],"usage":{"completion_tokens":0}}),
            json!({"choices":[{"message":{"content":""}}]}),
            json!({"hello":"world"}),
        ] {
            assert_eq!(read(&empty, 0), None, "{empty}");
        }
    }
}
