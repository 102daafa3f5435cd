//! Which layer is of which kind.

use super::fields::Fields;
use super::{MOST_LAYERS, Source, attention};
use crate::memory::error::MemoryError;
use serde_json::Value;

/// What a layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// KV over the whole length.
    Full,
    /// KV over a window or chunk.
    Window,
    /// A fixed state.
    State,
    /// KV over the whole length and a fixed state.
    Both,
    /// Neither.
    Nothing,
}

/// Fields that only models with a fixed state have.
const STATE_FIELDS: [&str; 14] = [
    "mamba_d_state",
    "mamba_d_conv",
    "mamba_num_heads",
    "mamba_n_heads",
    "n_mamba_heads",
    "ssm_state_size",
    "linear_num_value_heads",
    "linear_attn_config",
    "conv_L_cache",
    "attn_type_list",
    "lru_width",
    "ssm_cfg",
    "rwkv_version",
    "layer_group_size",
];

/// The role of each layer; `count` is the number that the configuration gives, if any.
pub fn roles(
    source: &Source<'_>,
    count: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<Vec<Role>, MemoryError> {
    let text = source.text;
    if let Some(pattern) = text.text("hybrid_override_pattern") {
        return fitted("hybrid_override_pattern", letters(pattern)?, count);
    }
    for name in ["layers_block_type", "layer_types", "block_types"] {
        if let Some(list) = text.list(name).filter(|list| !list.is_empty()) {
            let roles = list
                .iter()
                .map(|value| named(name, value))
                .collect::<Result<Vec<_>, _>>()?;
            return fitted(name, roles, count);
        }
    }
    let count = count.ok_or_else(|| MemoryError::Missing("num_hidden_layers".into()))?;
    let all = |role: Role| vec![role; usize::try_from(count).unwrap_or_default()];
    if source.is(&["falconh1"]) {
        return Ok(all(Role::Both));
    }
    if source.is(&["mamba", "falconmamba"]) {
        return Ok(all(Role::State));
    }
    if let Some(roles) = listed(source, count)? {
        return Ok(roles);
    }
    if let Some(period) = text.some(&["attn_layer_period"])? {
        let offset = text
            .count(&["attn_layer_offset"])?
            .ok_or_else(|| MemoryError::Missing("attn_layer_offset".into()))?;
        return Ok(each(count, |i| {
            if i % period == offset {
                Role::Full
            } else {
                Role::State
            }
        }));
    }
    let linear = text.has(&["linear_num_value_heads"]);
    if let Some(interval) = text
        .some(&["full_attention_interval"])?
        .or(linear.then_some(4))
    {
        if !text.has(&["full_attention_interval"]) {
            notes.push(
                "full_attention_interval is not given: every 4th layer is taken as full".into(),
            );
        }
        // Counted from 1.
        return Ok(each(count, |i| {
            if (i + 1) % interval == 0 {
                Role::Full
            } else {
                Role::State
            }
        }));
    }
    if let Some(field) = STATE_FIELDS.iter().find(|name| text.has(&[name])) {
        return Err(MemoryError::Unsupported(format!(
            "the configuration has {field}, so some layers keep a fixed state, but it does not say which"
        )));
    }
    windows(source, count)
}

fn each(count: u64, role: impl Fn(u64) -> Role) -> Vec<Role> {
    (0..count.min(MOST_LAYERS)).map(role).collect()
}

/// The list must have a word for each layer. Words beyond the count are those of the draft layers.
fn fitted(name: &str, mut roles: Vec<Role>, count: Option<u64>) -> Result<Vec<Role>, MemoryError> {
    let count = count.unwrap_or(roles.len() as u64);
    if (roles.len() as u64) < count || roles.is_empty() || count > MOST_LAYERS {
        return Err(MemoryError::Field {
            field: name.into(),
            value: format!("{} entries long", roles.len()),
            why: format!("the model has {count} layers"),
        });
    }
    roles.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(roles)
}

fn letters(pattern: &str) -> Result<Vec<Role>, MemoryError> {
    pattern
        .chars()
        .filter(|c| *c != '|')
        .take(MOST_LAYERS as usize + 1)
        .map(|c| match c {
            'M' => Ok(Role::State),
            '*' => Ok(Role::Full),
            '-' | 'E' => Ok(Role::Nothing),
            _ => Err(MemoryError::Unsupported(format!(
                "hybrid_override_pattern has the layer {c:?}, which is not known here"
            ))),
        })
        .collect()
}

fn named(field: &str, value: &Value) -> Result<Role, MemoryError> {
    let unknown = |what: &str| {
        MemoryError::Unsupported(format!(
            "{field} has the layer {:?}, which is not known here",
            crate::units::clean(what)
        ))
    };
    let name = value.as_str().ok_or_else(|| unknown(&value.to_string()))?;
    match name {
        "full_attention" | "attention" | "global_attention" | "global" => Ok(Role::Full),
        "sliding_attention" | "chunked_attention" | "local_attention" | "sliding_window"
        | "local" => Ok(Role::Window),
        "linear_attention" | "mamba" | "mamba2" | "conv" | "short_conv" => Ok(Role::State),
        "hybrid" => Ok(Role::Both),
        "moe" | "mlp" => Ok(Role::Nothing),
        other => Err(unknown(other)),
    }
}

/// Layers that are named by their index.
fn listed(source: &Source<'_>, count: u64) -> Result<Option<Vec<Role>>, MemoryError> {
    let text = source.text;
    let full_at = |full: &[u64], other: Role, role: Role| {
        each(count, |i| if full.contains(&i) { role } else { other })
    };
    // Kimi Linear counts from 1.
    if let Some(inner) = text.object("linear_attn_config") {
        let full = inner
            .counts("full_attn_layers")?
            .ok_or_else(|| MemoryError::Missing("linear_attn_config.full_attn_layers".into()))?;
        return Ok(Some(each(count, |i| {
            if full.contains(&(i + 1)) {
                Role::Full
            } else {
                Role::State
            }
        })));
    }
    for name in ["attn_layer_indices", "full_attn_idxs"] {
        if let Some(full) = text.counts(name)? {
            return Ok(Some(full_at(&full, Role::State, Role::Full)));
        }
    }
    if let Some(hybrid) = text.counts("hybrid_layer_ids")? {
        return Ok(Some(full_at(&hybrid, Role::State, Role::Both)));
    }
    // MiniMax: 1 is softmax attention, 0 is linear. MiMo: 1 is a window, 0 is full.
    for (name, one, zero) in [
        ("attn_type_list", Role::Full, Role::State),
        ("hybrid_layer_pattern", Role::Window, Role::Full),
    ] {
        if let Some(list) = text.counts(name)? {
            let roles = list
                .iter()
                .map(|n| if *n == 1 { one } else { zero })
                .collect();
            return fitted(name, roles, Some(count)).map(Some);
        }
    }
    Ok(blocks(text, count))
}

/// Blocks that were searched one by one (DeciLM): some have no attention.
fn blocks(text: Fields<'_>, count: u64) -> Option<Vec<Role>> {
    let list = text.list("block_configs")?;
    let without = |block: &Value| {
        let attention = block.get("attention");
        let set = |name: &str| {
            attention
                .and_then(|a| a.get(name))
                .and_then(Value::as_bool)
                .unwrap_or(false)
        };
        set("no_op") || set("replace_with_linear")
    };
    Some(each(count, |i| {
        let block = usize::try_from(i).ok().and_then(|i| list.get(i));
        if block.is_some_and(without) {
            Role::Nothing
        } else {
            Role::Full
        }
    }))
}

/// A model of attention layers alone: which of them look back a window only.
fn windows(source: &Source<'_>, count: u64) -> Result<Vec<Role>, MemoryError> {
    let text = source.text;
    let is_full = |full: bool| if full { Role::Full } else { Role::Window };
    if text.has(&["attention_chunk_size"]) && !text.has(&["sliding_window"]) {
        if let Some(list) = text.counts("no_rope_layers")?.filter(|l| !l.is_empty()) {
            // 1 has rotary positions and looks back a chunk, 0 has none and looks back to the start.
            let roles = list.iter().map(|n| is_full(*n == 0)).collect();
            return fitted("no_rope_layers", roles, Some(count));
        }
        let interval = text.some(&["no_rope_layer_interval"])?.unwrap_or(4);
        return Ok(each(count, |i| is_full((i + 1) % interval == 0)));
    }
    if attention::window_of(source)?.is_none() {
        return Ok(each(count, |_| Role::Full));
    }
    if let Some(pattern) = text.text("sliding_window_pattern") {
        let letters: Vec<char> = pattern.chars().filter(|c| matches!(c, 'L' | 'G')).collect();
        if letters.is_empty() || letters.len() != pattern.chars().count() {
            return Err(MemoryError::Unsupported(format!(
                "sliding_window_pattern is {:?}, which is not known here",
                crate::units::clean(pattern)
            )));
        }
        return Ok(each(count, |i| {
            is_full(letters.get(i as usize % letters.len()) == Some(&'G'))
        }));
    }
    let pattern = match text.some(&[
        "sliding_window_pattern",
        "_sliding_window_pattern",
        "layer_switch",
    ])? {
        Some(pattern) => Some(pattern),
        None => attention::class_default(source, "sliding_window_pattern"),
    };
    if let Some(pattern) = pattern {
        // Counted from 1; the last layer of Gemma 4 is always full.
        let last_full = source.is(&["gemma4"]);
        return Ok(each(count, |i| {
            is_full((i + 1) % pattern == 0 || (last_full && i + 1 == count))
        }));
    }
    // With the switch on, the first so many layers are full.
    let first = if text.flag("use_sliding_window") == Some(true) {
        text.count(&["max_window_layers"])?.unwrap_or(0)
    } else {
        0
    };
    Ok(each(count, |i| is_full(i < first)))
}
