//! What a context will cost, and what came of it.

use super::*;
use crate::app::effect::Save;
use crate::app::forecast;
use crate::engine::Kind;
use crate::gpu::{Card, CardState, Detail, Memory};
use crate::memory::Measured;

const GIB: u64 = 1 << 30;

fn geometry() -> crate::memory::Geometry {
    let text = include_str!("../../../../tests/fixtures/kv/configs/qwen3.6-27b.json");
    crate::memory::config::parse(text, Some("qwen3.6-27b")).expect("the fixture reads")
}

/// A server at 65,536 whose model is known, with limits on requests and drafting.
fn known() -> Play {
    let mut play = Play::attached(65_536);
    let config = play.model.rig.config.as_mut().expect("ours");
    let more = [
        "--max-running-requests",
        "16",
        "--speculative-num-draft-tokens",
        "4",
    ];
    config.launch.argv.extend(more.map(String::from));
    play.msg(Msg::Geometry(Ok(Box::new(geometry()))));
    play
}

/// What runs, at another context.
fn next(play: &Play, context: u64) -> Config {
    let running = play.model.rig.config.clone().expect("ours");
    Config { context, ..running }
}

fn card(index: u32, used: u64) -> Card {
    Card {
        index,
        uuid: format!("GPU-{index}"),
        name: "RTX A6000".into(),
        state: CardState::Ok,
        memory: Reading::Value(Memory {
            total: 48 * GIB,
            used,
            free: 48 * GIB - used,
            reserved: 0,
        }),
        busy_pct: Reading::unsupported(),
        temp_c: Reading::unsupported(),
        power_mw: Reading::unsupported(),
        power_limit_mw: Reading::unsupported(),
        processes: Reading::Value(Vec::new()),
        detail: Detail::default(),
    }
}

#[test]
fn the_forecast_is_of_the_model_that_is_served() {
    let mut play = known();
    play.model.rig.gpus.cards = vec![card(0, 40 * GIB), card(1, 41 * GIB)];
    let lines = forecast::lines(&play.model, 131_072, None);
    let tightest = lines.first().expect("a line for each card");
    assert!(
        tightest.starts_with("card 1: +") && tightest.contains("free 7.0 → 7.0 GiB"),
        "{lines:?}"
    );
    let capacity =
        "capacity: 2.4 x → 1.2 x full-length requests, from the present pool of 159,744 tokens";
    assert!(lines.iter().any(|line| line == capacity), "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|line| line == "effective context: 131,072"),
        "{lines:?}"
    );
    let doubts = forecast::doubts(&play.model, 131_072, None);
    let fits = "a 131,072 context fits 1.2 requests at once";
    assert!(doubts.iter().any(|doubt| doubt == fits), "{doubts:?}");
    let lever = "lower max-running-requests from 16 to 8: +";
    assert!(
        doubts.iter().any(|doubt| doubt.starts_with(lever)),
        "{doubts:?}"
    );
}

#[test]
fn an_edited_launch_is_what_is_forecast() {
    let mut play = known();
    play.model.rig.gpus.cards = vec![card(0, 40 * GIB)];
    let mut launch = next(&play, 131_072).launch;
    let same = forecast::lines(&play.model, 131_072, Some(&launch));
    assert_eq!(same, forecast::lines(&play.model, 131_072, None));
    let limit = launch
        .argv
        .iter()
        .position(|word| word == "16")
        .expect("is there");
    launch.argv[limit] = "8".into();
    let lines = forecast::lines(&play.model, 131_072, Some(&launch));
    let unknown = "capacity: unknown until it runs: the arguments change, and with them the pool";
    assert!(lines.iter().any(|line| line == unknown), "{lines:?}");
    let tried = play.model.tried_mut(131_072);
    tried.capacity = Some(1.2);
    tried.config = Some(Config {
        context: 131_072,
        launch: launch.clone(),
    });
    let before = |launch| {
        let lines = forecast::lines(&play.model, 131_072, launch);
        lines
            .iter()
            .any(|line| line.starts_with("measured here before"))
    };
    let other = next(&play, 131_072).launch;
    assert!(before(Some(&launch)) && !before(Some(&other)));
}

#[test]
fn a_pool_below_the_context_is_said_before_the_restart() {
    let play = known();
    let lines = forecast::lines(&play.model, 262_144, None);
    let bound = "effective context: 159,744, what the pool holds";
    assert!(lines.iter().any(|line| line == bound), "{lines:?}");
    let doubts = forecast::doubts(&play.model, 262_144, None);
    let refuses =
        "SGLang starts with a pool of 159,744 tokens, smaller than the context of 262,144";
    assert!(
        doubts.iter().any(|doubt| doubt.starts_with(refuses)),
        "{doubts:?}"
    );
}

#[test]
fn a_model_that_is_not_found_leaves_what_the_server_tells_and_says_why() {
    let mut play = Play::attached(65_536);
    play.msg(Msg::Geometry(Err("the launch names no model file".into())));
    let lines = forecast::lines(&play.model, 131_072, None);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("capacity: 2.4 x → 1.2 x")),
        "{lines:?}"
    );
    let why = "not from the model itself: the launch names no model file";
    assert!(lines.iter().any(|line| line == why), "{lines:?}");
}

/// llama.cpp with four slots of 4,096, launched with `more`.
fn slots(more: &[&str]) -> Play {
    let mut play = Play::new();
    let mut config = config(4_096);
    let own = ["-m", "a.gguf"].map(String::from);
    config.launch.argv.extend(own);
    config
        .launch
        .argv
        .extend(more.iter().map(|w| w.to_string()));
    let mut facts = facts(4_096);
    facts.kind = Kind::LlamaCpp;
    facts.context.configured = Reading::unsupported();
    facts.context.per_slot = Reading::Value(4_096);
    facts.context.slots = Reading::Value(4);
    facts.context.pool_tokens = Reading::Value(4 * 4_096);
    let attached = Attached {
        facts,
        service: Some(view()),
        config: Some(config),
        last_good: None,
    };
    play.msg(Msg::Started)
        .msg(Msg::Attached(Box::new(attached)))
        .msg(Msg::Geometry(Ok(Box::new(geometry()))));
    play
}

#[test]
fn llama_cpp_s_capacity_is_its_slots_also_where_no_card_is_read() {
    for (more, now, line) in [
        (
            &["-np", "4"][..],
            4.0,
            "capacity: 4.0 x → 4.0 x full-length requests, one a slot",
        ),
        // Their number is left to the server: they share one cache.
        (&[][..], 1.0, "capacity: 1.0 x → 1.0 x full-length requests"),
    ] {
        let play = slots(more);
        let facts = play.model.rig.facts.as_ref().expect("attached");
        assert_eq!(facts.context.capacity(), Some(now), "{more:?}");
        let lines = forecast::lines(&play.model, 8_192, None);
        assert!(lines.iter().any(|l| l == line), "{more:?}: {lines:?}");
    }
    // What a script does with its words is not known: its slots are counted each, and that is noted.
    let mut play = slots(&[]);
    if let Some(config) = &mut play.model.rig.config {
        config.launch.argv = ["/root/ctl", "{context}"].map(String::from).to_vec();
    }
    let mut again = play.model.rig.facts.clone().expect("attached");
    again.context.pool_tokens = Reading::Value(4 * 4_096);
    play.msg(Msg::Facts(Box::new(again)));
    let facts = play.model.rig.facts.as_ref().expect("attached");
    assert_eq!(facts.context.capacity(), Some(4.0));

    let mut play = slots(&["-np", "4"]);
    play.model.rig.gpus.cards = vec![card(0, 47 * GIB)];
    let lines = forecast::lines(&play.model, 131_072, None);
    let room = "capacity: 4.0 x → 4.0 x full-length requests, one a slot; the card has room for ";
    assert!(lines.iter().any(|l| l.starts_with(room)), "{lines:?}");
    let doubts = forecast::doubts(&play.model, 131_072, None);
    let tight = "131,072 in every slot does not fit on the card";
    assert!(doubts.iter().any(|d| d.starts_with(tight)), "{doubts:?}");

    // A cache that is kept off the cards takes nothing of them, whatever they hold.
    let mut play = slots(&["-np", "4", "-ngl", "0"]);
    play.model.rig.gpus.cards = vec![card(0, 47 * GIB)];
    let lines = forecast::lines(&play.model, 131_072, None);
    let beside = "of the machine's own; the launch keeps the cache off the cards";
    assert!(lines.iter().any(|l| l.ends_with(beside)), "{lines:?}");
    assert!(!lines.iter().any(|l| l.contains("card 0")), "{lines:?}");
    assert!(!lines.iter().any(|l| l.contains("has room")), "{lines:?}");
    let doubts = forecast::doubts(&play.model, 131_072, None);
    assert!(!doubts.iter().any(|d| d.starts_with(tight)), "{doubts:?}");
}

#[test]
fn vllm_s_capacity_is_what_its_log_counts_where_its_metrics_count_blocks() {
    let mut play = Play::attached(65_536);
    let config = play.model.rig.config.clone();
    let tried = play.model.tried_mut(65_536);
    tried.config = config;
    tried.measured = Some(Measured {
        context: 65_536,
        concurrency: Some(4.0),
        ..Measured::default()
    });
    let mut said = facts(65_536);
    said.kind = Kind::Vllm;
    let capacity = |play: &Play| {
        let facts = play.model.rig.facts.as_ref().expect("attached");
        facts.context.capacity()
    };
    // Of a plain model both say the same, but for rounding.
    said.context.pool_tokens = Reading::Value(4 * 65_536 + 100);
    play.msg(Msg::Facts(Box::new(said.clone())));
    assert!(capacity(&play).is_some_and(|c| c > 4.0));
    said.context.pool_tokens = Reading::Value(11 * 65_536);
    play.msg(Msg::Facts(Box::new(said)));
    assert_eq!(capacity(&play), Some(4.0));
    assert_eq!(play.model.tried[&65_536].capacity, Some(4.0));
}

#[test]
fn a_forecast_is_kept_beside_what_came() {
    let mut play = known();
    play.model.rig.gpus.cards = vec![card(0, 40 * GIB)];
    let to = next(&play, 131_072);
    forecast::remember(&mut play.model, &to);
    play.msg(attached(131_072, true));
    let began = play.now;
    play.model.rig.gpus.cards = vec![card(0, 40 * GIB + GIB / 2)];
    let mut stored = None;
    for _ in 0..16 {
        play.msg(Msg::Tick);
        let kept = |effect: &Effect| match effect {
            Effect::Save(Save::Tried(tried)) => tried.forecast.clone(),
            _ => None,
        };
        stored = stored.or(play.effects.iter().find_map(kept));
        let young = play.now.since(began) < 5_000;
        assert!(stored.is_none() || !young, "compared before it settled");
    }
    let kept = play.model.tried.get(&131_072);
    let record = kept
        .and_then(|tried| tried.forecast.clone())
        .expect("settled");
    assert_eq!((record.from, record.came), (65_536, Some((GIB / 2) as i64)));
    assert_eq!(stored.as_ref(), Some(&record));
    let error = record.error().expect("both are known");
    let words = forecast::last(&play.model).expect("the pane shows it");
    assert_eq!(
        words,
        format!("last forecast {:+.1} GiB", error as f64 / GIB as f64)
    );
}
