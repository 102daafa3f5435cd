//! The shape of each layer's KV cache.

use super::Source;
use super::layers::Role;
use crate::memory::error::MemoryError;
use crate::memory::geometry::{Attention, Cache};
use serde_json::Value;

/// Heads and sizes of the layers of one model.
pub struct Shapes {
    full: Option<Cache>,
    window: Option<(Cache, u64)>,
    /// KV heads of each layer, where they differ.
    each: Option<Vec<u64>>,
    /// The draft block looks back a window too.
    draft_window: bool,
}

impl Shapes {
    /// The cache of full layer `index`.
    pub fn full(&self, index: usize) -> Option<Attention> {
        Some(Attention {
            cache: self.at(self.full?, index)?,
            window: None,
        })
    }

    /// The cache of window layer `index`.
    pub fn window(&self, index: usize) -> Option<Attention> {
        let (cache, window) = self.window?;
        Some(Attention {
            cache: self.at(cache, index)?,
            window: Some(window),
        })
    }

    /// The cache of a draft layer: full attention of the model's own shape.
    pub fn draft(&self) -> Option<Attention> {
        match self.window {
            Some((cache, window)) if self.draft_window => Some(Attention {
                cache,
                window: Some(window),
            }),
            _ => Some(Attention {
                cache: self.full.or(self.window.map(|(cache, _)| cache))?,
                window: None,
            }),
        }
    }

    fn at(&self, cache: Cache, index: usize) -> Option<Cache> {
        match (&self.each, cache) {
            (Some(each), Cache::Heads { key, value, .. }) => {
                let heads = *each.get(index)?;
                (heads > 0).then_some(Cache::Heads { heads, key, value })
            }
            _ => Some(cache),
        }
    }
}

/// Reads them for the roles that occur.
pub fn shapes(
    source: &Source<'_>,
    roles: &[Role],
    notes: &mut Vec<String>,
) -> Result<Shapes, MemoryError> {
    let some = |wanted: &[Role]| roles.iter().any(|role| wanted.contains(role));
    let each = per_layer(source, roles.len())?;
    let mut shapes = Shapes {
        full: None,
        window: None,
        draft_window: source.text.has(&["hybrid_layer_pattern"]),
        each,
    };
    if some(&[Role::Full, Role::Both]) {
        shapes.full = Some(full(source, shapes.each.is_some(), notes)?);
    }
    if some(&[Role::Window]) {
        let window = window_of(source)?.ok_or_else(|| {
            MemoryError::Missing("sliding_window, although some layers look back a window".into())
        })?;
        shapes.window = Some((windowed(source, shapes.each.is_some(), notes)?, window));
    }
    Ok(shapes)
}

/// What a family's own class takes where its published configurations leave a field out.
pub fn class_default(source: &Source<'_>, field: &str) -> Option<u64> {
    let families: [(&str, &[(&str, u64)]); 6] = [
        (
            "gemma3n",
            &[
                ("num_hidden_layers", 35),
                ("num_attention_heads", 8),
                ("num_key_value_heads", 2),
                ("head_dim", 256),
                ("sliding_window", 512),
                ("sliding_window_pattern", 5),
                ("num_kv_shared_layers", 15),
                ("max_position_embeddings", 32_768),
            ],
        ),
        (
            "gemma3",
            &[
                ("num_hidden_layers", 26),
                ("num_attention_heads", 8),
                ("num_key_value_heads", 4),
                ("head_dim", 256),
                ("sliding_window", 4096),
                ("sliding_window_pattern", 6),
                ("max_position_embeddings", 131_072),
            ],
        ),
        (
            "gemma4",
            &[
                ("head_dim", 256),
                ("global_head_dim", 512),
                ("sliding_window", 512),
                ("sliding_window_pattern", 6),
            ],
        ),
        (
            "gemma2",
            &[
                ("head_dim", 256),
                ("sliding_window", 4096),
                ("sliding_window_pattern", 2),
                ("max_position_embeddings", 8192),
            ],
        ),
        ("gemma", &[("head_dim", 256)]),
        (
            "gptoss",
            &[
                ("head_dim", 64),
                ("num_key_value_heads", 8),
                ("sliding_window", 128),
                ("sliding_window_pattern", 2),
            ],
        ),
    ];
    families
        .iter()
        .find(|(family, _)| source.is(&[family]))?
        .1
        .iter()
        .find(|(name, _)| *name == field)
        .map(|(_, value)| *value)
}

/// The window of the layers that have one; `None` where it is switched off.
pub fn window_of(source: &Source<'_>) -> Result<Option<u64>, MemoryError> {
    let text = source.text;
    if text.flag("use_sliding_window") == Some(false) {
        return Ok(None);
    }
    let given = text.some(&[
        "sliding_window",
        "sliding_window_size",
        "attention_chunk_size",
    ])?;
    // Null switches it off; a field that is missing is what the family's class takes.
    if given.is_some() || text.0.contains_key("sliding_window") {
        return Ok(given);
    }
    Ok(class_default(source, "sliding_window"))
}

fn or_default(
    source: &Source<'_>,
    field: &'static str,
    given: Option<u64>,
    notes: &mut Vec<String>,
) -> Option<u64> {
    if given.is_some() {
        return given;
    }
    let value = class_default(source, field)?;
    let note = format!("{field} is not given: {value}, as this family's class takes it");
    if !notes.contains(&note) {
        notes.push(note);
    }
    Some(value)
}

fn heads(source: &Source<'_>, notes: &mut Vec<String>) -> Result<u64, MemoryError> {
    let names = ["num_attention_heads", "n_head", "n_heads", "num_heads"];
    let given = source.text.some(&names)?;
    or_default(source, "num_attention_heads", given, notes)
        .ok_or_else(|| MemoryError::Missing("num_attention_heads".into()))
}

/// KV heads: as given, as the family says it in another way, else one for each query head.
fn kv_heads(source: &Source<'_>, notes: &mut Vec<String>) -> Result<u64, MemoryError> {
    let text = source.text;
    let nested = match text.object("attn_config") {
        Some(inner) => inner.some(&["kv_n_heads"])?,
        None => None,
    };
    let one_for_all = match text.flag("multi_query_attention") {
        Some(true) => text.some(&["multi_query_group_num"])?.or(Some(1)),
        // Falcon with the new decoder has num_kv_heads and a flag that no longer counts.
        _ if text.flag("new_decoder_architecture") == Some(true) => None,
        _ => (text.flag("multi_query") == Some(true)).then_some(1),
    };
    let given = text
        .some(&[
            "num_key_value_heads",
            "n_kv_heads",
            "num_attention_groups",
            "num_query_groups",
        ])?
        .or(nested)
        .or(one_for_all)
        .or(text.some(&["num_kv_heads", "n_head_kv"])?);
    match or_default(source, "num_key_value_heads", given, notes) {
        Some(heads) => Ok(heads),
        None => heads(source, notes),
    }
}

/// A head's size: as given, else the width divided by the heads.
fn head_size(source: &Source<'_>, notes: &mut Vec<String>) -> Result<u64, MemoryError> {
    let given =
        source
            .text
            .some(&["head_dim", "attention_head_dim", "kv_channels", "head_size"])?;
    if let Some(size) = or_default(source, "head_dim", given, notes) {
        return Ok(size);
    }
    let width = source
        .text
        .need(&["hidden_size", "n_embd", "d_model", "dim"])?;
    let heads = heads(source, notes)?;
    if !width.is_multiple_of(heads) {
        return Err(MemoryError::Missing(format!(
            "head_dim, and hidden_size {width} does not divide by {heads} heads"
        )));
    }
    Ok(width / heads)
}

fn full(source: &Source<'_>, each: bool, notes: &mut Vec<String>) -> Result<Cache, MemoryError> {
    let text = source.text;
    let latent = text.flag("use_mla") != Some(false);
    if latent && let Some(rank) = text.some(&["kv_lora_rank"])? {
        return Ok(Cache::Latent {
            rank,
            rope: text.need(&["qk_rope_head_dim"])?,
            indexer: text.some(&["index_head_dim"])?,
        });
    }
    let mut kv = if each { 1 } else { kv_heads(source, notes)? };
    let global = text.some(&["global_head_dim"])?;
    let global = match global {
        None if source.is(&["gemma4"]) => or_default(source, "global_head_dim", None, notes),
        other => other,
    };
    let key = match global {
        Some(size) => size,
        None => head_size(source, notes)?,
    };
    let value = match global {
        Some(size) => size,
        None => text.some(&["v_head_dim"])?.unwrap_or(key),
    };
    if text.flag("attention_k_eq_v") == Some(true)
        && let Some(global) = text.some(&["num_global_key_value_heads"])?
    {
        kv = global;
    }
    Ok(Cache::Heads {
        heads: kv,
        key,
        value,
    })
}

fn windowed(
    source: &Source<'_>,
    each: bool,
    notes: &mut Vec<String>,
) -> Result<Cache, MemoryError> {
    let text = source.text;
    if text.flag("use_mla") != Some(false) && text.some(&["kv_lora_rank"])?.is_some() {
        return full(source, each, notes);
    }
    let other = match text.object("attention_other_setting") {
        Some(inner) => inner.some(&["num_attention_groups", "num_key_value_heads"])?,
        None => None,
    };
    let heads = match text.some(&["swa_num_key_value_heads"])?.or(other) {
        Some(heads) => heads,
        None if each => 1,
        None => kv_heads(source, notes)?,
    };
    let key = match text.some(&["swa_head_dim"])? {
        Some(size) => size,
        None => head_size(source, notes)?,
    };
    let value = text.some(&["swa_v_head_dim", "v_head_dim"])?.unwrap_or(key);
    Ok(Cache::Heads { heads, key, value })
}

/// KV heads layer by layer, where a configuration lists them.
fn per_layer(source: &Source<'_>, layers: usize) -> Result<Option<Vec<u64>>, MemoryError> {
    let text = source.text;
    for name in [
        "num_key_value_heads_per_layer",
        "num_kv_heads",
        "num_key_value_heads",
    ] {
        if text.list(name).is_some()
            && let Some(list) = text.counts(name)?
        {
            if list.len() != layers {
                return Err(MemoryError::Field {
                    field: name.into(),
                    value: format!("{} entries long", list.len()),
                    why: format!("the model has {layers} layers"),
                });
            }
            return Ok(Some(list));
        }
    }
    let Some(blocks) = text.list("block_configs") else {
        return Ok(None);
    };
    let query = heads(source, &mut Vec::new())?;
    let of = |block: &Value| -> Result<u64, MemoryError> {
        let attention = block.get("attention");
        let number = |name: &str| attention.and_then(|a| a.get(name)).and_then(Value::as_u64);
        match (number("num_key_value_heads"), number("n_heads_in_group")) {
            (Some(heads), _) => Ok(heads),
            (None, Some(group)) if group > 0 => Ok(query / group),
            // A block without attention has no heads.
            _ => Ok(0),
        }
    };
    if blocks.len() != layers {
        return Err(MemoryError::Field {
            field: "block_configs".into(),
            value: format!("{} entries long", blocks.len()),
            why: format!("the model has {layers} layers"),
        });
    }
    blocks
        .iter()
        .map(of)
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}
