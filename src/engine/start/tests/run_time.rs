//! Servers that came up: what ends them, and what does not.

use super::up_to::*;
use super::*;

const READY: &str = "[2026-09-02 10:01:43] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)\n[2026-09-02 10:01:55] The server is fired up and ready to roll!\n";
const TORCH: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 47.40 GiB of which 1.00 GiB is free.\n";

#[test]
fn memory_that_runs_out_at_a_prompt_wants_the_opposite_move() {
    let log = format!(
        "{SGLANG_ARGS}{SGLANG_POOL}{READY}[2026-09-02 10:02:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n{TORCH}[2026-09-02 10:02:01] Received sigquit from a child process.\n"
    );
    let found = read(&log);
    assert_eq!(
        (found.outcome, found.cause),
        (Outcome::Failed, Some(Cause::OomPrefill))
    );
    let advice = found.advice.expect("advice");
    assert!(
        advice.contains("lower --mem-fraction-static from 0.85"),
        "{advice}"
    );
    let first = format!(
        "{SGLANG_POOL}[2026-09-02 10:01:43] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)\n{TORCH}"
    );
    assert_eq!(read(&first).cause, Some(Cause::OomPrefill));
}

#[test]
fn a_full_pool_is_not_a_full_card() {
    let log = format!(
        "{SGLANG_POOL}{READY}RuntimeError: Prefill out of memory. Try to lower your batch size.\nTry to allocate 8192 tokens.\n"
    );
    let found = read(&log);
    assert_eq!(found.cause, Some(Cause::OomPrefill));
    assert!(
        found
            .advice
            .expect("advice")
            .contains("higher --mem-fraction-static")
    );
}

#[test]
fn errors_of_requests_do_not_end_a_server() {
    let errors = "ValueError: The input (8292 tokens) is longer than the model's context length (8192 tokens).\nvllm.exceptions.VLLMValidationError: Token id 398 is out of vocabulary\nlaunch.py: error: argument --x: y\n";
    assert_eq!(
        read(&format!("{SGLANG_POOL}{READY}{errors}")).outcome,
        Outcome::Ready
    );
    let stopped = format!(
        "{SGLANG_POOL}{READY}[2026-09-02 11:00:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\nsglang-1 exited with code 137\n"
    );
    assert_eq!(read(&stopped).outcome, Outcome::Ready);
}

#[test]
fn a_server_that_dies_later_has_failed() {
    let dead = format!(
        "{VLLM_POOL}INFO:     Application startup complete.\n(EngineCore_DP0 pid=8) ERROR 09-18 09:00:00 [core.py:710] EngineCore encountered a fatal error.\n(EngineCore_DP0 pid=8) ERROR 09-18 09:00:00 [core.py:710] RuntimeError: shape mismatch in layer 7\n"
    );
    let found = read(&dead);
    assert_eq!(
        (found.outcome, found.cause),
        (Outcome::Failed, Some(Cause::Unknown))
    );
    assert!(found.evidence[0].contains("shape mismatch"), "{found:#?}");
    let killed = format!(
        "{SGLANG_POOL}{READY}Sep 02 11:00:00 gpu1 kernel: Out of memory: Killed process 812 (python3)\n"
    );
    assert_eq!(read(&killed).cause, Some(Cause::OomHost));
}

#[test]
fn what_is_known_beside_the_log_counts() {
    let reader = reader(None, SGLANG_WEIGHTS);
    let with = |known: &Known| {
        let found = reader.diagnose(known);
        (found.outcome, found.cause)
    };
    let exit = |code| Known {
        exit: Some(Some(code)),
        ..Known::default()
    };
    assert_eq!(with(&exit(-9)), (Outcome::Failed, Some(Cause::Killed)));
    assert_eq!(with(&exit(-11)), (Outcome::Failed, Some(Cause::Crashed)));
    assert_eq!(with(&exit(1)), (Outcome::Failed, Some(Cause::Crashed)));
    let oom = Known {
        exit: Some(Some(-9)),
        result: Some("oom-kill".to_string()),
        ..Known::default()
    };
    assert_eq!(with(&oom), (Outcome::Failed, Some(Cause::OomHost)));
    let still = |still_s, busy| Known {
        still_s: Some(still_s),
        cards: vec![Load {
            busy_pct: Some(busy),
            ..Load::default()
        }],
        ..Known::default()
    };
    assert_eq!(with(&still(120.0, 0)), (Outcome::Loading, None));
    assert_eq!(
        with(&still(301.0, 0)),
        (Outcome::Stuck, Some(Cause::Unknown))
    );
    assert_eq!(
        with(&still(301.0, 100)),
        (Outcome::Stuck, Some(Cause::StalledInCollectives))
    );
    assert_eq!(with(&still(301.0, 60)), (Outcome::Loading, None));
    // A card that holds memory after the server is gone is named beside the cause.
    let mut failed = super::reader(None, SGLANG_WEIGHTS);
    failed.read(TORCH);
    let held = Known {
        cards: vec![Load {
            index: 1,
            used: Some(40 << 30),
            total: Some(48 << 30),
            ..Load::default()
        }],
        ..Known::default()
    };
    let advice = failed.diagnose(&held).advice.expect("advice");
    assert!(advice.contains("card 1 holds 40.0 of 48.0 GiB"), "{advice}");
}
