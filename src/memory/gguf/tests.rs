//! Headers made by hand, and the same ones broken on purpose.

use super::*;
use crate::engine::Kind;
use crate::memory::geometry::{Cache, State};
use crate::memory::{Deployment, estimate};
use std::io::Cursor;

/// One entry: its name, its kind and its bytes.
enum Entry<'a> {
    U32(&'a str, u32),
    Text(&'a str, &'a str),
    List(&'a str, &'a [u32]),
    Bools(&'a str, &'a [bool]),
    Words(&'a str, usize),
    Real(&'a str, f32),
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn header(arch: &str, entries: &[Entry<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(b"GGUF");
    out.extend(3u32.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend((entries.len() as u64 + 1).to_le_bytes());
    let key = |out: &mut Vec<u8>, name: &str, kind: u32| {
        let name = if name.contains("tokenizer") || name.starts_with("general") {
            name.to_string()
        } else {
            format!("{arch}.{name}")
        };
        text(out, &name);
        out.extend(kind.to_le_bytes());
    };
    key(&mut out, "general.architecture", 8);
    text(&mut out, arch);
    for entry in entries {
        match entry {
            Entry::U32(name, value) => {
                key(&mut out, name, 4);
                out.extend(value.to_le_bytes());
            }
            Entry::Real(name, value) => {
                key(&mut out, name, 6);
                out.extend(value.to_le_bytes());
            }
            Entry::Text(name, value) => {
                key(&mut out, name, 8);
                text(&mut out, value);
            }
            Entry::List(name, values) => {
                key(&mut out, name, 9);
                out.extend(5u32.to_le_bytes());
                out.extend((values.len() as u64).to_le_bytes());
                values.iter().for_each(|v| out.extend(v.to_le_bytes()));
            }
            Entry::Bools(name, values) => {
                key(&mut out, name, 9);
                out.extend(7u32.to_le_bytes());
                out.extend((values.len() as u64).to_le_bytes());
                values.iter().for_each(|v| out.push(u8::from(*v)));
            }
            Entry::Words(name, count) => {
                key(&mut out, name, 9);
                out.extend(8u32.to_le_bytes());
                out.extend((*count as u64).to_le_bytes());
                (0..*count).for_each(|i| text(&mut out, &format!("w{i}")));
            }
        }
    }
    out
}

use Entry::{Bools, List, Real, Text, U32, Words};

fn geometry(arch: &str, entries: &[Entry<'_>]) -> Geometry {
    read(Cursor::new(header(arch, entries)), None).unwrap_or_else(|error| panic!("{error}"))
}

fn kinds(g: &Geometry) -> (usize, usize, usize) {
    (g.full_layers(), g.window_layers(), g.state_layers())
}

#[test]
fn a_plain_model_with_a_large_tokenizer() {
    let g = geometry(
        "llama",
        &[
            Text("general.name", "Smol \u{1b}[31mLM"),
            U32("block_count", 30),
            U32("context_length", 8192),
            U32("embedding_length", 576),
            U32("attention.head_count", 9),
            U32("attention.head_count_kv", 3),
            Real("rope.freq_base", 1e5),
            Words("tokenizer.ggml.tokens", 50_000),
            Text("rope.scaling.type", "yarn"),
            Real("rope.scaling.factor", 4.0),
        ],
    );
    assert_eq!((g.name.as_str(), kinds(&g)), ("Smol LM", (30, 0, 0)));
    assert_eq!(g.limit.config, Some(8192));
    assert_eq!(g.limit.scaling.as_deref(), Some("yarn x4"));
    let mut d = Deployment::new(Kind::LlamaCpp);
    d.requests = Some(2);
    // As llama-server's own log says: 180 MiB for 2 slots of 4096.
    let found = estimate(&g, &d, 4096).unwrap();
    assert_eq!(found.kv_llamacpp_bytes, Some(180 << 20));
}

#[test]
fn windows_by_list_by_number_and_by_family() {
    let with = |arch: &str, extra: Entry<'_>| {
        kinds(&geometry(
            arch,
            &[
                U32("block_count", 6),
                U32("attention.head_count", 8),
                U32("attention.key_length", 64),
                U32("attention.value_length", 64),
                U32("attention.sliding_window", 128),
                extra,
            ],
        ))
    };
    assert_eq!(with("gpt-oss", U32("x", 0)), (3, 3, 0));
    assert_eq!(with("gemma3", U32("x", 0)), (1, 5, 0));
    assert_eq!(
        with("new", U32("attention.sliding_window_pattern", 3)),
        (2, 4, 0)
    );
    let list = [true, true, false, true, true, false];
    assert_eq!(
        with("gemma4", Bools("attention.sliding_window_pattern", &list)),
        (2, 4, 0)
    );
    assert_eq!(
        with("gemma3", U32("attention.shared_kv_layers", 2)),
        (0, 4, 0)
    );
    assert_eq!(with("llama", U32("x", 0)), (6, 0, 0));
    let unknown = header(
        "new",
        &[
            U32("block_count", 2),
            U32("attention.head_count", 8),
            U32("embedding_length", 64),
            U32("attention.sliding_window", 128),
        ],
    );
    let said = read(Cursor::new(unknown), None).unwrap_err().to_string();
    assert!(said.contains("does not say in which layers"), "{said}");
}

#[test]
fn hybrids_by_interval_and_by_heads() {
    let qwen = geometry(
        "qwen35",
        &[
            U32("block_count", 65),
            U32("nextn_predict_layers", 1),
            U32("embedding_length", 5120),
            U32("attention.head_count", 24),
            U32("attention.head_count_kv", 4),
            U32("attention.key_length", 256),
            U32("attention.value_length", 256),
            U32("full_attention_interval", 4),
            U32("ssm.conv_kernel", 4),
            U32("ssm.inner_size", 6144),
            U32("ssm.state_size", 128),
            U32("ssm.time_step_rank", 48),
            U32("ssm.group_count", 16),
        ],
    );
    assert_eq!((kinds(&qwen), qwen.draft.len()), ((16, 0, 48), 1));
    let mut d = Deployment::new(Kind::LlamaCpp);
    d.requests = Some(4);
    d.draft_tokens = Some(2);
    let found = estimate(&qwen, &d, 262_144).unwrap();
    assert_eq!(found.state_bytes, 627_572_736);
    assert_eq!(found.kv_bytes_per_token, 65_536);
    assert_eq!(found.mtp_draft_kv_bytes, Some(4 << 30));
    assert_eq!(found.spec_intermediate_bytes, Some(2 * 627_572_736));
    let nemotron = geometry(
        "nemotron_h",
        &[
            U32("block_count", 4),
            U32("attention.head_count", 40),
            List("attention.head_count_kv", &[0, 0, 8, 0]),
            List("feed_forward_length", &[0, 15_680, 0, 15_680]),
            U32("attention.key_length", 128),
            U32("attention.value_length", 128),
            U32("ssm.conv_kernel", 4),
            U32("ssm.inner_size", 10_240),
            U32("ssm.state_size", 128),
            U32("ssm.time_step_rank", 128),
            U32("ssm.group_count", 8),
        ],
    );
    assert_eq!(kinds(&nemotron), (1, 0, 1));
    assert!(matches!(
        nemotron.layers[0].state,
        Some(State::Mamba2 {
            heads: 128,
            head: 80,
            ..
        })
    ));
    let jamba = geometry(
        "jamba",
        &[
            U32("block_count", 2),
            U32("attention.head_count", 32),
            List("attention.head_count_kv", &[0, 8]),
            U32("embedding_length", 4096),
            U32("ssm.conv_kernel", 4),
            U32("ssm.inner_size", 8192),
            U32("ssm.state_size", 16),
        ],
    );
    assert_eq!(kinds(&jamba), (1, 0, 1));
    assert!(matches!(
        jamba.layers[0].state,
        Some(State::Mamba1 { inner: 8192, .. })
    ));
}

#[test]
fn latent_attention_absorbed_and_not() {
    let new = [
        U32("block_count", 2),
        U32("attention.head_count", 128),
        U32("attention.head_count_kv", 1),
        U32("attention.kv_lora_rank", 512),
        U32("rope.dimension_count", 64),
        U32("attention.key_length", 576),
        U32("attention.value_length", 512),
        U32("attention.key_length_mla", 192),
        U32("attention.value_length_mla", 128),
    ];
    let cache = |g: &Geometry| g.layers[0].attention.unwrap().cache;
    let latent = Cache::Latent {
        rank: 512,
        rope: 64,
        indexer: None,
    };
    assert_eq!(cache(&geometry("deepseek2", &new)), latent);
    let old = [
        U32("block_count", 2),
        U32("attention.head_count", 128),
        U32("attention.head_count_kv", 128),
        U32("attention.kv_lora_rank", 512),
        U32("rope.dimension_count", 64),
        U32("attention.key_length", 192),
        U32("attention.value_length", 128),
    ];
    let heads = Cache::Heads {
        heads: 128,
        key: 192,
        value: 128,
    };
    assert_eq!(cache(&geometry("deepseek2", &old)), heads);
}

#[test]
fn a_broken_header_is_an_error_wherever_it_breaks() {
    let whole = header(
        "llama",
        &[
            U32("block_count", 2),
            U32("attention.head_count", 2),
            U32("embedding_length", 64),
            List("x", &[1, 2, 3]),
            Words("tokenizer.ggml.tokens", 3),
        ],
    );
    assert!(read(Cursor::new(whole.clone()), None).is_ok());
    for end in 0..whole.len() {
        assert!(
            read(Cursor::new(whole[..end].to_vec()), None).is_err(),
            "{end}"
        );
    }
    let claims = |at: usize, bytes: &[u8]| {
        let mut broken = whole.clone();
        broken[at..at + bytes.len()].copy_from_slice(bytes);
        read(Cursor::new(broken), None).unwrap_err().to_string()
    };
    assert!(claims(0, b"GGML").contains("does not begin"), "magic");
    assert!(claims(4, &1u32.to_le_bytes()).contains("version is 1"));
    assert!(claims(4, &3u32.to_be_bytes()).contains("big-endian"));
    // Lengths that would fill the memory are refused before anything is taken for them.
    for most in [u64::MAX, 1 << 40] {
        assert!(claims(16, &most.to_le_bytes()).contains("entries"));
        assert!(claims(24, &most.to_le_bytes()).contains("header"));
    }
    for (arch, words) in [
        ("bert", "encoder"),
        ("rwkv7", "RWKV"),
        ("clip", "projector"),
        ("deepseek4", "compresses"),
    ] {
        let said = read(Cursor::new(header(arch, &[U32("block_count", 2)])), None)
            .unwrap_err()
            .to_string();
        assert!(said.contains(words), "{said}");
    }
    let sparse = [
        U32("block_count", 2),
        U32("attention.indexer.key_length", 128),
    ];
    let said = read(Cursor::new(header("glm-dsa", &sparse)), None)
        .unwrap_err()
        .to_string();
    assert!(said.contains("indexer"), "{said}");
    let counts = |entries: &[Entry<'_>]| {
        read(Cursor::new(header("llama", entries)), None)
            .unwrap_err()
            .to_string()
    };
    assert!(counts(&[]).contains("block_count"));
    assert!(counts(&[U32("block_count", 1_000_000)]).contains("layers"));
    assert!(counts(&[U32("block_count", 2), U32("nextn_predict_layers", 2)]).contains("draft"));
    assert!(
        counts(&[U32("block_count", 3), List("attention.head_count", &[1, 2])])
            .contains("2 entries for 3 layers")
    );
    assert!(
        counts(&[U32("block_count", 2), U32("attention.head_count", 2)]).contains("key_length")
    );
}
