//! Refusals of requests that are longer than the context, in the words of each server.

use super::EngineError;
use super::http::message;
use super::text::{number_after, number_before};
use serde_json::Value;

/// Reads an error answer as "longer than the context", with the figures that it names; `None` if it is about something else.
///
/// `asked` is what the request would need as the server counts it (input alone, or input and output where the message adds them
/// up), `limit` what it allows, both in tokens.
pub fn read(status: u16, body: &[u8]) -> Option<EngineError> {
    if !matches!(status, 400 | 413 | 422) {
        return None;
    }
    let text = message(body);
    let json: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let error = json.get("error").unwrap_or(&json);
    let field = |name: &str| error.get(name).and_then(Value::as_u64);
    let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    if !is_over_limit([word("type"), word("code")], &text) {
        return None;
    }
    let (asked, limit) = if text.contains("exceeds the available context size") {
        (
            field("n_prompt_tokens").or_else(|| number_after(&text, "request (")),
            field("n_ctx").or_else(|| number_after(&text, "context size (")),
        )
    } else if text.contains("maximum context length") {
        (
            number_after(&text, "requested a total of ")
                .or_else(|| number_after(&text, "you requested "))
                .or_else(|| number_after(&text, "your prompt contains at least "))
                .or_else(|| number_after(&text, "your prompt contains "))
                .or_else(|| number_after(&text, "resulted in "))
                .or_else(|| number_before(&text, " input tokens")),
            number_after(&text, "maximum context length is ")
                .or_else(|| number_after(&text, "maximum context length of ")),
        )
    } else if text.contains("is longer than the model's context length") {
        (
            number_after(&text, "The input ("),
            number_after(&text, "context length ("),
        )
    } else if text.contains("exceeds the maximum allowed length") {
        (
            number_after(&text, "Input length ("),
            number_after(&text, "allowed length ("),
        )
    } else if text.contains("longer than the maximum model length") {
        (
            number_after(&text, "(length "),
            number_after(&text, "maximum model length of "),
        )
    } else {
        (field("n_prompt_tokens"), field("n_ctx"))
    };
    Some(EngineError::OverLimit {
        message: text,
        asked,
        limit,
    })
}

/// Whether an error is about a request that is longer than the context: by its type or code, where these say it, else by its words, of
/// every server and of those that speak alike.
pub fn is_over_limit(kinds: [&str; 2], text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let says = |word: &str| text.contains(word);
    let too_long = says("exceed") || says("longer than") || says("too long") || says("maximum");
    let of_context =
        says("context") || says("allowed length") || says("model length") || says("max_model_len");
    kinds.contains(&"exceed_context_size_error")
        || kinds.contains(&"context_length_exceeded")
        || (too_long && of_context)
        || says("prompt is too long")
        // vLLM cuts the answer to what the context leaves, and then finds that nothing is left, or less than the least asked for.
        || says("max_tokens must be at least 1, got 0")
        || says("min_tokens must be less than or equal to max_tokens=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(body: &str) -> (Option<u64>, Option<u64>) {
        match read(400, body.as_bytes()) {
            Some(EngineError::OverLimit { asked, limit, .. }) => (asked, limit),
            other => panic!("{other:?} from {body}"),
        }
    }

    #[test]
    fn the_words_of_all_servers_give_their_figures() {
        for (body, asked, limit) in [
            (
                r#"{"error":{"code":400,"message":"request (2148 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":2148,"n_ctx":2048}}"#,
                Some(2148),
                Some(2048),
            ),
            (
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your prompt contains 8292 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=8292)","type":"BadRequestError","param":"input_tokens","code":400}}"#,
                Some(8292),
                Some(8192),
            ),
            (
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens, which exceeds this limit even without any output tokens.","type":"BadRequestError","code":400}}"#,
                Some(8193),
                Some(8192),
            ),
            (
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).","code":400}"#,
                Some(5000),
                Some(4096),
            ),
            (
                r#"{"error":{"message":"max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)","type":"BadRequestError","param":"max_tokens","code":400}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"min_tokens must be less than or equal to max_tokens=12, got 64.","type":"BadRequestError","param":null,"code":400}}"#,
                None,
                None,
            ),
            (
                r#"{"object":"error","message":"The input (8292 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","param":null,"code":400}"#,
                Some(8292),
                Some(8192),
            ),
            (
                r#"{"object":"error","message":"Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 8236 tokens: 8172 tokens from the input messages and 64 tokens for the completion.","type":"BadRequestError","code":400}"#,
                Some(8236),
                Some(8192),
            ),
            (
                r#"{"object":"error","message":"Input length (70000 tokens) exceeds the maximum allowed length (65530 tokens). Use a shorter input or enable --allow-auto-truncate.","code":400}"#,
                Some(70_000),
                Some(65_530),
            ),
            (
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","code":"context_length_exceeded"}}"#,
                Some(9000),
                Some(8192),
            ),
        ] {
            assert_eq!(figures(body), (asked, limit), "{body}");
        }
    }

    #[test]
    fn other_refusals_are_left_alone() {
        for body in [
            r#"{"error":{"message":"temperature must be non-negative","code":400}}"#,
            r#"{"object":"error","message":"1 validation error"}"#,
            "not json",
        ] {
            assert_eq!(read(400, body.as_bytes()), None, "{body}");
        }
        assert_eq!(
            read(500, br#"{"message":"maximum context length is 1 tokens"}"#),
            None
        );
    }
}
