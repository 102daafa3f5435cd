//! vLLM 0.32.

use crate::raise::Raised;
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

#[test]
#[ignore = "needs a real vLLM: tests/run full"]
fn more_than_its_pool_is_refused_and_its_own_number_serves() {
    let _alone = crate::support::alone();
    let server = Raised::new(
        "VLLM",
        "vllm",
        "serve MODEL --served-model-name small --max-model-len {context} --max-num-seqs 4 --dtype bfloat16 --enforce-eager --host 127.0.0.1 \
         --port PORT",
    );
    // One gibibyte at 23,040 bytes a token holds 46,603 tokens, in blocks of 128.
    server.raises(65_536, "pool", 46_000..=46_603);
}
