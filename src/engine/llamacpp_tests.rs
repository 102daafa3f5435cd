use super::*;

fn facts(log: &str) -> Vec<LogFact> {
    log.lines().flat_map(read_log_line).collect()
}

macro_rules! log {
    ($name:literal) => {
        facts(include_str!(concat!("../../tests/fixtures/engine/", $name)))
    };
}

#[test]
fn a_silent_cap_is_read_from_the_log() {
    let facts = log!("cases/start-06.log");
    assert!(facts.contains(&LogFact::PoolTokens(524_288)));
    assert!(facts.contains(&LogFact::Suggests(262_144)));
    let context = facts.iter().rev().find_map(|f| match f {
        LogFact::Context(n) => Some(*n),
        _ => None,
    });
    assert_eq!(context, Some(262_144));
    let real = log!("llama-server/ctx-32k-over-train.log");
    assert!(real.contains(&LogFact::Context(8192)), "{real:?}");
    assert!(!real.contains(&LogFact::Context(32_768)), "{real:?}");
}

#[test]
fn slots_divide_the_total() {
    let facts = log!("cases/start-07.log");
    assert!(facts.contains(&LogFact::PoolTokens(131_072)));
    assert!(facts.contains(&LogFact::Context(32_768)));
    assert_eq!(facts.last(), Some(&LogFact::Phase(Phase::Listening, None)));
    assert!(log!("llama-server/ctx-32k-p4.log").contains(&LogFact::PoolTokens(32_768)));
}

#[test]
fn slots_that_share_a_cache_do_not_multiply_it() {
    let facts = log!("llama-server/ctx-8k-unified.log");
    assert!(facts.contains(&LogFact::PoolTokens(8192)), "{facts:?}");
    assert!(facts.contains(&LogFact::Context(8192)));
}

#[test]
fn a_talkative_start_goes_through_its_phases() {
    let facts = log!("llama-server/ctx-lv4.log");
    let phases: Vec<Phase> = facts
        .iter()
        .filter_map(|f| match f {
            LogFact::Phase(phase, _) => Some(*phase),
            _ => None,
        })
        .collect();
    assert!(phases.is_sorted(), "{phases:?}");
    for phase in [
        Phase::LoadingWeights,
        Phase::AllocatingPool,
        Phase::WarmingUp,
        Phase::Listening,
    ] {
        assert!(phases.contains(&phase), "{phase:?}");
    }
    assert!(facts.contains(&LogFact::PoolTokens(8192)), "{facts:?}");
    assert!(!facts.iter().any(|f| matches!(f, LogFact::Failure(_))));
}

#[test]
fn the_first_failure_of_each_log_is_the_cause() {
    let first = |facts: Vec<LogFact>| {
        facts.into_iter().find_map(|f| match f {
            LogFact::Failure(line) => Some(line),
            _ => None,
        })
    };
    for (facts, words) in [
        (
            log!("llama-server/ulimit-256k.log"),
            "attempted to allocate 5760.00 MB",
        ),
        (log!("llama-server/ctx-100M.log"), "insufficient memory"),
        (log!("llama-server/port-in-use.log"), "port: 18081"),
        (
            log!("llama-server/no-model.log"),
            "No such file or directory",
        ),
        (
            log!("llama-server/truncated-model.log"),
            "corrupted or incomplete",
        ),
        (log!("llama-server/bad-flag.log"), "--ctx-sizes"),
    ] {
        let cause = first(facts).expect(words);
        assert!(cause.contains(words), "{cause}");
    }
}

#[test]
fn the_rounding_of_the_server_is_known() {
    let engine = |asked, slots| {
        let endpoint = Endpoint {
            url: "http://127.0.0.1:1".into(),
            model: None,
            key: None,
            kind: Some(Kind::LlamaCpp),
        };
        let client = Client::new(&endpoint).expect("client");
        LlamaCpp::new(client, endpoint).expected_context(asked, slots)
    };
    assert_eq!(engine(2048, 4), 2048);
    assert_eq!(engine(8192, 1), 8192);
    assert_eq!(engine(1000, 1), 1024);
    assert_eq!(engine(1000, 4), 1024);
    assert_eq!(engine(2100, 4), 2304);
    assert_eq!(engine(2048, 0), 2048);
}
