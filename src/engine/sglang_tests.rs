use super::*;

fn facts(log: &str) -> Vec<LogFact> {
    log.lines().flat_map(read_log_line).collect()
}

#[test]
fn a_hybrid_start_goes_through_all_phases() {
    let facts = facts(include_str!(
        "../../tests/fixtures/engine/cases/start-01.log"
    ));
    assert_eq!(
        facts,
        vec![
            LogFact::Phase(Phase::LoadingWeights, None),
            LogFact::Phase(Phase::LoadingWeights, Some(100)),
            LogFact::Phase(Phase::AllocatingPool, None),
            LogFact::Phase(Phase::AllocatingPool, None),
            LogFact::PoolTokens(212_992),
            LogFact::Phase(Phase::AllocatingPool, None),
            LogFact::Phase(Phase::AllocatingPool, None),
            LogFact::PoolTokens(212_992),
            LogFact::Phase(Phase::CapturingGraphs, None),
            LogFact::Phase(Phase::CapturingGraphs, Some(100)),
            LogFact::PoolTokens(212_992),
            LogFact::Context(131_072),
            LogFact::Phase(Phase::WarmingUp, None),
            LogFact::Phase(Phase::Listening, None),
        ]
    );
}

#[test]
fn above_the_models_limit_names_the_limit() {
    let facts = facts(include_str!(
        "../../tests/fixtures/engine/cases/start-02.log"
    ));
    assert!(
        matches!(&facts[..], [LogFact::Failure(line), LogFact::Suggests(32_768)] if line.starts_with("ValueError: Warning: User-specified"))
    );
    let real = self::facts(include_str!(
        "../../tests/fixtures/engine/sglang/fail-derived-context.log"
    ));
    assert!(
        matches!(&real[..], [LogFact::Failure(_), LogFact::Suggests(524_288)]),
        "{real:?}"
    );
}

#[test]
fn a_taken_port_is_a_failure_although_the_process_lives_on() {
    for log in [
        include_str!("../../tests/fixtures/engine/cases/start-05.log"),
        include_str!("../../tests/fixtures/engine/sglang/fail-port-in-use-stays-alive.log"),
    ] {
        let facts = facts(log);
        assert!(
            facts.iter().any(
                |f| matches!(f, LogFact::Failure(line) if line.contains("address already in use"))
            ),
            "{facts:?}"
        );
        assert!(!facts.contains(&LogFact::Phase(Phase::Listening, None)));
    }
}

#[test]
fn a_pool_of_nothing_names_the_fraction() {
    let facts = facts(include_str!(
        "../../tests/fixtures/engine/sglang/fail-max-total-tokens-0.log"
    ));
    let failures: Vec<_> = facts
        .iter()
        .filter_map(|f| match f {
            LogFact::Failure(line) => Some(line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        failures,
        ["RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."]
    );
}

#[test]
fn a_real_start_with_traffic_is_no_failure() {
    let facts = facts(include_str!(
        "../../tests/fixtures/engine/sglang/start-ok-8192-traffic-and-sigterm.log"
    ));
    assert!(
        !facts.iter().any(|f| matches!(f, LogFact::Failure(_))),
        "{facts:?}"
    );
    assert!(facts.contains(&LogFact::PoolTokens(65_536)));
    assert!(facts.contains(&LogFact::Context(8192)));
    assert_eq!(
        facts
            .iter()
            .filter(|f| **f == LogFact::Phase(Phase::Listening, None))
            .count(),
        1
    );
}

#[test]
fn a_start_with_a_pool_below_the_context_says_what_it_will_serve() {
    let facts = facts(include_str!(
        "../../tests/fixtures/engine/sglang/start-ok-131072-pool-65536.log"
    ));
    assert!(facts.contains(&LogFact::Suggests(65_536)));
    assert!(
        !facts.iter().any(|f| matches!(f, LogFact::Failure(_))),
        "{facts:?}"
    );
}

#[test]
fn progress_bars_give_percents() {
    assert_eq!(
        read_log_line("Multi-thread loading shards:  50% Completed | 6/12 [00:00<00:00, 5.15it/s]"),
        [LogFact::Phase(Phase::LoadingWeights, Some(50))]
    );
    assert_eq!(
        read_log_line("Capturing batches (bs=24 avail_mem=7.02 GB):  36%|###6      | 10/28"),
        [LogFact::Phase(Phase::CapturingGraphs, Some(36))]
    );
}

#[test]
fn cache_and_stages_are_counted_from_the_first_request_on() {
    let load = |text: &str| read_load(&Page::parse(text));
    let real = load(include_str!(
        "../../tests/fixtures/engine/sglang/metrics-after.http"
    ));
    assert_eq!(
        (real.cache_queries_total, real.cache_hits_total),
        (Reading::Value(726), Reading::Value(29))
    );
    let stage = real.prefilled.known().expect("prefill");
    assert_eq!(stage.requests, 16);
    assert!((stage.seconds - 9.2478).abs() < 0.001, "{stage:?}");
    let queued = real.queued.known().expect("queue");
    assert_eq!(queued.requests, 16);
    // Nothing came from the cache yet: its counter is not there, the tokens that were worked on are.
    let first = load(
        "sglang:prompt_tokens_total{is_streaming=\"true\"} 40.0\n\
         sglang:prompt_tokens_histogram_sum{} 40.0\n\
         sglang:uncached_prompt_tokens_histogram_sum{} 40.0\n",
    );
    assert_eq!(first.cache_hits_total, Reading::Value(0));
    let old = load("sglang:prompt_tokens_total{} 40.0\n");
    assert!(old.cache_hits_total.known().is_none());
}
