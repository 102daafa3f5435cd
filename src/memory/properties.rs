//! What must hold for every model, length and layout, and for any bytes at all.

use super::*;
use crate::engine::Kind;
use bytes::Holds;
use geometry::{Attention, Cache, Layer, Limit, State};
use proptest::prelude::*;
use serde_json::{Map, Value};
use types::{KvTypes, StateType, StateTypes};

fn cache() -> impl Strategy<Value = Cache> {
    prop_oneof![
        (1u64..256, 1u64..1024, 1u64..1024).prop_map(|(heads, key, value)| Cache::Heads {
            heads,
            key,
            value
        }),
        (1u64..1024, 1u64..256, proptest::option::of(1u64..256)).prop_map(
            |(rank, rope, indexer)| Cache::Latent {
                rank,
                rope,
                indexer
            }
        ),
    ]
}

fn state() -> impl Strategy<Value = State> {
    // Heads divide over 1, 2, 4 and 8 ranks.
    prop_oneof![
        (1u64..8, 1u64..8, 1u64..256, 1u64..256, 1u64..8).prop_map(|(k, v, key, value, kernel)| {
            State::Delta {
                key_heads: k * 8,
                value_heads: v * 8,
                key,
                value,
                kernel,
            }
        }),
        (1u64..32, 1u64..256, 0u32..4, 1u64..256, 1u64..8).prop_map(
            |(h, head, groups, state, kernel)| State::Mamba2 {
                heads: h * 8,
                head,
                groups: 1 << groups,
                state,
                kernel,
            }
        ),
        (1u64..4096, 1u64..64, 1u64..8).prop_map(|(inner, state, kernel)| State::Mamba1 {
            inner: inner * 8,
            state,
            kernel
        }),
    ]
}

fn layer() -> impl Strategy<Value = Layer> {
    let attention = (cache(), proptest::option::of(1u64..100_000))
        .prop_map(|(cache, window)| Attention { cache, window });
    (
        proptest::option::of(attention),
        proptest::option::of(state()),
    )
        .prop_map(|(attention, state)| Layer { attention, state })
}

fn model() -> impl Strategy<Value = Geometry> {
    (
        proptest::collection::vec(layer(), 1..12),
        proptest::collection::vec(layer(), 0..2),
        proptest::option::of(1u64..1 << 24),
    )
        .prop_map(|(layers, draft, limit)| Geometry {
            name: "model".into(),
            family: "gptoss".into(),
            layers,
            draft,
            limit: Limit {
                config: limit,
                scaled: limit,
                sglang: limit,
                vllm: limit,
                scaling: None,
            },
            state_type: None,
            notes: Vec::new(),
        })
}

const STATES: StateTypes = StateTypes {
    conv: StateType::Bf16,
    ssm: StateType::Fp32,
};

fn ways(n: u64) -> [Holds; 5] {
    [
        Holds::Ideal(n),
        Holds::Uniform(n),
        Holds::FullOnly(n),
        Holds::Cells {
            cells: n,
            sequences: 4,
            ubatch: 512,
            copies: 1,
        },
        Holds::Blocks {
            n,
            block: 16,
            batch: 2048,
        },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_context_never_takes_less(g in model(), a in 0u64..1 << 32, b in 0u64..1 << 32) {
        let (less, more) = (a.min(b), a.max(b));
        for (short, long) in ways(less).into_iter().zip(ways(more)) {
            let of = |holds| bytes::kv(&g, Split::default(), KvTypes::default(), holds).unwrap();
            prop_assert!(of(short) <= of(long), "{short:?} {long:?}");
        }
        // The ideal lies below every engine's way, and at no more than every layer in full.
        let of = |holds| bytes::kv(&g, Split::default(), KvTypes::default(), holds).unwrap();
        prop_assert!(of(Holds::Ideal(more)) <= of(Holds::Uniform(more)));
        let blocks = of(Holds::Blocks { n: more, block: 16, batch: 2048 });
        prop_assert!(of(Holds::Ideal(more)) <= blocks);
    }

    #[test]
    fn full_layers_grow_in_a_straight_line(g in model(), n in 0u64..1 << 32, times in 0u64..64) {
        for holds in [Holds::Uniform as fn(u64) -> Holds, Holds::FullOnly] {
            let of = |n| bytes::kv(&g, Split::default(), KvTypes::default(), holds(n)).unwrap();
            prop_assert_eq!(of(n * times), of(n) * u128::from(times));
        }
        // Once every window is full, each token costs the same.
        let of = |n| bytes::kv(&g, Split::default(), KvTypes::default(), Holds::Ideal(n)).unwrap();
        let full = bytes::kv(&g, Split::default(), KvTypes::default(), Holds::FullOnly(1)).unwrap();
        prop_assert_eq!(of(100_000 + n) - of(100_000), full * u128::from(n));
    }

    #[test]
    fn more_ranks_or_stages_never_take_more(g in model(), n in 0u64..1 << 32, power in 0u32..3) {
        let at = |tp, pp| {
            let split = Split { tp, dp: 1, pp };
            let kv = bytes::kv(&g, split, KvTypes::default(), Holds::Ideal(n)).unwrap();
            (kv, bytes::state(&g, split, STATES).unwrap())
        };
        let (one, two) = (at(1 << power, 1), at(2 << power, 1));
        prop_assert!(two.0 <= one.0 && two.1 <= one.1);
        let stages = at(1, g.layers.len() as u64);
        prop_assert!(stages.0 <= at(1, 1).0 && stages.1 <= at(1, 1).1);
    }

    #[test]
    fn every_question_has_an_answer_or_an_error(
        g in model(), context in any::<u64>(), requests in proptest::option::of(any::<u64>()),
        draft in proptest::option::of(any::<u64>()), slots in proptest::option::of(any::<u64>()), vram in any::<u64>(), weights in any::<u64>(),
        fraction in 0.01f64..1.0, tp in 1u64..20, pp in 1u64..14, engine in 0usize..4, pool in any::<u64>(), kind in 0usize..4,
    ) {
        let engines = [Kind::Sglang, Kind::Vllm, Kind::LlamaCpp, Kind::OpenAi];
        let mut d = Deployment::new(engines[engine]);
        d.split = Split { tp, dp: 1, pp };
        d.kv = ["bf16", "q8_0", "fp8", "fp4"][kind].parse().unwrap();
        (d.requests, d.draft_tokens, d.state_slots) = (requests, draft, slots);
        (d.vram, d.fraction, d.weights) = (Some(vram), Some(fraction), Some(weights));
        let measured = Measured {
            context: context / 2, requests, pool_tokens: Some(pool), pool_bytes: Some(pool / 3), ..Measured::default()
        };
        if let Ok(found) = estimate(&g, &d, context) {
            prop_assert!(found.capacity.is_none_or(|c| c.is_finite() && c >= 0.0));
        }
        if let Ok(found) = forecast(&g, &d, &d, Some(&measured), context) {
            prop_assert!(found.effective <= context);
        }
    }

    #[test]
    fn the_largest_context_fits_and_one_block_more_does_not(g in model(), room in 1u64 << 20..1 << 40, requests in 1u64..16) {
        for kind in [Kind::Vllm, Kind::LlamaCpp] {
            let d = Deployment::new(kind);
            let taken = |n| match kind {
                Kind::Vllm => pool::vllm_request(&g, &d, n).unwrap() * u128::from(requests),
                _ => pool::llamacpp_taken(&g, &d, n, requests).unwrap(),
            };
            let found = pool::Pool { bytes: room, tokens: None, slots: None };
            match pool::largest_context(&g, &d, &found, requests).unwrap() {
                Some(n) => {
                    prop_assert!(taken(n) <= u128::from(room));
                    prop_assert!(n == 1 << 40 || taken(n + 1) > u128::from(room));
                }
                None => prop_assert!(taken(1) > u128::from(room)),
            }
        }
    }

    #[test]
    fn any_json_is_read_or_refused(value in json()) {
        if let Ok(g) = config::read(&value, None) {
            let _ = estimate(&g, &Deployment::new(Kind::Sglang), 32_768);
            let _ = estimate(&g, &Deployment::new(Kind::LlamaCpp), u64::MAX);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = config::parse(&text, None);
    }

    #[test]
    fn any_bytes_are_a_header_or_refused(mut data in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = gguf::read(std::io::Cursor::new(data.clone()), None);
        // With the right beginning and few entries, the reader gets further.
        let mut begun = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0".to_vec();
        begun.append(&mut data);
        let _ = gguf::read(std::io::Cursor::new(begun), None);
    }
}

/// Objects with the fields of configurations and values of every kind.
fn json() -> impl Strategy<Value = Value> {
    let field = proptest::sample::select(vec![
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "hidden_size",
        "sliding_window",
        "sliding_window_pattern",
        "layer_types",
        "hybrid_override_pattern",
        "kv_lora_rank",
        "qk_rope_head_dim",
        "text_config",
        "full_attention_interval",
        "linear_num_value_heads",
        "linear_num_key_heads",
        "linear_key_head_dim",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
        "mamba_d_state",
        "mamba_d_conv",
        "mamba_n_heads",
        "mamba_d_head",
        "mamba_expand",
        "num_kv_shared_layers",
        "num_nextn_predict_layers",
        "rope_scaling",
        "max_position_embeddings",
        "attn_layer_period",
        "attn_layer_offset",
        "block_configs",
        "model_type",
        "architectures",
        "attention_chunk_size",
        "no_rope_layers",
        "linear_attn_config",
        "factor",
        "original_max_position_embeddings",
        "attn_type_list",
        "hybrid_layer_pattern",
        "global_head_dim",
        "v_head_dim",
        "index_head_dim",
        "full_attn_layers",
        "short_conv_kernel_size",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0u64..64).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(vec![
            "M*-E",
            "LLLG",
            "full_attention",
            "sliding_attention",
            "linear_attention",
            "mamba",
            "auto",
            "gemma3",
            "gemma4",
            "qwen3_next",
            "falcon_h1",
            "mamba2",
            "llama4",
            "yarn",
            "minimax",
            "",
        ])
        .prop_map(Value::from),
    ];
    let inner = leaf.prop_recursive(3, 64, 12, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            proptest::collection::vec((field.clone(), inner), 0..12).prop_map(|pairs| {
                Value::Object(
                    pairs
                        .into_iter()
                        .map(|(k, v)| (k.to_string(), v))
                        .collect::<Map<_, _>>(),
                )
            }),
        ]
    });
    let small = || 1u64..64;
    (inner, small(), small(), small()).prop_map(|(mut value, layers, heads, size)| {
        if let Some(object) = value.as_object_mut() {
            for (name, n) in [
                ("num_hidden_layers", layers),
                ("num_attention_heads", heads),
                ("head_dim", size),
            ] {
                object.entry(name).or_insert(n.into());
            }
        }
        value
    })
}
