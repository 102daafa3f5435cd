//! vLLM 0.32.

use crate::steps::{Known, Steps};
use vramp::engine::Kind;

#[test]
#[ignore = "needs a real vLLM: tests/run full"]
fn a_real_vllm_is_read_and_measured() {
    let steps = Steps::start("VLLM", "VLLM_MODEL", "/health", |model, port| {
        let words = format!(
            "serve {model} --served-model-name tiny --max-model-len 8192 --max-num-seqs 4 --dtype bfloat16 --enforce-eager \
             --host 127.0.0.1 --port {port}"
        );
        words.split(' ').map(str::to_string).collect()
    });
    steps.all(&Known {
        kind: Kind::Vllm,
        version: "0.32.0",
        pool_tokens: 262_144,
        model_limit: None,
        token_seconds: "vllm:inter_token_latency_seconds",
        output: 96,
        requests: 24,
        over_by_the_answer: "min_tokens must be less than or equal to max_tokens=12",
    });
}
