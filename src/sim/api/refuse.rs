//! Refusals in SGLang's words.

use super::Rig;
use crate::sim::memory::POOL_TOKENS;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A request that cannot be served, in SGLang's flat error object.
pub fn bad_request(message: &str) -> Response {
    error(StatusCode::BAD_REQUEST, "BadRequestError", message)
}

/// The server's own failure.
pub fn failure(message: &str) -> Response {
    error(
        StatusCode::INTERNAL_SERVER_ERROR,
        "InternalServerError",
        message,
    )
}

fn error(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = json!({
        "object": "error",
        "message": message,
        "type": kind,
        "param": null,
        "code": status.as_u16(),
    });
    (status, Json(body)).into_response()
}

/// Tokens that the request may put out, or why it is refused. `wanted` is what it asks for, if it does.
pub fn check_length(rig: &Rig, input: u64, wanted: Option<u64>) -> Result<u64, String> {
    let context = rig.args.served();
    let longest = rig.max_input();
    if input == 0 {
        return Err("The prompt is empty.".to_string());
    }
    if input >= context {
        return Err(format!(
            "The input ({input} tokens) is longer than the model's context length ({context} tokens)."
        ));
    }
    if let Some(output) = wanted
        && input + output > context
    {
        return Err(format!(
            "Requested token count exceeds the model's maximum context length of {context} tokens. You requested a total of {} tokens: {input} tokens from the input messages and {output} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
            input + output
        ));
    }
    if input > longest {
        return Err(format!(
            "Input length ({input} tokens) exceeds the maximum allowed length ({longest} tokens). Use a shorter input or enable --allow-auto-truncate."
        ));
    }
    let room = context.min(POOL_TOKENS) - input;
    Ok(wanted.map_or(room, |output| output.min(room)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::args::SimArgs;

    #[test]
    fn lengths_are_refused_as_the_real_server_does() {
        let rig = |context_length| {
            Rig::new(SimArgs {
                context_length,
                ..SimArgs::default()
            })
        };
        let small = rig(8192);
        assert_eq!(check_length(&small, 8000, Some(192)), Ok(192));
        assert_eq!(check_length(&small, 8000, None), Ok(192));
        assert_eq!(
            check_length(&small, 8292, Some(1)),
            Err(
                "The input (8292 tokens) is longer than the model's context length (8192 tokens)."
                    .into()
            )
        );
        assert!(
            check_length(&small, 8192, None).is_err(),
            "a prompt that fills the context"
        );
        let total = check_length(&small, 8172, Some(64)).expect_err("too long");
        assert!(
            total.contains("a total of 8236 tokens: 8172 tokens from"),
            "{total}"
        );
        // The pool holds 159,744 tokens whatever the context says.
        let large = rig(262_144);
        let pool = check_length(&large, 170_000, Some(100)).expect_err("over the pool");
        assert!(
            pool.starts_with(
                "Input length (170000 tokens) exceeds the maximum allowed length (159738 tokens)"
            ),
            "{pool}"
        );
        assert_eq!(check_length(&large, 159_700, Some(100)), Ok(44));
    }
}
