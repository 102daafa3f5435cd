//! From a request to what will be said, as cheaply as it goes: tokens are counted, not made.

use super::Raw;
use super::script::Script;
use crate::sim::api::generate::{Ask, chat_text, missing};
use crate::sim::api::refuse::check_length;
use crate::sim::api::shape::{Kind, Shape, Usage};
use crate::sim::api::{MODEL, Rig};
use crate::sim::args::UsageFor;
use crate::sim::tokens::{count, template};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What will be sent, or the refusal in words. `number` counts the streams from 1.
pub fn script(
    rig: &Rig,
    raw: &Raw,
    kind: Kind,
    ask: Ask<'_>,
    number: u64,
) -> Result<Script, String> {
    let wanted = ask.wanted(kind)?;
    let prompt = match kind {
        Kind::Completion => prompt_tokens(ask.prompt.ok_or_else(|| missing("prompt"))?)?,
        Kind::Chat => match ask.messages {
            Some(messages) if !messages.is_empty() => {
                template(messages.len())
                    + messages.iter().map(|m| count(&chat_text(m))).sum::<u64>()
            }
            _ => return Err(missing("messages")),
        },
    };
    let room = check_length(rig, prompt, wanted)?;
    let most = rig.args.raw.answer_tokens.map_or(u64::MAX, u64::from);
    let total = u32::try_from(room.min(most)).unwrap_or(u32::MAX).max(1);
    let finish = if u64::from(total) < room {
        "stop"
    } else {
        "length"
    };
    let options = ask.stream_options.unwrap_or_default();
    let tell = match rig.args.raw.usage.unwrap_or(UsageFor::Asked) {
        UsageFor::Asked => options.include_usage == Some(true),
        UsageFor::Always => true,
        UsageFor::Never => false,
    };
    let shape = Shape::new(kind, MODEL.to_string());
    let usage = Usage::new(prompt, u64::from(total), 0);
    let mut script = Script::new(kind, prompt, total, number);
    script.running_usage =
        options.continuous_usage_stats == Some(true) && rig.args.raw.usage != Some(UsageFor::Never);
    if kind == Kind::Chat {
        script.open_with(&shape.role());
    }
    script.close_with(&match kind {
        Kind::Chat => shape.end(finish, None),
        Kind::Completion => shape.text("", Some(finish), None),
    });
    if tell {
        script.close_with(&shape.trailer(usage));
    }
    script.end();
    let manner = &raw.manner;
    let turn = |every: u64| every > 0 && number.is_multiple_of(every);
    script.cut_at = turn(manner.cut_every).then_some(total / 2);
    script.stall_at = turn(manner.stall_every).then_some(total / 2);
    Ok(script)
}

/// Tokens of a plain prompt: a text, ids, or one of either in a list.
fn prompt_tokens(prompt: &RawValue) -> Result<u64, String> {
    let text = prompt.get().trim_ascii();
    if text.starts_with('"') {
        let said: Cow<'_, str> = serde_json::from_str(text)
            .map_err(|error| format!("1 validation error:\n  {error}"))?;
        return Ok(count(&said));
    }
    let batch = || Err("this server answers one prompt a request".to_string());
    let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
        return Err("1 validation error:\n  a prompt is a text or a list of ids".to_string());
    };
    let inside = inside.trim_ascii();
    match inside.as_bytes().first() {
        None => Ok(0),
        Some(b'"' | b'[') => match serde_json::from_str::<[&RawValue; 1]>(text) {
            Ok([one]) => prompt_tokens(one),
            Err(_) => batch(),
        },
        Some(_) => Ok(1 + inside.bytes().filter(|b| *b == b',').count() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(json: &str) -> Result<u64, String> {
        let prompt: Box<RawValue> = serde_json::from_str(json).expect("json");
        prompt_tokens(&prompt)
    }

    #[test]
    fn prompts_are_counted_whatever_their_form() {
        assert_eq!(tokens("\"A river, 12345!\""), Ok(6));
        assert_eq!(tokens("[1, 2,3]"), Ok(3));
        assert_eq!(tokens("[[1,2]]"), Ok(2));
        assert_eq!(tokens("[\"a\\u0020b\"]"), Ok(2));
        assert_eq!(tokens("[]"), Ok(0));
        assert!(tokens("[\"a\",\"b\"]").is_err() && tokens("7").is_err());
    }
}
