//! The exact arithmetic: bytes on one card, for each layer, from the model's geometry.

use super::error::MemoryError;
use super::geometry::{Attention, Cache, Geometry, Layer, State};
use super::types::{KvType, KvTypes, StateTypes};

type Bytes = Result<u128, MemoryError>;

/// How a model lies over cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Split {
    /// Tensor ranks.
    pub tp: u64,
    /// Replicas of the attention among them, each with its own pool.
    pub dp: u64,
    /// Stages, each with its own layers.
    pub pp: u64,
}

impl Default for Split {
    fn default() -> Self {
        Split {
            tp: 1,
            dp: 1,
            pp: 1,
        }
    }
}

impl Split {
    /// Refuses a layout that cannot be.
    pub fn checked(tp: u64, dp: u64, pp: u64) -> Result<Self, MemoryError> {
        let fail = |why: String| Err(MemoryError::Layout(why));
        if tp == 0 || dp == 0 || pp == 0 {
            return fail(
                "there is no layout over 0 cards; ranks, replicas and stages count from 1".into(),
            );
        }
        if tp > 4096 || pp > 4096 {
            return fail(format!(
                "{tp} ranks and {pp} stages are more than any rig has; at most 4096 of each"
            ));
        }
        if !tp.is_multiple_of(dp) {
            return fail(format!(
                "{tp} tensor ranks do not divide over {dp} attention replicas; --dp must divide --tp"
            ));
        }
        Ok(Split { tp, dp, pp })
    }

    /// Ranks that share one replica's attention.
    pub fn ranks(self) -> u64 {
        (self.tp / self.dp.max(1)).max(1)
    }

    /// Of `requests` over all replicas, those of the fullest replica.
    pub fn per_replica(self, requests: u64) -> u64 {
        requests.div_ceil(self.dp.max(1))
    }

    /// The layers of each stage: as many for each, what is left over from the last stage but one backwards.
    fn stages(self, layers: &[Layer]) -> Result<Vec<&[Layer]>, MemoryError> {
        let stages = usize::try_from(self.pp).map_err(|_| MemoryError::TooLarge)?;
        if stages > layers.len() {
            return Err(MemoryError::Layout(format!(
                "{} layers do not fill {stages} stages",
                layers.len()
            )));
        }
        let each = layers.len() / stages.max(1);
        let over = layers.len() % stages.max(1);
        let mut rest = layers;
        let mut found = Vec::with_capacity(stages);
        for stage in 0..stages {
            // The last stage also has the output layer, so it gets none of what is left over.
            let extra = usize::from(stage + 1 < stages && stage + 1 + over >= stages);
            let (head, tail) = rest.split_at((each + extra).min(rest.len()));
            found.push(head);
            rest = tail;
        }
        Ok(found)
    }
}

fn mul(parts: &[u128]) -> Bytes {
    parts.iter().try_fold(1u128, |product, part| {
        product.checked_mul(*part).ok_or(MemoryError::TooLarge)
    })
}

fn add(a: u128, b: u128) -> Bytes {
    a.checked_add(b).ok_or(MemoryError::TooLarge)
}

/// A result in 64 bits.
pub fn narrow(bytes: u128) -> Result<u64, MemoryError> {
    u64::try_from(bytes).map_err(|_| MemoryError::TooLarge)
}

/// `elements` in rows of `row`, which must be whole blocks.
fn stored(elements: u128, row: u64, kind: KvType) -> Bytes {
    if !row.is_multiple_of(kind.block) {
        return Err(MemoryError::Layout(format!(
            "{} is stored in blocks of {} values, and a head has {row}; take a type without blocks, for example bf16 or fp8",
            kind.name, kind.block
        )));
    }
    Ok(mul(&[elements, kind.bytes.into()])? / u128::from(kind.block.max(1)))
}

/// Bytes of one token in one layer's cache, on one of `ranks`.
///
/// Heads: `max(1, floor(H / T)) * (D_k + D_v)` elements; with more ranks than heads each keeps one. Latent: one copy, not divided.
fn token(attention: &Attention, ranks: u64, kv: KvTypes) -> Bytes {
    match attention.cache {
        Cache::Heads { heads, key, value } => {
            let heads = u128::from((heads / ranks.max(1)).max(1));
            let k = stored(mul(&[heads, key.into()])?, key, kv.key)?;
            let v = stored(mul(&[heads, value.into()])?, value, kv.value)?;
            add(k, v)
        }
        Cache::Latent {
            rank,
            rope,
            indexer: None,
        } => stored(add(rank.into(), rope.into())?, add_u64(rank, rope)?, kv.key),
        Cache::Latent {
            rank,
            rope,
            indexer: Some(index),
        } => {
            // Sparse attention in fp8: the latent in fp8 with a 4-byte scale for each 128, the position part in 16 bits. The
            // indexer's keys are fp8 with such scales whatever the type of the cache.
            let scaled = |n: u64| add(n.into(), u128::from(n.div_ceil(128)) * 4);
            let latent = if kv.key.block == 1 && kv.key.bytes == 1 {
                add(scaled(rank)?, mul(&[rope.into(), 2])?)?
            } else {
                stored(add(rank.into(), rope.into())?, add_u64(rank, rope)?, kv.key)?
            };
            add(latent, scaled(index)?)
        }
    }
}

fn add_u64(a: u64, b: u64) -> Result<u64, MemoryError> {
    a.checked_add(b).ok_or(MemoryError::TooLarge)
}

/// Tokens that a layer holds of one sequence or pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Full layers `n`, window layers `min(n, W)`.
    Ideal(u64),
    /// Every layer `n`.
    Uniform(u64),
    /// Full layers alone, `n`.
    FullOnly(u64),
    /// Window layers alone, `n`.
    WindowOnly(u64),
    /// llama.cpp: full layers all `cells`; window layers `min(cells, pad(W * sequences + ubatch, 256))`, `copies` times.
    Cells {
        cells: u64,
        sequences: u64,
        ubatch: u64,
        copies: u64,
    },
    /// vLLM: whole blocks of `block` tokens; a window layer `min(W - 1 + batch, n)` and one block more.
    Blocks { n: u64, block: u64, batch: u64 },
}

impl Holds {
    fn tokens(self, window: Option<u64>) -> Bytes {
        let tokens = match (self, window) {
            (Holds::Ideal(n), Some(w)) => n.min(w).into(),
            (Holds::FullOnly(_), Some(_)) | (Holds::WindowOnly(_), None) => 0,
            (Holds::Ideal(n), None)
            | (Holds::Uniform(n) | Holds::FullOnly(n) | Holds::WindowOnly(n), _) => n.into(),
            (Holds::Cells { cells, copies, .. }, None) => mul(&[cells.into(), copies.into()])?,
            (
                Holds::Cells {
                    cells,
                    sequences,
                    ubatch,
                    copies,
                },
                Some(w),
            ) => {
                let wanted = add(mul(&[w.into(), sequences.into()])?, ubatch.into())?;
                let padded = mul(&[wanted.div_ceil(256), 256])?;
                mul(&[padded.min(cells.into()), copies.into()])?
            }
            (Holds::Blocks { n, block, .. }, None) => whole(n.into(), block)?,
            (Holds::Blocks { n, block, batch }, Some(w)) => {
                let held = (u128::from(w.saturating_sub(1)) + u128::from(batch)).min(n.into());
                add(whole(held, block)?, block.into())?
            }
        };
        Ok(tokens)
    }
}

fn whole(n: u128, block: u64) -> Bytes {
    let block = u128::from(block.max(1));
    mul(&[n.div_ceil(block), block])
}

fn sum(layers: &[Layer], of: impl Fn(&Layer) -> Bytes) -> Bytes {
    layers
        .iter()
        .try_fold(0u128, |total, layer| add(total, of(layer)?))
}

/// The fullest stage's sum: the tightest card decides.
fn fullest(geometry: &Geometry, split: Split, of: impl Fn(&Layer) -> Bytes) -> Bytes {
    split
        .stages(&geometry.layers)?
        .into_iter()
        .map(|stage| sum(stage, &of))
        .try_fold(0u128, |most, bytes| Ok(most.max(bytes?)))
}

/// KV bytes on one card for layers that hold `holds`.
pub fn kv(geometry: &Geometry, split: Split, types: KvTypes, holds: Holds) -> Bytes {
    fullest(geometry, split, |layer| match &layer.attention {
        None => Ok(0),
        Some(attention) => mul(&[
            holds.tokens(attention.window)?,
            token(attention, split.ranks(), types)?,
        ]),
    })
}

/// KV bytes of the draft layers on one card, `tokens` in each.
pub fn draft(geometry: &Geometry, split: Split, types: KvTypes, tokens: u64) -> Bytes {
    sum(&geometry.draft, |layer| match &layer.attention {
        None => Ok(0),
        Some(attention) => mul(&[tokens.into(), token(attention, split.ranks(), types)?]),
    })
}

/// The widest layer's bytes of one token, and the largest layer's state: vLLM makes their pages equal.
pub fn largest(
    geometry: &Geometry,
    split: Split,
    types: KvTypes,
    state: StateTypes,
) -> Result<(u128, u128), MemoryError> {
    let mut most = (0, 0);
    for layer in &geometry.layers {
        if let Some(attention) = &layer.attention {
            most.0 = most.0.max(token(attention, split.ranks(), types)?);
        }
        if let Some(held) = &layer.state {
            most.1 = most.1.max(slot(held, split.ranks(), state)?);
        }
    }
    Ok(most)
}

/// Fixed bytes of one sequence on one card, all linear layers together.
pub fn state(geometry: &Geometry, split: Split, types: StateTypes) -> Bytes {
    fullest(geometry, split, |layer| match &layer.state {
        None => Ok(0),
        Some(state) => slot(state, split.ranks(), types),
    })
}

/// One layer's fixed bytes of one sequence on one of `ranks`: recurrent and convolution.
fn slot(state: &State, ranks: u64, types: StateTypes) -> Bytes {
    let s = types.ssm.bytes().into();
    let c = types.conv.bytes().into();
    let share = |n: u64, what: &str| -> Result<u128, MemoryError> {
        if n.is_multiple_of(ranks) {
            Ok(u128::from(n / ranks.max(1)))
        } else {
            Err(MemoryError::Layout(format!(
                "{n} {what} do not divide over {ranks} ranks; no engine starts so, take a divisor"
            )))
        }
    };
    let before = |kernel: u64| u128::from(kernel.saturating_sub(1));
    match *state {
        State::Delta {
            key_heads,
            value_heads,
            key,
            value,
            kernel,
        } => {
            let v = share(value_heads, "linear value heads")?;
            let k = share(key_heads, "linear key heads")?;
            let recurrent = mul(&[v, value.into(), key.into(), s])?;
            let width = add(mul(&[v, value.into()])?, mul(&[2, k, key.into()])?)?;
            add(recurrent, mul(&[width, before(kernel), c])?)
        }
        State::Mamba2 {
            heads,
            head,
            groups,
            state,
            kernel,
        } => {
            let heads = share(heads, "mamba heads")?;
            // Groups are added so that each rank has one where there are fewer groups than ranks.
            let groups = if groups < ranks {
                1
            } else {
                share(groups, "mamba groups")?
            };
            let recurrent = mul(&[heads, head.into(), state.into(), s])?;
            let width = add(
                mul(&[heads, head.into()])?,
                mul(&[2, groups, state.into()])?,
            )?;
            add(recurrent, mul(&[width, before(kernel), c])?)
        }
        State::Mamba1 {
            inner,
            state,
            kernel,
        } => {
            let inner = share(inner, "mamba channels")?;
            add(
                mul(&[inner, state.into(), s])?,
                mul(&[inner, before(kernel), c])?,
            )
        }
        State::Lightning { heads, head } => {
            mul(&[share(heads, "linear heads")?, head.into(), head.into(), s])
        }
        State::Conv { channels, kernel } => {
            mul(&[share(channels, "convolution channels")?, before(kernel), c])
        }
    }
}

/// Bytes on one card for one `page` in each linear layer.
pub fn pages(geometry: &Geometry, split: Split, page: u128) -> Bytes {
    fullest(geometry, split, |layer| {
        Ok(if layer.state.is_some() { page } else { 0 })
    })
}
