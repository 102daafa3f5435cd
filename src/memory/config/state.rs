//! The shape of a linear layer's fixed state.

use super::Source;
use super::layers::Role;
use crate::memory::error::MemoryError;
use crate::memory::geometry::State;

/// The state of every linear layer; `None` where the model has none.
pub fn shapes(source: &Source<'_>, roles: &[Role]) -> Result<Option<State>, MemoryError> {
    if !roles.iter().any(|r| matches!(r, Role::State | Role::Both)) {
        return Ok(None);
    }
    let text = source.text;
    if let Some(inner) = text.object("linear_attn_config") {
        let heads = inner.need(&["num_heads"])?;
        let size = inner.need(&["head_dim"])?;
        return Ok(Some(State::Delta {
            key_heads: heads,
            value_heads: heads,
            key: size,
            value: size,
            kernel: inner.need(&["short_conv_kernel_size"])?,
        }));
    }
    if let Some(value_heads) = text.some(&["linear_num_value_heads"])? {
        return Ok(Some(State::Delta {
            key_heads: text.need(&["linear_num_key_heads"])?,
            value_heads,
            key: text.need(&["linear_key_head_dim"])?,
            value: text.need(&["linear_value_head_dim"])?,
            kernel: text.need(&["linear_conv_kernel_dim"])?,
        }));
    }
    if let Some(kernel) = text.some(&["conv_L_cache"])? {
        return Ok(Some(State::Conv {
            channels: text.need(&["conv_dim", "hidden_size"])?,
            kernel,
        }));
    }
    if source.is(&["minimax"]) {
        let heads = text.need(&["num_attention_heads"])?;
        let head = match text.some(&["head_dim"])? {
            Some(size) => size,
            None => text.need(&["hidden_size"])? / heads,
        };
        return Ok(Some(State::Lightning { heads, head }));
    }
    mamba(source).map(Some)
}

fn mamba(source: &Source<'_>) -> Result<State, MemoryError> {
    let text = source.text;
    let state = text.need(&["ssm_state_size", "mamba_d_state", "state_size"])?;
    let kernel = text.need(&["conv_kernel", "mamba_d_conv", "conv_kernel_size"])?;
    let mut heads = text.some(&["mamba_num_heads", "mamba_n_heads", "n_mamba_heads"])?;
    if source.is(&["mamba2"]) {
        heads = text.some(&["num_heads"])?;
    }
    let Some(heads) = heads else {
        return Ok(State::Mamba1 {
            inner: inner(source)?,
            state,
            kernel,
        });
    };
    let named: &[&'static str] = if source.is(&["mamba2"]) {
        &["head_dim"]
    } else {
        &["mamba_head_dim", "mamba_d_head", "mamba_headdim"]
    };
    // "auto" stands for the inner width divided by the heads.
    let auto = text.any(named).is_none_or(|(_, value)| value.is_string());
    let head = if auto {
        let inner = inner(source)?;
        if !inner.is_multiple_of(heads) {
            return Err(MemoryError::Missing(format!(
                "the mamba head size, and {inner} channels do not divide by {heads} heads"
            )));
        }
        inner / heads
    } else {
        text.need(named)?
    };
    Ok(State::Mamba2 {
        heads,
        head,
        groups: text
            .some(&["n_groups", "mamba_n_groups", "mamba_ngroups"])?
            .unwrap_or(1),
        state,
        kernel,
    })
}

/// Channels of the mamba mixer: as given, else the width times the expansion.
fn inner(source: &Source<'_>) -> Result<u64, MemoryError> {
    let text = source.text;
    let pure = source.is(&["mamba", "falconmamba"]);
    let given = if pure {
        text.some(&["intermediate_size", "d_inner"])?
    } else {
        text.some(&["mamba_d_ssm", "mamba_intermediate_size"])?
    };
    if let Some(inner) = given {
        return Ok(inner);
    }
    let expand = text.need(&["mamba_expand", "expand"])?;
    Ok(text.need(&["hidden_size", "d_model"])? * expand)
}
