//! One event of an OpenAI-compatible stream, parsed without copying what needs no unescaping.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A string that borrows from the event. A newtype, because serde copies a bare `Option<Cow<str>>`.
#[derive(Debug, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text of a field that may be absent, null or empty.
pub fn filled<'a>(field: &'a Option<Text<'_>>) -> Option<&'a str> {
    field.as_ref().map(Text::as_str).filter(|t| !t.is_empty())
}

/// An event of `/v1/chat/completions` or `/v1/completions`.
#[derive(Debug, Deserialize)]
pub struct Chunk<'a> {
    /// The first choice; the others do not exist, as `n` is never asked for.
    #[serde(borrow, default)]
    pub choices: FirstChoice<'a>,
    pub usage: Option<Usage>,
    pub timings: Option<Timings>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    /// `error` in the flat form of SGLang and older vLLM.
    #[serde(borrow)]
    pub object: Option<Text<'a>>,
}

/// `choices[0]`, read without building a list.
#[derive(Debug, Default)]
pub struct FirstChoice<'a>(pub Option<Choice<'a>>);

#[derive(Debug, Deserialize)]
pub struct Choice<'a> {
    #[serde(borrow)]
    pub delta: Option<Delta<'a>>,
    /// The text of `/v1/completions`.
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    #[serde(borrow)]
    pub finish_reason: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub struct Delta<'a> {
    #[serde(borrow)]
    pub content: Option<Text<'a>>,
    /// Thinking, as SGLang, llama.cpp and older vLLM name it.
    #[serde(borrow)]
    pub reasoning_content: Option<Text<'a>>,
    /// Thinking, as vLLM names it.
    #[serde(borrow)]
    pub reasoning: Option<Text<'a>>,
    #[serde(default)]
    pub tool_calls: NonEmpty,
    pub function_call: Option<IgnoredAny>,
}

/// Token counts of the server. With continuous usage every event has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct Usage {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub prompt_tokens_details: Option<PromptDetails>,
}

impl Usage {
    /// Prompt tokens that came from the prefix cache, where the server tells.
    pub fn cached_tokens(&self) -> Option<u64> {
        self.prompt_tokens_details?.cached_tokens
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct PromptDetails {
    pub cached_tokens: Option<u64>,
}

/// llama.cpp's own measurement of a request.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
pub struct Timings {
    /// Prompt tokens that came from the cache.
    pub cache_n: Option<u64>,
    pub prompt_n: Option<u64>,
    pub prompt_ms: Option<f64>,
    pub predicted_n: Option<u64>,
    pub predicted_ms: Option<f64>,
}

/// Whether a list has anything in it; what it has is not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NonEmpty(pub bool);

struct FirstVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for FirstVisitor<'a> {
    type Value = FirstChoice<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(FirstChoice(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let first = seq.next_element()?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FirstChoice(first))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FirstChoice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FirstVisitor(PhantomData))
    }
}

struct NonEmptyVisitor;

impl<'de> Visitor<'de> for NonEmptyVisitor {
    type Value = NonEmpty;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(NonEmpty(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut any = false;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            any = true;
        }
        Ok(NonEmpty(any))
    }
}

impl<'de> Deserialize<'de> for NonEmpty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NonEmptyVisitor)
    }
}
