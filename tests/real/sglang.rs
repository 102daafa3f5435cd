//! SGLang 0.5.23.

use crate::raise::Raised;
use crate::steps::{Known, Steps};
use vramp::engine::Kind;

#[test]
#[ignore = "needs a real SGLang: tests/run full"]
fn a_real_sglang_is_read_and_measured() {
    let steps = Steps::start("SGLANG", "SGLANG_MODEL", "/ready", |model, port| {
        let words = format!(
            "--model-path {model} --served-model-name tiny --context-length 8192 --max-running-requests 4 --enable-metrics \
             --host 127.0.0.1 --port {port}"
        );
        words.split(' ').map(str::to_string).collect()
    });
    steps.all(&Known {
        kind: Kind::Sglang,
        version: "0.5.23",
        pool_tokens: 65_536,
        model_limit: Some(524_288),
        token_seconds: "sglang:inter_token_latency_seconds",
        output: 96,
        requests: 8,
        over_by_the_answer: "You requested a total of 8244 tokens",
    });
}

#[test]
#[ignore = "needs a real SGLang: tests/run full"]
fn a_pool_below_the_context_is_a_failed_start() {
    let _alone = crate::support::alone();
    let server = Raised::new(
        "SGLANG",
        "sglang",
        "--model-path MODEL --served-model-name small --context-length {context} --max-running-requests 4 --enable-metrics --max-total-tokens 16384 \
         --host 127.0.0.1 --port PORT",
    );
    server.raises(32_768, "by the KV pool", 16_000..=16_384);
}
