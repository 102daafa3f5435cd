use super::*;

fn facts(log: &str) -> Vec<LogFact> {
    log.lines().flat_map(read_log_line).collect()
}

fn failures(facts: &[LogFact]) -> Vec<&str> {
    facts
        .iter()
        .filter_map(|f| match f {
            LogFact::Failure(line) => Some(line.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn the_largest_context_that_fits_is_offered() {
    let case = facts(include_str!(
        "../../tests/fixtures/engine/cases/start-03.log"
    ));
    assert!(
        matches!(&case[..], [LogFact::Failure(_), LogFact::Suggests(34_736)]),
        "{case:?}"
    );
    let real = facts(include_str!(
        "../../tests/fixtures/engine/vllm/fail-kv-too-small.log"
    ));
    assert!(real.contains(&LogFact::Suggests(262_016)));
    assert!(
        failures(&real)
            .iter()
            .all(|line| line.contains("To serve at least one request")),
        "{real:?}"
    );
}

#[test]
fn above_the_models_limit_names_the_limit() {
    let facts = facts(include_str!(
        "../../tests/fixtures/engine/vllm/fail-derived-max-len.log"
    ));
    assert!(facts.contains(&LogFact::Suggests(524_288)), "{facts:?}");
    assert!(
        failures(&facts)
            .iter()
            .any(|line| line.contains("max_model_len (1000000)"))
    );
}

#[test]
fn memory_that_runs_out_in_graph_capture_is_seen_after_the_pool() {
    let facts = facts(include_str!(
        "../../tests/fixtures/engine/cases/start-04.log"
    ));
    assert_eq!(
        facts[..4],
        [
            LogFact::Phase(Phase::AllocatingPool, None),
            LogFact::Phase(Phase::AllocatingPool, None),
            LogFact::PoolTokens(150_745),
            LogFact::Phase(Phase::CapturingGraphs, Some(40)),
        ]
    );
    assert!(failures(&facts)[0].starts_with("torch.OutOfMemoryError"));
}

#[test]
fn a_taken_port_is_a_failure() {
    let facts = facts(include_str!(
        "../../tests/fixtures/engine/vllm/fail-port-in-use.log"
    ));
    assert_eq!(
        failures(&facts),
        ["OSError: [Errno 98] Address already in use"]
    );
}

#[test]
fn real_starts_go_through_their_phases() {
    for (log, context, pool) in [
        (
            include_str!("../../tests/fixtures/engine/vllm/start-ok-8192-and-sigterm.log"),
            8192,
            262_144,
        ),
        (
            include_str!("../../tests/fixtures/engine/vllm/start-ok-131072-ngram-spec.log"),
            131_072,
            262_144,
        ),
    ] {
        let facts = facts(log);
        assert!(failures(&facts).is_empty(), "{facts:?}");
        assert!(facts.contains(&LogFact::Context(context)));
        assert!(facts.contains(&LogFact::PoolTokens(pool)));
        let phases: Vec<Phase> = facts
            .iter()
            .filter_map(|f| match f {
                LogFact::Phase(phase, _) => Some(*phase),
                _ => None,
            })
            .collect();
        assert!(phases.is_sorted(), "{phases:?}");
        assert_eq!(phases.last(), Some(&Phase::Listening));
    }
}
