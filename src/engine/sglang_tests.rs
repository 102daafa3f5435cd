use super::*;

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
