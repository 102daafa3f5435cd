//! Configurations of many families, with the fields that decide; expected bytes are worked out from the formulas by hand.

use super::*;
use crate::memory::bytes::{self, Holds, Split};
use crate::memory::geometry::{Cache, State};
use crate::memory::types::{FP8, KvTypes, StateTypes};
use serde_json::json;

fn geometry(value: &Value) -> Geometry {
    read(value, None).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn kinds(g: &Geometry) -> (usize, usize, usize) {
    (g.full_layers(), g.window_layers(), g.state_layers())
}

fn per_token(g: &Geometry) -> u128 {
    bytes::kv(g, Split::default(), KvTypes::default(), Holds::Uniform(1)).unwrap()
}

fn state(g: &Geometry, tp: u64) -> u128 {
    let types = StateTypes {
        conv: StateType::Bf16,
        ssm: StateType::Fp32,
    };
    bytes::state(g, Split { tp, dp: 1, pp: 1 }, types).unwrap()
}

fn refusal(value: &Value) -> String {
    read(value, None).unwrap_err().to_string()
}

#[test]
fn gemma_leaves_out_what_its_class_knows() {
    let g = geometry(&json!({
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
        "text_config": {"hidden_size": 2560, "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
        "vision_config": {"num_hidden_layers": 27, "num_attention_heads": 16}
    }));
    assert_eq!(kinds(&g), (5, 29, 0));
    assert_eq!(per_token(&g), 34 * 4 * 512 * 2);
    assert!(
        g.notes.iter().any(|n| n.contains("num_key_value_heads")),
        "{:?}",
        g.notes
    );
    assert_eq!(
        (g.limit.config, g.limit.scaled),
        (Some(131_072), Some(131_072))
    );
    let two = geometry(
        &json!({"model_type": "gemma2", "num_hidden_layers": 42, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 256, "hidden_size": 3584, "sliding_window": 4096}),
    );
    assert_eq!(kinds(&two), (21, 21, 0));
    let off = geometry(
        &json!({"model_type": "gemma2", "num_hidden_layers": 4, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 256, "sliding_window": null}),
    );
    assert_eq!(kinds(&off), (4, 0, 0));
}

#[test]
fn windows_come_in_many_spellings() {
    let base = |extra: Value| {
        let mut value = json!({"model_type": "x", "num_hidden_layers": 8, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 64, "sliding_window": 512});
        value
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        kinds(&geometry(&value))
    };
    assert_eq!(base(json!({})), (0, 8, 0));
    assert_eq!(base(json!({"use_sliding_window": false})), (8, 0, 0));
    assert_eq!(
        base(json!({"use_sliding_window": true, "max_window_layers": 6})),
        (6, 2, 0)
    );
    assert_eq!(base(json!({"sliding_window_pattern": 4})), (2, 6, 0));
    assert_eq!(base(json!({"sliding_window_pattern": "LLLG"})), (2, 6, 0));
    assert_eq!(base(json!({"layer_switch": 4})), (2, 6, 0));
    assert_eq!(
        base(json!({"hybrid_layer_pattern": [0, 1, 1, 1, 0, 1, 1, 1]})),
        (2, 6, 0)
    );
    assert_eq!(base(json!({"model_type": "gpt_oss"})), (4, 4, 0));
    let llama4 = json!({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "num_hidden_layers": 48,
        "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "attention_chunk_size": 8192}});
    assert_eq!(kinds(&geometry(&llama4)), (12, 36, 0));
    let mut listed = llama4;
    listed["text_config"]["no_rope_layers"] = json!([1, 0].repeat(24));
    assert_eq!(kinds(&geometry(&listed)), (24, 24, 0));
}

#[test]
fn window_and_full_layers_of_different_shape() {
    let mimo = geometry(
        &json!({"model_type": "mimo_v2_flash", "num_hidden_layers": 4, "num_attention_heads": 64,
        "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "swa_num_key_value_heads": 8, "swa_head_dim": 192,
        "swa_v_head_dim": 128, "sliding_window": 128, "hybrid_layer_pattern": [0, 1, 1, 1]}),
    );
    assert_eq!(per_token(&mimo), (4 + 3 * 8) * (192 + 128) * 2);
    let gemma4 = geometry(
        &json!({"model_type": "gemma4_text", "num_hidden_layers": 6, "num_attention_heads": 32,
        "num_key_value_heads": 16, "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 4,
        "attention_k_eq_v": true, "sliding_window": 1024, "num_kv_shared_layers": 0,
        "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
            "sliding_attention", "full_attention"]}),
    );
    assert_eq!(per_token(&gemma4), (5 * 16 * 512 + 4 * 1024) * 2);
    let step = geometry(
        &json!({"model_type": "step3p5", "num_hidden_layers": 2, "num_attention_heads": 64, "head_dim": 128,
        "num_attention_groups": 8, "sliding_window": 512, "attention_other_setting": {"num_attention_groups": 4},
        "layer_types": ["full_attention", "sliding_attention", "full_attention"], "num_nextn_predict_layers": 1}),
    );
    assert_eq!((kinds(&step), step.draft.len()), ((1, 1, 0), 1));
    assert_eq!(per_token(&step), (8 + 4) * 256 * 2);
}

#[test]
fn heads_come_in_many_spellings() {
    let g = |value: Value| per_token(&geometry(&value));
    let gpt2 = json!({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024});
    assert_eq!(g(gpt2), 12 * 768 * 2 * 2);
    let falcon = json!({"model_type": "falcon", "num_hidden_layers": 32, "num_attention_heads": 71, "hidden_size": 4544,
        "multi_query": true, "new_decoder_architecture": false, "num_kv_heads": 71});
    assert_eq!(g(falcon), 32 * 128 * 2);
    let falcon40 = json!({"model_type": "falcon", "num_hidden_layers": 60, "num_attention_heads": 128, "hidden_size": 8192,
        "multi_query": true, "new_decoder_architecture": true, "num_kv_heads": 8});
    assert_eq!(g(falcon40), 60 * 8 * 128 * 2);
    let glm = json!({"model_type": "chatglm", "num_layers": 40, "num_attention_heads": 32, "hidden_size": 4096,
        "kv_channels": 128, "multi_query_attention": true, "multi_query_group_num": 2, "seq_length": 131_072});
    assert_eq!(g(glm), 40 * 2 * 256 * 2);
    let dbrx = json!({"model_type": "dbrx", "n_layers": 40, "n_heads": 48, "d_model": 6144, "attn_config": {"kv_n_heads": 8}});
    assert_eq!(g(dbrx), 40 * 8 * 256 * 2);
    let nas = json!({"model_type": "nemotron-nas", "num_hidden_layers": 3, "num_attention_heads": 64, "hidden_size": 8192,
        "num_key_value_heads": null, "block_configs": [{"attention": {"n_heads_in_group": 8, "no_op": false}},
            {"attention": {"n_heads_in_group": null, "no_op": true}}, {"attention": {"n_heads_in_group": 16}}]});
    assert_eq!(g(nas), (8 + 4) * 256 * 2);
    let listed = json!({"model_type": "openelm", "num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 64,
        "num_kv_heads": [3, 5]});
    assert_eq!(g(listed), (3 + 5) * 128 * 2);
    let floats =
        json!({"num_hidden_layers": 2.0, "num_attention_heads": 8.0, "hidden_size": 512.0});
    assert_eq!(g(floats), 2 * 512 * 2 * 2);
}

#[test]
fn latent_attention_is_one_copy() {
    let v2 = json!({"model_type": "deepseek_v2", "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
        "hidden_size": 2048, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128});
    assert_eq!(per_token(&geometry(&v2)), 27 * 576 * 2);
    let mut without = v2.clone();
    without["use_mla"] = json!(false);
    without["v_head_dim"] = json!(0);
    assert_eq!(per_token(&geometry(&without)), 27 * 16 * 256 * 2);
    let mut sparse = v2;
    sparse["index_head_dim"] = json!(128);
    sparse["index_topk"] = json!(2048);
    let g = geometry(&sparse);
    let fp8 = KvTypes {
        key: FP8,
        value: FP8,
    };
    let each = bytes::kv(
        &g,
        Split {
            tp: 8,
            dp: 1,
            pp: 1,
        },
        fp8,
        Holds::Uniform(1),
    )
    .unwrap();
    assert_eq!(each, 27 * (656 + 132));
    assert_eq!(per_token(&g), 27 * (1152 + 132));
    let longcat = json!({"model_type": "longcat_flash", "num_layers": 28, "num_attention_heads": 64, "hidden_size": 6144,
        "kv_lora_rank": 512, "qk_rope_head_dim": 64});
    assert_eq!(per_token(&geometry(&longcat)), 56 * 576 * 2);
}

#[test]
fn linear_layers_of_every_kind() {
    let falcon = geometry(
        &json!({"model_type": "falcon_h1", "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 128, "mamba_n_heads": 24, "mamba_d_head": 128, "mamba_n_groups": 1,
        "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_d_ssm": 3072, "mamba_expand": 2, "time_step_limit": [0.0, null]}),
    );
    assert_eq!(kinds(&falcon), (4, 0, 4));
    assert_eq!(
        state(&falcon, 1),
        4 * (24 * 128 * 256 * 4 + (3072 + 512) * 3 * 2)
    );
    // The one group is there on each rank.
    assert_eq!(
        state(&falcon, 2),
        4 * (12 * 128 * 256 * 4 + (1536 + 512) * 3 * 2)
    );
    let granite = geometry(
        &json!({"model_type": "granitemoehybrid", "num_hidden_layers": 3, "num_attention_heads": 32,
        "num_key_value_heads": 8, "hidden_size": 4096, "layer_types": ["mamba", "attention", "mamba"], "mamba_n_heads": 128,
        "mamba_d_head": "auto", "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2}),
    );
    assert_eq!(kinds(&granite), (1, 0, 2));
    assert_eq!(
        state(&granite, 1),
        2 * (128 * 64 * 128 * 4 + (8192 + 256) * 3 * 2)
    );
    let all = geometry(
        &json!({"model_type": "granitemoehybrid", "num_hidden_layers": 2, "num_attention_heads": 32,
        "hidden_size": 4096, "layer_types": ["attention", "attention"], "mamba_n_heads": 128, "mamba_d_state": 128}),
    );
    assert_eq!(kinds(&all), (2, 0, 0));
    let kimi = geometry(
        &json!({"model_type": "kimi_linear", "num_hidden_layers": 4, "num_attention_heads": 32,
        "kv_lora_rank": 512, "qk_rope_head_dim": 64, "linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3],
            "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4}}),
    );
    assert_eq!((kinds(&kimi), per_token(&kimi)), ((1, 0, 3), 1152));
    assert_eq!(state(&kimi, 1), 3 * (32 * 128 * 128 * 4 + 3 * 4096 * 3 * 2));
    let lfm = geometry(
        &json!({"model_type": "lfm2", "num_hidden_layers": 3, "num_attention_heads": 32, "num_key_value_heads": 8,
        "hidden_size": 2048, "conv_L_cache": 3, "layer_types": ["conv", "conv", "full_attention"]}),
    );
    assert_eq!((kinds(&lfm), state(&lfm, 1)), ((1, 0, 2), 2 * 2048 * 2 * 2));
    let minimax = geometry(
        &json!({"model_type": "minimax_text_01", "num_hidden_layers": 8, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 6144, "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1]}),
    );
    assert_eq!(
        (kinds(&minimax), state(&minimax, 8)),
        ((1, 0, 7), 7 * 8 * 128 * 128 * 4)
    );
    let mamba = geometry(
        &json!({"model_type": "falcon_mamba", "num_hidden_layers": 64, "hidden_size": 4096,
        "intermediate_size": 8192, "state_size": 16, "conv_kernel": 4}),
    );
    assert_eq!(
        (per_token(&mamba), state(&mamba, 1)),
        (0, 64 * (8192 * 16 * 4 + 8192 * 3 * 2))
    );
    let bamba = json!({"model_type": "bamba", "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8,
        "hidden_size": 4096, "attn_layer_indices": [1], "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_state": 128,
        "mamba_d_conv": 4, "mamba_expand": 2});
    assert_eq!(kinds(&geometry(&bamba)), (1, 0, 3));
    let next = json!({"model_type": "qwen3_next", "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2,
        "head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4});
    assert_eq!(kinds(&geometry(&next)), (12, 0, 36));
}

#[test]
fn draft_layers_have_their_own_cache() {
    let g = geometry(
        &json!({"model_type": "nemotron_h", "num_hidden_layers": 4, "hybrid_override_pattern": "M-*E",
        "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 64, "mamba_head_dim": 64,
        "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4, "num_nextn_predict_layers": 1,
        "mtp_hybrid_override_pattern": "*E"}),
    );
    assert_eq!((kinds(&g), g.draft.len()), ((1, 0, 1), 1));
    let outer = geometry(
        &json!({"num_nextn_predict_layers": 1, "text_config": {"num_hidden_layers": 2,
        "num_attention_heads": 8, "hidden_size": 512}}),
    );
    assert_eq!(outer.draft.len(), 1);
    assert!(matches!(
        outer.draft[0].attention.unwrap().cache,
        Cache::Heads {
            heads: 8,
            key: 64,
            ..
        }
    ));
}

#[test]
fn the_part_that_describes_the_language_model_is_found() {
    let inner = json!({"num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 512});
    for value in [
        json!({"llm_config": inner, "vision_config": {"num_hidden_layers": 30}}),
        json!({"language_config": inner, "num_hidden_layers": 99}),
        json!({"thinker_config": {"text_config": inner, "audio_config": {"num_hidden_layers": 32}}}),
        // Flat, with a piece repeated inside.
        json!({"num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 512, "text_config": {"model_type": "x"}}),
    ] {
        assert_eq!(per_token(&geometry(&value)), 2 * 512 * 2 * 2, "{value}");
    }
}

#[test]
fn limits_as_the_engines_derive_them() {
    let of = |rope: Value| {
        let value = json!({"num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 64,
            "max_position_embeddings": 32_768, "rope_scaling": rope});
        let limit = geometry(&value).limit;
        (
            limit.scaled.unwrap(),
            limit.sglang.unwrap(),
            limit.vllm.unwrap(),
        )
    };
    assert_eq!(of(Value::Null), (32_768, 32_768, 32_768));
    let original = 32_768;
    assert_eq!(
        of(json!({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": original})),
        (131_072, 32_768, 131_072)
    );
    assert_eq!(
        of(json!({"type": "yarn", "factor": 4.0})),
        (131_072, 131_072, 131_072)
    );
    assert_eq!(
        of(json!({"rope_type": "linear", "factor": 2})),
        (65_536, 65_536, 65_536)
    );
    assert_eq!(
        of(json!({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192})),
        (32_768, 32_768, 32_768)
    );
    // As gpt-oss and DeepSeek: the limit already is the product.
    assert_eq!(
        of(json!({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096})),
        (32_768, 32_768, 32_768)
    );
    assert_eq!(
        of(json!({"rope_type": "yarn", "factor": -1.0})),
        (32_768, 32_768, 32_768)
    );
    assert_eq!(
        of(json!({"full_attention": {"rope_type": "yarn", "factor": 2.0}})).0,
        65_536
    );
}

#[test]
fn what_is_not_known_is_refused() {
    for (value, words) in [
        (
            json!({"model_type": "bert", "num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 768}),
            "encoder",
        ),
        (
            json!({"architectures": ["BertForMaskedLM"], "num_hidden_layers": 12}),
            "encoder",
        ),
        (
            json!({"model_type": "t5", "num_layers": 12}),
            "encoder-decoder",
        ),
        (
            json!({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model", "num_hidden_layers": 40}}),
            "cross-attention",
        ),
        (
            json!({"is_encoder_decoder": true, "num_layers": 12}),
            "encoder-decoder",
        ),
        (
            json!({"model_type": "recurrent_gemma", "num_hidden_layers": 26, "block_types": ["recurrent"]}),
            "RecurrentGemma",
        ),
        (
            json!({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8, "layer_types": ["full_attention", "warp"]}),
            "warp",
        ),
        (
            json!({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8, "mamba_d_state": 16}),
            "does not say which",
        ),
        (
            json!({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8, "layer_types": ["linear_attention", "full_attention"]}),
            "ssm_state_size",
        ),
        (
            json!({"num_hidden_layers": 2, "hybrid_override_pattern": "M?"}),
            "'?'",
        ),
    ] {
        let said = refusal(&value);
        assert!(said.contains(words), "{words:?} in {said}");
    }
}

#[test]
fn values_that_cannot_be_are_named() {
    let with = |field: &str, value: Value| {
        let mut config = json!({"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512, "sliding_window": 64});
        config[field] = value;
        refusal(&config)
    };
    for (field, value) in [
        ("num_hidden_layers", json!("many")),
        ("num_hidden_layers", json!(-1)),
        ("num_hidden_layers", json!(1.5)),
        ("num_hidden_layers", json!(1_000_000)),
        ("num_attention_heads", json!(9_000_000_000u64)),
        ("num_key_value_heads", json!({})),
        ("layer_types", json!(["full_attention"])),
        ("num_kv_shared_layers", json!(4)),
        ("num_kv_heads", json!([1, 2])),
    ] {
        let said = with(field, value);
        assert!(said.contains(field), "{field} in {said}");
    }
    assert!(with("num_hidden_layers", Value::Null).contains("num_hidden_layers"));
    assert!(with("hidden_size", json!(500)).contains("does not divide"));
    assert!(with("num_attention_heads", Value::Null).contains("num_attention_heads"));
}

#[test]
fn python_s_infinity_is_read() {
    let g = parse(
        r#"{"model_type": "mamba2", "num_hidden_layers": 2, "hidden_size": 64, "num_heads": 4, "head_dim": 32, "n_groups": 1,
            "state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_limit": [0.0, Infinity]}"#,
        Some("codestral"),
    )
    .unwrap();
    assert_eq!(g.name, "codestral");
    assert!(matches!(
        g.layers[0].state,
        Some(State::Mamba2 {
            heads: 4,
            head: 32,
            ..
        })
    ));
}
