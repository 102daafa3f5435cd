//! How long a model was made for, and what the engines derive from the same fields.

use super::{Source, attention, fields::Fields};
use crate::memory::error::MemoryError;
use crate::memory::geometry::Limit;

/// Reads the limit and the position scaling.
pub fn read(source: &Source<'_>) -> Result<Limit, MemoryError> {
    let text = source.text;
    let names = [
        "max_position_embeddings",
        "max_sequence_length",
        "seq_length",
        "max_seq_len",
        "model_max_length",
        "n_positions",
        "n_ctx",
    ];
    let config = text
        .some(&names)?
        .or_else(|| attention::class_default(source, "max_position_embeddings"));
    let Some(base) = config else {
        return Ok(Limit::default());
    };
    let same = Limit {
        config,
        scaled: config,
        scaling: None,
        sglang: config,
        vllm: config,
    };
    let Some(scaling) = scaling(text) else {
        return Ok(same);
    };
    let kind = scaling
        .text("rope_type")
        .or_else(|| scaling.text("type"))
        .unwrap_or("default");
    let Some(factor) = scaling.factor("factor") else {
        return Ok(same);
    };
    let in_scaling = scaling.some(&["original_max_position_embeddings"])?;
    let original = in_scaling.or(text.some(&["original_max_position_embeddings"])?);
    let times = |n: u64| (n as f64 * factor).min((1u64 << 40) as f64) as u64;
    let words = (factor > 1.0 && kind != "default" && kind != "mrope")
        .then(|| format!("{} x{}", crate::units::clean(kind), short(factor)));
    // These carry the longer limit in the configuration itself; so does Gemma 3, whose factor was used while training.
    let included = matches!(kind, "llama3" | "longrope" | "su" | "default" | "mrope")
        || source.is(&["gemma3"]);
    if included {
        return Ok(Limit {
            scaling: words,
            ..same
        });
    }
    let scaled = match original {
        Some(original) => times(original).max(base),
        None => times(base),
    };
    Ok(Limit {
        config,
        scaled: Some(scaled),
        scaling: words,
        sglang: Some(if in_scaling.is_some() {
            base
        } else {
            times(base)
        }),
        vllm: Some(match original {
            Some(original) if kind == "yarn" => times(original),
            _ => times(base),
        }),
    })
}

/// The scaling that holds for full layers; newer configurations keep one for each kind of layer.
fn scaling(text: Fields<'_>) -> Option<Fields<'_>> {
    ["rope_scaling", "rope_parameters"]
        .iter()
        .find_map(|name| text.object(name))
        .map(|scaling| scaling.object("full_attention").unwrap_or(scaling))
}

fn short(factor: f64) -> String {
    if factor.fract() == 0.0 {
        format!("{factor:.0}")
    } else {
        format!("{factor:.2}")
    }
}
