//! What fits on a card, engine by engine, as the estimator's users see it.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/estimate.rs"]
mod support;

use support::{model, notes, row, rows};

#[test]
fn the_pool_stays_and_the_capacity_falls_on_sglang() {
    let file = model("llama-3.1-8b");
    let rows = rows(&[
        &file,
        "--engine",
        "sglang",
        "--context",
        "32K,64K,128K",
        "--vram",
        "48GiB",
        "--fraction",
        "0.75",
        "--weights",
        "15GiB",
    ]);
    // 36 GiB - 15 GiB = 21 GiB at 128 KiB a token.
    for row in &rows {
        assert_eq!(row["pool_tokens"], 172_032);
        assert_eq!(row["fits"], true);
    }
    assert_eq!(rows[0]["capacity"], 5.25);
    assert_eq!(rows[2]["capacity"], 1.3125);
    let last = notes(&rows[2]);
    assert!(
        last.contains("a 131,072 context fits 1.3 requests at once"),
        "{last}"
    );
    let over = row(&[
        &file,
        "--engine",
        "sglang",
        "--context",
        "256K",
        "--vram",
        "48GiB",
        "--fraction",
        "0.75",
        "--weights",
        "15GiB",
    ]);
    assert_eq!(over["fits"], false);
    let words = notes(&over);
    assert!(
        words.contains("smaller than the context of 262,144, and refuses longer requests later"),
        "{words}"
    );
    assert!(
        words.contains("above the trained length of 131,072"),
        "{words}"
    );
}

#[test]
fn verify_states_eat_the_pool_and_the_request_limit_is_the_lever() {
    let file = model("qwen3.6-27b");
    let with = |seqs: &str| {
        row(&[
            &file,
            "--engine",
            "sglang",
            "--context",
            "128K",
            "--tp",
            "2",
            "--seqs",
            seqs,
            "--draft-tokens",
            "4",
            "--vram",
            "47GiB",
            "--fraction",
            "0.85",
            "--weights",
            "27GiB",
        ])
    };
    let (sixteen, eight) = (with("16"), with("8"));
    assert_eq!(sixteen["spec_intermediate_bytes"], 76_972_032u64 * 64);
    let gained = eight["pool_tokens"].as_u64().unwrap() - sixteen["pool_tokens"].as_u64().unwrap();
    // 2.3 GiB, of which 10/19 go to KV at 32 KiB a token.
    assert_eq!(gained / 1000, 39);
    let words = notes(&sixteen);
    assert!(
        words.contains("lower max-running-requests from 16 to 8: +37K KV tokens"),
        "{words}"
    );
    let none = row(&[
        &file,
        "--engine",
        "sglang",
        "--context",
        "128K",
        "--tp",
        "2",
        "--draft-tokens",
        "4",
        "--vram",
        "47GiB",
        "--fraction",
        "0.85",
        "--weights",
        "27GiB",
    ]);
    assert_eq!(none["fits"], false);
    assert!(
        notes(&none).contains("SGLang allows 48: 13.8 GiB a card"),
        "{}",
        notes(&none)
    );
}

#[test]
fn vllm_refuses_what_does_not_fit_and_names_the_largest() {
    let row = row(&[
        &model("qwen3-32b"),
        "--engine",
        "vllm",
        "--context",
        "128K",
        "--tp",
        "2",
        "--vram",
        "48GiB",
        "--fraction",
        "0.9",
        "--weights",
        "31GiB",
    ]);
    // 12.2 GiB at 128 KiB a token.
    assert_eq!(row["fits"], false);
    let words = notes(&row);
    assert!(words.contains("vLLM refuses to start"), "{words}");
    assert!(
        words.contains("largest context for one request: 99,936"),
        "{words}"
    );
}

#[test]
fn every_slot_of_llama_cpp_is_taken_at_start() {
    let with = |seqs: &str, context: &str| {
        row(&[
            &model("qwen3-0.6b"),
            "--engine",
            "llamacpp",
            "--context",
            context,
            "--seqs",
            seqs,
            "--vram",
            "16GiB",
            "--weights",
            "1GiB",
        ])
    };
    assert_eq!(with("4", "32K")["kv_llamacpp_bytes"], 4 * 3_758_096_384u64);
    assert_eq!(with("4", "32K")["fits"], true);
    assert_eq!(with("4", "64K")["fits"], false);
    assert_eq!(with("1", "64K")["fits"], true);
    assert!(notes(&with("4", "32K")).contains("4 x 32,768 = 131,072 cells"));
}
