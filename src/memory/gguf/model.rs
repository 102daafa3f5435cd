//! What a GGUF header says about memory, as llama.cpp reads it.

use super::read::{Header, Value};
use crate::memory::config::{MOST_LAYERS, plain};
use crate::memory::error::MemoryError;
use crate::memory::geometry::{Attention, Cache, Geometry, Layer, Limit, State};

/// Architectures whose cache is another, or none.
const UNKNOWN: [(&str, &str); 10] = [
    ("rwkv", "RWKV keeps another kind of state"),
    ("arwkv", "RWKV keeps another kind of state"),
    ("bert", "it is an encoder and keeps no KV cache"),
    ("nomic-bert", "it is an encoder and keeps no KV cache"),
    ("jina-bert", "it is an encoder and keeps no KV cache"),
    ("modern-bert", "it is an encoder and keeps no KV cache"),
    (
        "t5",
        "encoder-decoder models keep a second cache that is not counted here",
    ),
    (
        "deepseek4",
        "it compresses its cache in a way that is not known here",
    ),
    ("clip", "it is a projector, not a language model"),
    ("plamo2", "the layout of PLaMo 2 is not known here"),
];

/// Every how many layers one is full, where the file does not say.
const PATTERNS: [(&str, u64); 10] = [
    ("afmoe", 4),
    ("smallthinker", 4),
    ("gemma2", 2),
    ("gemma3n", 5),
    ("gemma3", 6),
    ("gemma-embedding", 6),
    ("gpt-oss", 2),
    ("cohere2", 4),
    ("exaone4", 4),
    ("olmo2", 4),
];

/// Architectures that llama.cpp holds in full, whatever window the file names.
const WITHOUT_WINDOW: [&str; 14] = [
    "llama",
    "mistral3",
    "qwen2",
    "qwen2moe",
    "qwen2vl",
    "qwen3",
    "qwen3moe",
    "qwen3vl",
    "qwen3vlmoe",
    "starcoder2",
    "phi3",
    "phimoe",
    "granite",
    "granitemoe",
];

struct Entries<'a> {
    header: &'a Header,
    arch: &'a str,
}

impl Entries<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.header.get(&format!("{}.{name}", self.arch))
    }

    fn count(&self, name: &str) -> Result<Option<u64>, MemoryError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Whole(n)) if *n <= 1 << 31 => Ok(Some(*n)),
            Some(other) => Err(MemoryError::Gguf(format!(
                "{}.{name} is {}, not a count that a model can have",
                self.arch,
                crate::units::clean(&format!("{other:?}").chars().take(60).collect::<String>())
            ))),
        }
    }

    fn some(&self, name: &str) -> Result<Option<u64>, MemoryError> {
        Ok(self.count(name)?.filter(|n| *n > 0))
    }

    fn need(&self, name: &str) -> Result<u64, MemoryError> {
        self.some(name)?
            .ok_or_else(|| MemoryError::Gguf(format!("{}.{name} is missing", self.arch)))
    }

    /// One value a layer: a list, or the same for all.
    fn each(&self, name: &str, layers: usize) -> Result<Option<Vec<u64>>, MemoryError> {
        match self.get(name) {
            Some(Value::List(list)) => {
                if list.len() < layers {
                    return Err(MemoryError::Gguf(format!(
                        "{}.{name} has {} entries for {layers} layers",
                        self.arch,
                        list.len()
                    )));
                }
                if list.iter().any(|n| *n > 1 << 31) {
                    return Err(MemoryError::Gguf(format!(
                        "{}.{name} has a count that no model can have",
                        self.arch
                    )));
                }
                Ok(Some(list.iter().copied().take(layers).collect()))
            }
            _ => Ok(self.count(name)?.map(|n| vec![n; layers])),
        }
    }
}

/// Builds the geometry.
pub fn geometry(header: &Header, name: Option<&str>) -> Result<Geometry, MemoryError> {
    let Some(Value::Text(arch)) = header.get("general.architecture") else {
        return Err(MemoryError::Gguf("general.architecture is missing".into()));
    };
    if let Some((_, why)) = UNKNOWN
        .iter()
        .find(|(known, _)| arch == known || (*known == "rwkv" && arch.starts_with("rwkv")))
    {
        return Err(MemoryError::Unsupported((*why).into()));
    }
    let entries = Entries { header, arch };
    if entries.get("attention.indexer.key_length").is_some() {
        return Err(MemoryError::Unsupported(
            "it selects what it attends to by an indexer, whose cache in llama.cpp is not known here".into(),
        ));
    }
    let blocks = entries.need("block_count")?;
    if blocks > MOST_LAYERS {
        return Err(MemoryError::Gguf(format!("it claims {blocks} layers")));
    }
    let drafts = entries.count("nextn_predict_layers")?.unwrap_or(0);
    if drafts >= blocks {
        return Err(MemoryError::Gguf(format!(
            "{drafts} of its {blocks} layers are draft layers"
        )));
    }
    let all = usize::try_from(blocks).unwrap_or_default();
    let own = usize::try_from(blocks - drafts).unwrap_or_default();
    let heads = Heads::read(&entries, all)?;
    let state = state(&entries)?;
    let linear = linear(&entries, &heads, own, state.is_some())?;
    let windows = windows(&entries, own)?;
    let shared = usize::try_from(entries.count("attention.shared_kv_layers")?.unwrap_or(0))
        .unwrap_or(usize::MAX);
    let both = arch == "falcon-h1";
    let mut layers = Vec::with_capacity(own);
    for index in 0..own {
        let is_linear = linear.get(index).copied().unwrap_or(false);
        let window = windows.get(index).copied().flatten();
        let holds = (!is_linear || both) && index < own.saturating_sub(shared);
        layers.push(Layer {
            attention: heads.at(index, window).filter(|_| holds),
            state: state.filter(|_| is_linear || both),
        });
    }
    let draft = (own..all)
        .map(|index| Layer {
            attention: heads.at(index, None).or_else(|| heads.widest()),
            state: None,
        })
        .collect();
    let mut notes = Vec::new();
    if shared > 0 {
        notes.push(format!(
            "the last {shared} layers use the cache of earlier ones and hold nothing"
        ));
    }
    let own_name = match header.get("general.name") {
        Some(Value::Text(text)) if !text.is_empty() => crate::units::clean(text),
        _ => crate::units::clean(arch),
    };
    Ok(Geometry {
        name: name.map_or(own_name, crate::units::clean),
        family: plain(arch),
        layers,
        draft,
        limit: limit(&entries)?,
        state_type: None,
        notes,
    })
}

/// The heads of each layer and their sizes.
struct Heads {
    kv: Vec<u64>,
    key: u64,
    value: u64,
    key_window: u64,
    value_window: u64,
    latent: Option<(u64, u64)>,
}

impl Heads {
    fn read(entries: &Entries<'_>, layers: usize) -> Result<Self, MemoryError> {
        let Some(query) = entries.each("attention.head_count", layers)? else {
            // A model of linear layers alone.
            return Ok(Heads {
                kv: vec![0; layers],
                key: 0,
                value: 0,
                key_window: 0,
                value_window: 0,
                latent: None,
            });
        };
        let kv = match entries.each("attention.head_count_kv", layers)? {
            Some(kv) => kv,
            None => query.clone(),
        };
        let width = entries.some("embedding_length")?;
        let most = query.iter().copied().max().unwrap_or(0);
        let derived = match width {
            Some(width) if most > 0 && width.is_multiple_of(most) => Some(width / most),
            _ => None,
        };
        let any = kv.iter().any(|n| *n > 0);
        let size = |name: &str| -> Result<u64, MemoryError> {
            match entries.some(name)?.or(derived) {
                Some(size) => Ok(size),
                None if !any => Ok(0),
                None => Err(MemoryError::Gguf(format!(
                    "{}.{name} is missing and cannot be derived",
                    entries.arch
                ))),
            }
        };
        let key = size("attention.key_length")?;
        let value = size("attention.value_length")?;
        // Files made for absorbed attention name the size of a head beside that of the latent; older ones do not, and keep
        // whole heads.
        let absorbed = entries.some("attention.key_length_mla")?.is_some()
            || (kv.iter().all(|n| *n <= 1) && any);
        let latent = match entries.some("attention.kv_lora_rank")? {
            Some(rank) if absorbed => Some((rank, entries.need("rope.dimension_count")?)),
            _ => None,
        };
        Ok(Heads {
            kv,
            key,
            value,
            key_window: entries.some("attention.key_length_swa")?.unwrap_or(key),
            value_window: entries.some("attention.value_length_swa")?.unwrap_or(value),
            latent,
        })
    }

    fn at(&self, index: usize, window: Option<u64>) -> Option<Attention> {
        let heads = self.kv.get(index).copied().filter(|n| *n > 0)?;
        let cache = match (self.latent, window) {
            (Some((rank, rope)), _) => Cache::Latent {
                rank,
                rope,
                indexer: None,
            },
            (None, None) => Cache::Heads {
                heads,
                key: self.key,
                value: self.value,
            },
            (None, Some(_)) => Cache::Heads {
                heads,
                key: self.key_window,
                value: self.value_window,
            },
        };
        Some(Attention { cache, window })
    }

    fn widest(&self) -> Option<Attention> {
        let index = (0..self.kv.len()).max_by_key(|i| self.kv.get(*i).copied().unwrap_or(0))?;
        self.at(index, None)
    }
}

/// The state of a linear layer. A gated delta net has its key heads as groups and its value heads as time steps.
fn state(entries: &Entries<'_>) -> Result<Option<State>, MemoryError> {
    if let Some(kernel) = entries.some("shortconv.l_cache")? {
        return Ok(Some(State::Conv {
            channels: entries.need("embedding_length")?,
            kernel,
        }));
    }
    let Some(kernel) = entries.some("ssm.conv_kernel")? else {
        return Ok(None);
    };
    if let Some(size) = entries.some("kda.head_dim")? {
        let heads = entries
            .each("attention.head_count", 1)?
            .and_then(|list| list.first().copied())
            .unwrap_or(0);
        return Ok(Some(State::Delta {
            key_heads: heads,
            value_heads: heads,
            key: size,
            value: size,
            kernel,
        }));
    }
    let inner = entries.need("ssm.inner_size")?;
    let state = entries.need("ssm.state_size")?;
    Ok(Some(match entries.some("ssm.group_count")? {
        None => State::Mamba1 {
            inner,
            state,
            kernel,
        },
        Some(groups) => {
            let heads = entries.need("ssm.time_step_rank")?;
            if !inner.is_multiple_of(heads) {
                return Err(MemoryError::Gguf(format!(
                    "{inner} channels do not divide by {heads} heads"
                )));
            }
            State::Mamba2 {
                heads,
                head: inner / heads,
                groups,
                state,
                kernel,
            }
        }
    }))
}

/// Which layers keep a state instead of a cache.
fn linear(
    entries: &Entries<'_>,
    heads: &Heads,
    layers: usize,
    state: bool,
) -> Result<Vec<bool>, MemoryError> {
    if !state {
        return Ok(vec![false; layers]);
    }
    let feed = entries.each("feed_forward_length", layers)?;
    let by_list = matches!(entries.get("attention.head_count_kv"), Some(Value::List(_)));
    if let Some(interval) = entries
        .some("full_attention_interval")?
        .filter(|_| !by_list)
    {
        return Ok((0..layers as u64)
            .map(|i| (i + 1) % interval != 0)
            .collect());
    }
    if !by_list && heads.kv.iter().any(|n| *n > 0) {
        if entries.arch == "falcon-h1" {
            return Ok(vec![true; layers]);
        }
        if entries.arch.starts_with("qwen3next") || entries.arch.starts_with("qwen35") {
            return Ok((0..layers).map(|i| (i + 1) % 4 != 0).collect());
        }
        return Err(MemoryError::Unsupported(format!(
            "{} keeps a fixed state, but the file does not say in which layers",
            crate::units::clean(entries.arch)
        )));
    }
    // Nemotron-H has layers that are neither: no heads, but a feed-forward part alone.
    let alone = entries.arch.starts_with("nemotron_h");
    Ok((0..layers)
        .map(|i| {
            let none = heads.kv.get(i).is_some_and(|n| *n == 0);
            let feeds = feed.as_ref().and_then(|f| f.get(i)).is_some_and(|n| *n > 0);
            none && !(alone && feeds)
        })
        .collect())
}

/// The window of each layer.
fn windows(entries: &Entries<'_>, layers: usize) -> Result<Vec<Option<u64>>, MemoryError> {
    let arch = entries.arch;
    let window = match entries.some("attention.sliding_window")? {
        Some(window) => Some(window),
        None => entries.some("attention.chunk_size")?,
    };
    // Llama 4 looks back 8192 in three of four layers.
    let window = match window {
        None if arch == "llama4" => Some(8192),
        Some(_) if WITHOUT_WINDOW.contains(&arch) => None,
        other => other,
    };
    let Some(window) = window else {
        return Ok(vec![None; layers]);
    };
    if let Some(Value::List(list)) = entries.get("attention.sliding_window_pattern") {
        if list.len() < layers {
            return Err(MemoryError::Gguf(format!(
                "the window pattern has {} entries for {layers} layers",
                list.len()
            )));
        }
        return Ok((0..layers)
            .map(|i| list.get(i).filter(|n| **n > 0).map(|_| window))
            .collect());
    }
    let pattern = match entries.some("attention.sliding_window_pattern")? {
        Some(pattern) => Some(pattern),
        None if arch == "llama4" => Some(4),
        None => PATTERNS
            .iter()
            .find(|(known, _)| *known == arch)
            .map(|(_, pattern)| *pattern),
    };
    match pattern {
        Some(pattern) => Ok((0..layers as u64)
            .map(|i| ((i + 1) % pattern != 0).then_some(window))
            .collect()),
        None => Err(MemoryError::Unsupported(format!(
            "{} has a window of {window} tokens, but the file does not say in which layers",
            crate::units::clean(arch)
        ))),
    }
}

fn limit(entries: &Entries<'_>) -> Result<Limit, MemoryError> {
    let trained = entries.some("context_length")?;
    let kind = match entries.get("rope.scaling.type") {
        Some(Value::Text(kind)) if kind != "none" => Some(crate::units::clean(kind)),
        _ => None,
    };
    let factor = match entries.get("rope.scaling.factor") {
        Some(Value::Real(factor)) if factor.is_finite() && *factor > 1.0 => Some(*factor),
        _ => None,
    };
    Ok(Limit {
        config: trained,
        scaled: trained,
        scaling: kind
            .zip(factor)
            .map(|(kind, factor)| format!("{kind} x{factor}")),
        sglang: trained,
        vllm: trained,
    })
}
