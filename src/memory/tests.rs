//! Forecasts beside what real and published boot logs say.

use super::*;
use crate::engine::Kind;

const GIB: u64 = 1 << 30;

/// Another context with the same launch.
fn forecast(
    geometry: &Geometry,
    d: &Deployment,
    measured: Option<&Measured>,
    context: u64,
) -> Result<Forecast, MemoryError> {
    super::forecast(geometry, d, d, measured, context)
}

fn model(name: &str) -> Geometry {
    let path = format!(
        "{}/tests/fixtures/kv/configs/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    config::parse(&std::fs::read_to_string(path).unwrap(), Some(name)).unwrap()
}

/// A small Llama of 4 layers that costs 4096 bytes a token.
fn tiny() -> Geometry {
    config::parse(
        r#"{"model_type": "llama", "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64,
            "max_position_embeddings": 524288}"#,
        Some("tiny"),
    )
    .unwrap()
}

/// Qwen3.6-27B on two cards, as in its published start.
fn seed() -> (Geometry, Deployment, Measured) {
    let mut d = Deployment::new(Kind::Sglang);
    d.split.tp = 2;
    d.draft_tokens = Some(4);
    d.requests = Some(8);
    d.state_slots = Some(40);
    let measured = Measured {
        context: 131_072,
        requests: Some(8),
        pool_tokens: Some(212_992),
        pool_bytes: Some(GIB * 13 / 2),
        concurrency: None,
        weights: Some(GIB * 2671 / 100),
        graphs: Some(GIB * 86 / 100),
        available: Some(GIB * 654 / 100),
    };
    (model("qwen3.6-27b"), d, measured)
}

#[test]
fn the_log_and_the_formula_agree_on_a_published_start() {
    let (g, d, measured) = seed();
    let found = calibrate(&g, &d, &measured).unwrap().unwrap();
    assert!(found.agrees(), "{}", found.words());
    assert_eq!((found.formula, found.measured), (32_768.0, 32_768.0));
    let off = Measured {
        pool_bytes: Some(GIB * 7),
        ..measured
    };
    let found = calibrate(&g, &d, &off).unwrap().unwrap();
    assert!(!found.agrees());
    assert!(
        found.words().contains("35,289") && found.words().contains("differ (+7.7 %)"),
        "{}",
        found.words()
    );
    let silent = Measured {
        pool_bytes: None,
        ..measured
    };
    assert_eq!(calibrate(&g, &d, &silent), Ok(None));
}

#[test]
fn real_servers_print_what_the_formula_says() {
    // SGLang: 65,536 tokens in K 0.13 + V 0.13 GB. vLLM: 262,144 tokens in 1 GiB.
    let printed = [
        (Kind::Sglang, 65_536, GIB * 26 / 100),
        (Kind::Vllm, 262_144, GIB),
    ];
    for (kind, tokens, size) in printed {
        let measured = Measured {
            context: 8192,
            pool_tokens: Some(tokens),
            pool_bytes: Some(size),
            ..Measured::default()
        };
        let found = calibrate(&tiny(), &Deployment::new(kind), &measured)
            .unwrap()
            .unwrap();
        assert!(found.agrees(), "{kind:?} {}", found.words());
    }
    // vLLM names 1.53 GiB for one request of 400,000.
    let mut d = Deployment::new(Kind::Vllm);
    let need = pool::vllm_request(&tiny(), &d, 400_000).unwrap();
    assert_eq!(format!("{:.2}", need as f64 / GIB as f64), "1.53");
    // 4 GiB at half, 1 GiB of weights: 1 GiB for the cache.
    (d.vram, d.fraction, d.weights) = (Some(4 * GIB), Some(0.5), Some(GIB));
    let there = forecast(&tiny(), &d, None, 262_144).unwrap();
    assert_eq!(there.capacity_after, Some(1.0));
    assert!(
        there.capacity_error > 0.0,
        "without a log the profile run is not known"
    );
    let over = forecast(&tiny(), &d, None, 300_000).unwrap();
    assert!(
        over.warnings.iter().any(|w| w.contains("refuses to start")),
        "{:?}",
        over.warnings
    );
    assert_eq!(over.effective, 262_144);
}

#[test]
fn on_sglang_the_pool_stays_and_the_capacity_falls() {
    let (g, d, measured) = seed();
    let from = Measured {
        context: 32_768,
        ..measured
    };
    let up = forecast(&g, &d, Some(&from), 131_072).unwrap();
    let change = up.change.unwrap();
    // 0.1 to 0.2 GiB are what such a step is known to cost.
    let gib = change.bytes as f64 / GIB as f64;
    assert!((0.01..0.2).contains(&gib), "{gib}");
    assert!(change.plus_minus < GIB / 4, "{change:?}");
    assert_eq!(
        (up.capacity_before, up.capacity_after),
        (Some(6.5), Some(1.625))
    );
    assert_eq!((up.effective, up.measured), (131_072, true));
    let words = up.warnings.join("\n");
    assert!(
        words.contains("a 131,072 context fits 1.6 requests at once"),
        "{words}"
    );
    assert!(
        words.contains("lower max-running-requests from 8 to 4: +35K KV tokens"),
        "{words}"
    );
    assert!(
        words.contains("draft layer's cache of 0.4 GiB a card comes out of the reserve"),
        "{words}"
    );
    let same = forecast(&g, &d, Some(&from), 32_768).unwrap();
    assert_eq!(same.change, Some(Bytes::default()));
    let over = forecast(&g, &d, Some(&from), 262_144).unwrap();
    assert_eq!((over.effective, over.bounds.pool), (212_992, Some(212_992)));
    let words = over.warnings.join("\n");
    assert!(
        words.contains(
            "SGLang starts with a pool of 212,992 tokens, smaller than the context of 262,144"
        ),
        "{words}"
    );
    let down = forecast(&g, &d, Some(&measured), 32_768).unwrap();
    assert!(down.change.unwrap().bytes < 0);
}

#[test]
fn half_the_requests_are_the_tokens_that_operators_count() {
    let (g, mut d, measured) = seed();
    d.requests = Some(16);
    let lever = |d: &Deployment| {
        let found = forecast(&g, d, Some(&measured), 131_072).unwrap();
        found
            .warnings
            .into_iter()
            .find(|w| w.starts_with("lower"))
            .unwrap()
    };
    assert_eq!(
        lever(&d),
        "lower max-running-requests from 16 to 8: +71K KV tokens"
    );
    d.state_slots = None;
    assert_eq!(
        lever(&d),
        "lower max-running-requests from 16 to 8: +37K KV tokens"
    );
}

#[test]
fn without_a_request_limit_the_table_is_the_gibibyte() {
    let mut d = Deployment::new(Kind::Sglang);
    let at = |d: &Deployment, context| {
        cost::of_context(&tiny(), d, context, None).unwrap().bytes as f64 / GIB as f64
    };
    // 2048 rows: 0.25 and 1.0 GiB, and what the graphs take.
    assert!((0.25..0.26).contains(&at(&d, 32_768)), "{}", at(&d, 32_768));
    assert!(
        (1.0..1.04).contains(&at(&d, 131_072)),
        "{}",
        at(&d, 131_072)
    );
    d.requests = Some(48);
    let table = |context| at(&d, context) * 1024.0;
    assert!((6.0..14.0).contains(&table(32_768)), "{}", table(32_768));
}

#[test]
fn on_llama_cpp_twice_the_context_is_twice_the_cache() {
    let mut d = Deployment::new(Kind::LlamaCpp);
    d.requests = Some(2);
    let measured = Measured {
        context: 4096,
        requests: Some(2),
        pool_tokens: Some(8192),
        pool_bytes: Some(32 << 20),
        ..Measured::default()
    };
    let up = forecast(&tiny(), &d, Some(&measured), 8192).unwrap();
    assert_eq!(up.change.unwrap().bytes, 32 << 20);
    assert_eq!(up.bounds.slot_share, Some(8192));
    // A log that says 5 % more corrects the next forecast.
    let more = Measured {
        pool_bytes: Some((32 << 20) * 105 / 100),
        ..measured
    };
    let up = forecast(&tiny(), &d, Some(&more), 8192).unwrap();
    assert!((up.change.unwrap().bytes - (32 << 20) * 105 / 100).abs() < 16);
    (d.vram, d.weights) = (Some(GIB), Some(GIB / 2));
    let full = forecast(&tiny(), &d, Some(&measured), 131_072).unwrap();
    let words = full.warnings.join("\n");
    assert!(words.contains("2 x 131,072 = 262,144 cells"), "{words}");
    assert!(
        words.contains("does not fit on the card; the largest that fits is about 65,536"),
        "{words}"
    );
    let long = forecast(&tiny(), &d, None, 1 << 20).unwrap();
    assert!(
        long.warnings
            .iter()
            .any(|w| w.contains("caps each slot at 524,288")),
        "{:?}",
        long.warnings
    );
    assert_eq!(long.effective, 65_536);
}

#[test]
fn a_forecast_is_kept_and_set_beside_what_came() {
    let (g, d, measured) = seed();
    let mut record = Record {
        from: measured.context,
        forecast: forecast(&g, &d, Some(&measured), 65_536).unwrap(),
        came: None,
    };
    assert_eq!(
        (record.error(), record.words(), record.held()),
        (None, None, None)
    );
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    let change = record.forecast.change.unwrap();
    record.came = Some(change.bytes - (1 << 27));
    assert_eq!(record.words().as_deref(), Some("last forecast +0.1 GiB"));
    record.came = Some(change.bytes);
    assert_eq!((record.error(), record.held()), (Some(0), Some(true)));
}

#[test]
fn layouts_over_cards() {
    let g = model("qwen3-coder-30b-a3b");
    let each = |tp, dp, pp| {
        let split = Split::checked(tp, dp, pp)?;
        bytes::kv(
            &g,
            split,
            types::KvTypes::default(),
            bytes::Holds::Uniform(1),
        )
    };
    assert_eq!(each(1, 1, 1), Ok(98_304));
    // Four heads: more than four ranks save nothing; replicas of the attention cost more.
    assert_eq!((each(4, 1, 1), each(8, 1, 1)), (Ok(24_576), Ok(24_576)));
    assert_eq!(each(8, 4, 1), Ok(49_152));
    // 48 layers over 5 stages: the fullest has 10.
    assert_eq!(each(1, 1, 5), Ok(20_480));
    for (tp, dp, pp) in [(0, 1, 1), (4, 3, 1), (1, 1, 49), (5000, 1, 1)] {
        assert!(
            matches!(each(tp, dp, pp), Err(MemoryError::Layout(_))),
            "{tp} {dp} {pp}"
        );
    }
    let hybrid = model("qwen3.6-27b");
    let types = Deployment::new(Kind::Sglang).state_types(&hybrid);
    let five = bytes::state(
        &hybrid,
        Split {
            tp: 5,
            dp: 1,
            pp: 1,
        },
        types,
    );
    assert!(
        five.unwrap_err()
            .to_string()
            .contains("do not divide over 5 ranks")
    );
}

#[test]
fn vllm_pages_of_attention_and_state_are_equal() {
    let g = model("qwen3.6-27b");
    let mut d = Deployment::new(Kind::Vllm);
    d.kv = "fp8".parse().unwrap();
    // 3,207,168 bytes of state in a layer, 2048 bytes a token: blocks of 1568 tokens.
    let one = pool::vllm_request(&g, &d, 1).unwrap();
    let page = 1568 * 2048;
    assert_eq!(one, page * (16 + 48));
    assert_eq!(pool::vllm_request(&g, &d, 1569).unwrap(), page * (32 + 48));
}

#[test]
fn vllm_s_own_count_is_carried_on_for_models_with_states() {
    let g = model("qwen3.6-27b");
    let d = Deployment::new(Kind::Vllm);
    let measured = Measured {
        context: 32_768,
        pool_tokens: Some(91_000),
        pool_bytes: Some(9 * GIB),
        concurrency: Some(4.0),
        ..Measured::default()
    };
    // Its printed tokens are none, so nothing is set beside the formula.
    assert_eq!(calibrate(&g, &d, &measured), Ok(None));
    let up = forecast(&g, &d, Some(&measured), 131_072).unwrap();
    assert_eq!(up.capacity_before, Some(4.0));
    // A quarter, and a little more: the states are not taken four times.
    let after = up.capacity_after.unwrap();
    assert!((1.0..1.1).contains(&after), "{after}");
}

#[test]
fn what_llama_cpp_left_free_says_what_fits_next() {
    let mut d = Deployment::new(Kind::LlamaCpp);
    d.requests = Some(2);
    let measured = Measured {
        context: 4096,
        requests: Some(2),
        available: Some(96 << 20),
        ..Measured::default()
    };
    // 32 MiB now and 96 MiB free: 16,384 in each of two slots.
    let fits = forecast(&tiny(), &d, Some(&measured), 16_384).unwrap();
    assert_eq!(
        (fits.bounds.pool, fits.capacity_after),
        (Some(16_384), Some(2.0))
    );
    assert_eq!(fits.room.map(|(slots, _)| slots), Some(2.0));
    assert!(
        !fits.warnings.iter().any(|w| w.contains("does not fit")),
        "{:?}",
        fits.warnings
    );
    let over = forecast(&tiny(), &d, Some(&measured), 32_768).unwrap();
    assert!(
        over.warnings.iter().any(|w| w.contains("does not fit")),
        "{:?}",
        over.warnings
    );
    assert_eq!(over.effective, 16_384);
    assert_eq!(
        (over.capacity_after, over.room.map(|(slots, _)| slots)),
        (Some(2.0), Some(1.0))
    );
    // Without a card its slots are what is known.
    let blind = Measured {
        available: None,
        ..measured
    };
    let blind = forecast(&tiny(), &d, Some(&blind), 16_384).unwrap();
    assert_eq!(
        (blind.capacity_before, blind.capacity_after, blind.room),
        (Some(2.0), Some(2.0), None)
    );
}

#[test]
fn sglang_charges_windows_in_full_or_at_four_fifths() {
    let d = Deployment::new(Kind::Sglang);
    assert_eq!(pool::charged(&model("gemma-3-27b"), &d), Ok(507_904.0));
    // 12 full layers of 2048 B and 12 window layers at 0.8 of that.
    assert_eq!(pool::charged(&model("gpt-oss-20b"), &d), Ok(24_576.0 * 1.8));
}

#[test]
fn llama_cpp_s_log_is_of_all_its_cards() {
    let mut d = Deployment::new(Kind::LlamaCpp);
    d.requests = Some(1);
    let measured = Measured {
        context: 4096,
        pool_tokens: Some(4096),
        pool_bytes: Some(16 << 20),
        ..Measured::default()
    };
    let one = forecast(&tiny(), &d, Some(&measured), 8192).unwrap();
    d.split = Split::checked(1, 1, 2).unwrap();
    let two = forecast(&tiny(), &d, Some(&measured), 8192).unwrap();
    let of = |f: &crate::memory::Forecast| f.calibration.unwrap().difference();
    assert!(
        of(&one).abs() < 0.01 && of(&two).abs() < 0.01,
        "{} {}",
        of(&one),
        of(&two)
    );
    assert_eq!(two.change.unwrap().bytes * 2, one.change.unwrap().bytes);
}

#[test]
fn slots_that_share_a_cache_hold_windows_and_states_each() {
    let g = model("gemma-3-27b");
    let mut d = Deployment::new(Kind::LlamaCpp);
    d.shared_cache = true;
    d.requests = Some(1);
    let one = pool::llamacpp_taken(&g, &d, 32_768, 1).unwrap();
    d.sequences = Some(4);
    let four = pool::llamacpp_taken(&g, &d, 32_768, 1).unwrap();
    // The windows of three more sequences: 52 layers of 1,024 tokens, 16 heads of 128, keys and values of 2 bytes.
    assert_eq!(four - one, 3 * 52 * 1024 * 16 * 128 * 2 * 2);
}

#[test]
fn how_many_requests_fit_is_taken_from_vllm_s_log() {
    use crate::engine::start::{Known, Reader};
    let mut log = Reader::new(Some(Kind::Vllm));
    log.read("INFO 11-30 10:00:00 [kv_cache_utils.py:1] GPU KV cache size: 262,144 tokens");
    log.read("INFO 11-30 10:00:00 [kv_cache_utils.py:2] Maximum concurrency for 131,072 tokens per request: 2.00x");
    let measured = Measured::of_start(&log.diagnose(&Known::default()));
    assert_eq!(
        (measured.concurrency, measured.pool_tokens),
        (Some(2.0), Some(262_144))
    );
}

#[test]
fn a_request_lives_in_the_pool_of_one_vllm_engine() {
    let mut d = Deployment::new(Kind::Vllm);
    d.engines = Some(2);
    let measured = Measured {
        context: 32_768,
        pool_tokens: Some(100_000),
        pool_bytes: Some(50_000 * 4096),
        ..Measured::default()
    };
    let up = forecast(&tiny(), &d, Some(&measured), 81_920).unwrap();
    assert_eq!((up.bounds.pool, up.effective), (Some(50_000), 50_000));
    assert!(up.capacity_after.is_some_and(|c| (1.2..1.3).contains(&c)));
    let refuses = |w: &String| w.starts_with("vLLM refuses to start");
    assert!(up.warnings.iter().any(refuses), "{:?}", up.warnings);
    assert!(up.calibration.unwrap().difference().abs() < 0.01);
}
