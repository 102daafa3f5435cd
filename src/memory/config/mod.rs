//! A model's `config.json`: its text part, its family, its layers.
//!
//! Formulas and field names: the public configurations and the engines' own readers of them (`configs/model_config.py` of SGLang,
//! `vllm/config/model.py`, `llama-hparams.cpp`).

mod attention;
mod fields;
mod json;
mod layers;
mod limit;
mod state;
#[cfg(test)]
mod tests;

use super::error::MemoryError;
use super::geometry::{Geometry, Layer};
use super::types::StateType;
use fields::Fields;
use layers::Role;
use serde_json::Value;

/// A configuration is far smaller; more is not read.
pub const MOST_BYTES: u64 = 16 << 20;

/// No model has more layers.
pub const MOST_LAYERS: u64 = 4096;

/// Where the language model of a model that also sees or hears is described, the outer name first.
const TEXT_PARTS: [&str; 5] = [
    "thinker_config",
    "text_config",
    "llm_config",
    "language_config",
    "language_model_config",
];

/// Names of the number of layers.
const LAYER_COUNTS: [&str; 5] = [
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "num_decoder_layers",
];

/// Kinds of model that have no such KV cache, or another than the formulas know.
const UNKNOWN: [(&str, &str); 24] = [
    ("rwkv", "RWKV keeps another kind of state"),
    ("retnet", "RetNet keeps another kind of state"),
    (
        "recurrentgemma",
        "RecurrentGemma keeps another kind of state",
    ),
    ("griffin", "Griffin keeps another kind of state"),
    ("xlstm", "xLSTM keeps another kind of state"),
    ("plamo2", "the layout of PLaMo 2 is not known here"),
    (
        "deepseekv4",
        "DeepSeek V4 compresses its cache in a way that is not known here",
    ),
    ("bert", "it is an encoder and keeps no KV cache"),
    ("roberta", "it is an encoder and keeps no KV cache"),
    ("xlmroberta", "it is an encoder and keeps no KV cache"),
    ("camembert", "it is an encoder and keeps no KV cache"),
    ("modernbert", "it is an encoder and keeps no KV cache"),
    ("nomicbert", "it is an encoder and keeps no KV cache"),
    ("distilbert", "it is an encoder and keeps no KV cache"),
    ("electra", "it is an encoder and keeps no KV cache"),
    ("deberta", "it is an encoder and keeps no KV cache"),
    ("mpnet", "it is an encoder and keeps no KV cache"),
    ("clip", "it is no language model"),
    ("siglip", "it is no language model"),
    (
        "t5",
        "encoder-decoder models keep a second cache that is not counted here",
    ),
    (
        "mt5",
        "encoder-decoder models keep a second cache that is not counted here",
    ),
    (
        "bart",
        "encoder-decoder models keep a second cache that is not counted here",
    ),
    (
        "whisper",
        "encoder-decoder models keep a second cache that is not counted here",
    ),
    (
        "mllama",
        "cross-attention layers hold images, which is not counted here",
    ),
];

/// What the parts of the reader share.
struct Source<'a> {
    /// The text part.
    text: Fields<'a>,
    /// The whole.
    top: Fields<'a>,
    /// `model_type`, else the architecture: lower case letters and digits only.
    family: String,
}

impl Source<'_> {
    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.family.starts_with(name))
    }
}

/// Reads the text of a `config.json`. `name` is what the model is called in the answer; the family where it is `None`.
pub fn parse(text: &str, name: Option<&str>) -> Result<Geometry, MemoryError> {
    read(&json::parse(text)?, name)
}

/// Reads a configuration.
pub fn read(value: &Value, name: Option<&str>) -> Result<Geometry, MemoryError> {
    let top = value
        .as_object()
        .map(Fields)
        .ok_or_else(|| MemoryError::NotConfig("it is not a JSON object".into()))?;
    if top.has(&["peft_type"]) {
        return Err(MemoryError::NotConfig(
            "this is an adapter's configuration".into(),
        ));
    }
    let text = text_part(top);
    let source = Source {
        family: family(text, top),
        text,
        top,
    };
    refuse(&source)?;
    let mut notes = Vec::new();
    let count = layer_count(&source)?;
    let roles = layers::roles(&source, count, &mut notes)?;
    let shapes = attention::shapes(&source, &roles, &mut notes)?;
    let states = state::shapes(&source, &roles)?;
    let shared = shared(&source, roles.len())?;
    let own = roles.len() - shared;
    let mut layers = Vec::with_capacity(roles.len());
    for (index, role) in roles.iter().enumerate() {
        let attention = match role {
            Role::Full | Role::Both => shapes.full(index),
            Role::Window => shapes.window(index),
            Role::State | Role::Nothing => None,
        };
        layers.push(Layer {
            // The last so many use the cache of an earlier one.
            attention: attention.filter(|_| index < own),
            state: match role {
                Role::State | Role::Both => states,
                _ => None,
            },
        });
    }
    if shared > 0 {
        notes.push(format!(
            "the last {shared} layers use the cache of earlier ones and hold nothing"
        ));
    }
    let draft = (0..draft_layers(&source)?)
        .map(|_| Layer {
            attention: shapes.draft(),
            state: None,
        })
        .collect();
    let known = source.family.clone();
    Ok(Geometry {
        name: name.map_or_else(|| own_name(&source), crate::units::clean),
        family: known,
        layers,
        draft,
        limit: limit::read(&source)?,
        state_type: state_type(&source),
        notes,
    })
}

fn text_part(top: Fields<'_>) -> Fields<'_> {
    let mut part = top;
    for name in TEXT_PARTS {
        // Some models describe the language part flat and repeat a piece of it inside.
        if let Some(inner) = part.object(name)
            && (inner.has(&LAYER_COUNTS) || !part.has(&LAYER_COUNTS))
        {
            part = inner;
        }
    }
    part
}

/// `Qwen3_5ForCausalLM` and `qwen3_5` both as `qwen35…`.
pub fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .take(64)
        .collect()
}

fn family(text: Fields<'_>, top: Fields<'_>) -> String {
    let architecture = |part: Fields<'_>| {
        part.list("architectures")
            .and_then(|list| list.first())
            .and_then(Value::as_str)
            .map(plain)
    };
    text.text("model_type")
        .or_else(|| top.text("model_type"))
        .map(plain)
        .filter(|name| !name.is_empty())
        .or_else(|| architecture(text))
        .or_else(|| architecture(top))
        .unwrap_or_default()
}

fn own_name(source: &Source<'_>) -> String {
    for part in [source.top, source.text] {
        if let Some(name) = part.text("_name_or_path").filter(|n| !n.is_empty()) {
            return crate::units::clean(name.rsplit('/').next().unwrap_or(name));
        }
    }
    source.family.clone()
}

fn refuse(source: &Source<'_>) -> Result<(), MemoryError> {
    let outer = source.top.text("model_type").map(plain).unwrap_or_default();
    let is = |name: &str| {
        let ends = |rest: &str| {
            rest.is_empty()
                || ["for", "model", "text"]
                    .iter()
                    .any(|word| rest.starts_with(word))
                // RWKV's versions.
                || rest.chars().all(|c| c.is_ascii_digit())
        };
        [&source.family, &outer]
            .iter()
            .any(|family| family.strip_prefix(name).is_some_and(ends))
    };
    for (name, why) in UNKNOWN {
        if is(name) {
            return Err(MemoryError::Unsupported(why.into()));
        }
    }
    if source.text.has(&["cross_attention_layers"]) {
        return Err(MemoryError::Unsupported(
            "cross-attention layers hold images, which is not counted here".into(),
        ));
    }
    if source.text.flag("is_encoder_decoder") == Some(true) {
        return Err(MemoryError::Unsupported(
            "encoder-decoder models keep a second cache that is not counted here".into(),
        ));
    }
    if source.text.has(&["compress_ratios"]) {
        return Err(MemoryError::Unsupported(
            "it compresses its cache (compress_ratios) in a way that is not known here".into(),
        ));
    }
    Ok(())
}

fn layer_count(source: &Source<'_>) -> Result<Option<u64>, MemoryError> {
    let mut count = source.text.some(&LAYER_COUNTS)?;
    if count.is_none() {
        count = attention::class_default(source, "num_hidden_layers");
    }
    // Each layer of LongCat-Flash has two attentions.
    if source.is(&["longcatflash"]) {
        count = count.map(|n| n * 2);
    }
    if count.is_some_and(|n| n > MOST_LAYERS) {
        return Err(MemoryError::Field {
            field: "num_hidden_layers".into(),
            value: count.unwrap_or_default().to_string(),
            why: format!("no real model has more than {MOST_LAYERS} layers"),
        });
    }
    Ok(count)
}

/// Layers at the end that use the cache of earlier ones (Gemma 3n and 4).
fn shared(source: &Source<'_>, layers: usize) -> Result<usize, MemoryError> {
    let shared = source
        .text
        .count(&["num_kv_shared_layers"])?
        .or_else(|| attention::class_default(source, "num_kv_shared_layers"))
        .unwrap_or(0);
    usize::try_from(shared)
        .ok()
        .filter(|n| *n < layers || *n == 0)
        .ok_or_else(|| MemoryError::Field {
            field: "num_kv_shared_layers".into(),
            value: shared.to_string(),
            why: format!("the model has {layers} layers"),
        })
}

/// Layers that only draft.
fn draft_layers(source: &Source<'_>) -> Result<u64, MemoryError> {
    let names = [
        "num_nextn_predict_layers",
        "mtp_num_hidden_layers",
        "num_mtp_layers",
        "mtp_num_layers",
        "num_mtp_modules",
    ];
    let mut count = 0;
    for part in [source.text, source.top] {
        if count == 0 {
            count = part.count(&names)?.unwrap_or(0);
        }
    }
    // Where the draft block has a pattern of its own, only its attention layers hold a cache.
    if let Some(pattern) = source.text.text("mtp_hybrid_override_pattern") {
        count *= pattern.chars().filter(|c| *c == '*').count() as u64;
    }
    if count > MOST_LAYERS {
        return Err(MemoryError::Field {
            field: "num_nextn_predict_layers".into(),
            value: count.to_string(),
            why: "no real model has so many draft layers".into(),
        });
    }
    Ok(count)
}

fn state_type(source: &Source<'_>) -> Option<StateType> {
    ["mamba_ssm_dtype", "mamba_ssm_cache_dtype"]
        .iter()
        .find_map(|name| source.text.text(name))
        .and_then(|text| text.rsplit('.').next().unwrap_or(text).parse().ok())
}
