//! `vramp diagnose` on the logs of real servers and on cases with known answers, through the program itself.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/startup")
}

fn run(args: &[&str], stdin: Option<&[u8]>) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vramp"))
        .arg("diagnose")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // A program that reads no input closes it.
    let _ = input.write_all(stdin.unwrap_or_default());
    drop(input);
    child.wait_with_output().unwrap()
}

fn diagnosed(args: &[&str], stdin: Option<&[u8]>) -> Value {
    let mut args = args.to_vec();
    args.push("--json");
    let output = run(&args, stdin);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn log(name: &str) -> Value {
    diagnosed(&[fixtures().join(name).to_str().unwrap()], None)
}

/// Where an expectation of a case stands in the answer; `None` for what only describes.
fn place(key: &str) -> Option<&'static str> {
    Some(match key {
        "class" => "/cause",
        "engine" => "/engine",
        "largest_context" => "/suggested_context",
        "requested" | "context_len" => "/facts/requested_context",
        "model_limit" => "/facts/model_limit",
        "effective_context_per_request" => "/facts/effective_context_per_request",
        "kv_pool_tokens" => "/facts/kv_pool_tokens",
        "kv_gib" => "/facts/kv_gib",
        "kv_pool_gib_per_gpu" => "/facts/kv_pool_gib_per_gpu",
        "draft_kv_gib_per_gpu" => "/facts/draft_kv_gib_per_gpu",
        "fixed_state_gib_per_gpu" => "/facts/fixed_state_gib_per_gpu",
        "fixed_state_mib" => "/facts/fixed_state_mib",
        "wasted_gib" => "/facts/wasted_gib",
        "mamba_slots" => "/facts/mamba_slots",
        "slots" => "/facts/slots",
        "max_running_requests" => "/facts/max_running_requests",
        "free_gib_per_gpu" => "/facts/free_gib_per_gpu",
        "needed_gib" => "/facts/needed_gib",
        "available_gib" => "/facts/available_gib",
        "port" => "/facts/port",
        _ => return None,
    })
}

#[test]
fn every_case_is_read_as_expected() {
    let mut seen = 0;
    for entry in std::fs::read_dir(fixtures().join("cases")).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.to_str().and_then(|p| p.strip_suffix(".expected.json")) else {
            continue;
        };
        let expected: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let found = diagnosed(&[&format!("{name}.log")], None);
        for (key, value) in expected.as_object().unwrap() {
            if let Some(place) = place(key) {
                let value = match value.as_str() {
                    Some("llama.cpp") => &Value::from("llamacpp"),
                    _ => value,
                };
                assert_eq!(
                    found.pointer(place),
                    Some(value),
                    "{name}: {key} in {found:#}"
                );
                seen += 1;
            }
        }
        let outcome = match expected.get("ready") {
            Some(Value::Bool(true)) => "ready",
            _ => "failed",
        };
        assert_eq!(found["outcome"], outcome, "{name}: {found:#}");
    }
    assert!(seen >= 25, "only {seen} expectations were looked at");
}

#[test]
fn the_answer_has_every_key_whatever_the_log_says() {
    let found = diagnosed(&["-"], Some(b"nothing of note\n"));
    let mut keys: Vec<&str> = found
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "advice",
            "cause",
            "engine",
            "evidence",
            "facts",
            "outcome",
            "phase",
            "suggested_context",
            "version"
        ]
    );
    let facts = found["facts"].as_object().unwrap();
    assert_eq!(facts.len(), 22);
    assert!(facts.values().all(Value::is_null), "{found:#}");
    assert_eq!(found["outcome"], "loading");
}

#[test]
fn the_graph_capture_case_names_its_phase_and_the_way_to_turn() {
    let found = log("cases/start-04.log");
    assert_eq!(found["phase"], "capturing_graphs");
    assert_eq!(found["facts"]["device"], "cuda:0");
    assert_eq!(found["facts"]["total_gib"], 22.36);
    let advice = found["advice"].as_str().unwrap();
    assert!(
        advice.contains("lower --gpu-memory-utilization"),
        "{advice}"
    );
}

#[test]
fn real_starts_are_ready_with_their_facts() {
    for (name, engine, requested, effective, pool) in [
        (
            "sglang/start-ok-8192-traffic-and-sigterm.log",
            "sglang",
            Some(8192),
            8192,
            65_536,
        ),
        (
            "sglang/start-ok-131072-pool-65536.log",
            "sglang",
            Some(131_072),
            65_536,
            65_536,
        ),
        (
            "vllm/start-ok-8192-and-sigterm.log",
            "vllm",
            Some(8192),
            8192,
            262_144,
        ),
        (
            "vllm/start-ok-131072-ngram-spec.log",
            "vllm",
            Some(131_072),
            131_072,
            262_144,
        ),
        (
            "llama-server/ctx-32k-over-train.log",
            "llamacpp",
            Some(32_768),
            8192,
            32_768,
        ),
        (
            "llama-server/ctx-32k-p4.log",
            "llamacpp",
            None,
            8192,
            32_768,
        ),
        (
            "llama-server/ctx-8k-unified.log",
            "llamacpp",
            None,
            8192,
            8192,
        ),
        ("llama-server/ctx-default.log", "llamacpp", None, 8192, 8192),
        (
            "llama-server/ctx-lv4.log",
            "llamacpp",
            Some(8192),
            4096,
            8192,
        ),
        ("llama-server/rope.log", "llamacpp", None, 32_768, 32_768),
        (
            "llama-server/start-ok-8192-p4-with-traffic.log",
            "llamacpp",
            None,
            2048,
            8192,
        ),
    ] {
        let found = log(name);
        assert_eq!(found["outcome"], "ready", "{name}: {found:#}");
        assert_eq!(found["engine"], engine, "{name}");
        assert_eq!(found["phase"], "listening", "{name}");
        assert!(found["cause"].is_null(), "{name}");
        let facts = &found["facts"];
        assert_eq!(
            facts["requested_context"].as_u64(),
            requested,
            "{name}: {found:#}"
        );
        assert_eq!(
            facts["effective_context_per_request"], effective,
            "{name}: {found:#}"
        );
        assert_eq!(facts["kv_pool_tokens"], pool, "{name}: {found:#}");
        assert!(facts["port"].as_u64().is_some(), "{name}: {found:#}");
    }
    let versions = [
        ("vllm/start-ok-8192-and-sigterm.log", "0.32.0"),
        ("llama-server/ctx-lv4.log", "b1-571d0d5"),
    ];
    for (name, version) in versions {
        assert_eq!(log(name)["version"], version);
    }
    let detailed = log("llama-server/ctx-lv4.log");
    assert_eq!(detailed["facts"]["slots"], 2);
    assert_eq!(detailed["facts"]["model_limit"], 8192);
    assert_eq!(detailed["facts"]["kv_gib"], 0.1758);
}

#[test]
fn real_failures_have_their_cause() {
    for (name, cause, phase, words) in [
        (
            "sglang/fail-derived-context.log",
            "context_above_model_limit",
            None,
            "(1000000) is greater",
        ),
        (
            "sglang/fail-max-total-tokens-0.log",
            "no_room_for_pool",
            Some("loading_weights"),
            "RuntimeError: Not enough memory",
        ),
        (
            "sglang/fail-port-in-use-stays-alive.log",
            "port_in_use",
            Some("warming_up"),
            "18101",
        ),
        (
            "vllm/fail-derived-max-len.log",
            "context_above_model_limit",
            Some("starting"),
            "max_model_len (1000000)",
        ),
        (
            "vllm/fail-kv-too-small.log",
            "kv_pool_below_one_request",
            Some("loading_weights"),
            "262016",
        ),
        (
            "vllm/fail-port-in-use.log",
            "port_in_use",
            Some("starting"),
            "[Errno 98]",
        ),
        (
            "llama-server/bad-flag.log",
            "bad_argument",
            None,
            "--ctx-sizes",
        ),
        (
            "llama-server/ctx-100M.log",
            "oom_host",
            Some("allocating_pool"),
            "2197265.62 MB",
        ),
        (
            "llama-server/ctx-100M-nofit.log",
            "oom_host",
            Some("allocating_pool"),
            "2197265.62 MB",
        ),
        (
            "llama-server/ulimit-256k.log",
            "oom_host",
            Some("allocating_pool"),
            "5760.00 MB",
        ),
        (
            "llama-server/no-model.log",
            "model_missing",
            Some("loading_weights"),
            "missing.gguf",
        ),
        (
            "llama-server/truncated-model.log",
            "model_missing",
            Some("loading_weights"),
            "corrupted or incomplete",
        ),
        (
            "llama-server/port-in-use.log",
            "port_in_use",
            None,
            "port: 18081",
        ),
    ] {
        let found = log(name);
        assert_eq!(found["outcome"], "failed", "{name}: {found:#}");
        assert_eq!(found["cause"], cause, "{name}: {found:#}");
        assert_eq!(found["phase"].as_str(), phase, "{name}: {found:#}");
        let line = found["evidence"][0].as_str().unwrap();
        assert!(line.contains(words), "{name}: {line}");
        assert!(found["advice"].is_string(), "{name}");
    }
    let facts = log("vllm/fail-kv-too-small.log");
    assert_eq!(facts["suggested_context"], 262_016);
    assert_eq!(facts["facts"]["needed_gib"], 1.53);
    assert_eq!(facts["facts"]["available_gib"], 1.0);
    assert_eq!(log("vllm/fail-port-in-use.log")["facts"]["port"], 18_091);
    assert_eq!(
        log("sglang/fail-derived-context.log")["suggested_context"],
        524_288
    );
    assert_eq!(
        log("vllm/fail-derived-max-len.log")["facts"]["model_limit"],
        524_288
    );
    assert_eq!(
        log("llama-server/ulimit-256k.log")["facts"]["needed_gib"],
        5.625
    );
}

#[test]
fn a_start_that_serves_less_than_asked_has_failed_for_that_value() {
    let case = fixtures().join("cases/start-07.log");
    let case = case.to_str().unwrap();
    let less = diagnosed(&[case, "--asked", "128K"], None);
    assert_eq!(less["outcome"], "failed");
    assert_eq!(less["suggested_context"], 32_768);
    assert!(
        less["advice"]
            .as_str()
            .unwrap()
            .contains("share of one of 4 slots 32,768"),
        "{less:#}"
    );
    assert_eq!(
        diagnosed(&[case, "--asked", "32K"], None)["outcome"],
        "ready"
    );
    let capped = fixtures().join("cases/start-06.log");
    let capped = diagnosed(&[capped.to_str().unwrap(), "--asked", "512K"], None);
    assert_eq!(capped["cause"], "context_above_model_limit");
    let pool = fixtures().join("sglang/start-ok-131072-pool-65536.log");
    let pool = diagnosed(&[pool.to_str().unwrap(), "--asked", "131072"], None);
    assert_eq!(pool["cause"], "kv_pool_below_one_request");
    assert_eq!(pool["suggested_context"], 65_536);
    // Without it the start is ready, and says that its own flag is not served.
    let told = log("sglang/start-ok-131072-pool-65536.log");
    assert_eq!(told["suggested_context"], 65_536);
    assert!(
        told["advice"].as_str().unwrap().contains("not 131,072"),
        "{told:#}"
    );
}

#[test]
fn the_text_says_the_same_to_people() {
    let output = run(
        &[fixtures().join("cases/start-03.log").to_str().unwrap()],
        None,
    );
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "vllm: failed",
        "the KV pool cannot hold one request",
        "34,736 tokens a request",
        "24.00 GiB",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let ready = run(
        &[fixtures().join("cases/start-01.log").to_str().unwrap()],
        None,
    );
    let text = String::from_utf8(ready.stdout).unwrap();
    assert!(
        text.starts_with("sglang: ready\n") && text.contains("212,992"),
        "{text}"
    );
}

#[test]
fn the_cards_help_where_the_log_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("gpus.csv");
    let csv = csv.to_str().unwrap();
    let meeting = "[2026-09-02 10:00:01 TP0] Init torch distributed begin.\n[2026-09-02 10:00:02 TP0] sglang is using nccl==2.27.3\n";
    let with = |rows: &str| {
        let table = format!(
            "index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%]\n{rows}"
        );
        std::fs::write(csv, table).unwrap();
        diagnosed(&["-", "--gpus", csv], Some(meeting.as_bytes()))
    };
    let spinning = with("0, A6000, 49140, 900, 100\n1, A6000, 49140, 900, 100\n");
    assert_eq!(spinning["outcome"], "stuck", "{spinning:#}");
    assert_eq!(spinning["cause"], "stalled_in_collectives");
    assert!(
        spinning["advice"]
            .as_str()
            .unwrap()
            .contains("NCCL_P2P_DISABLE")
    );
    assert_eq!(
        with("0, A6000, 49140, 900, 3\n1, A6000, 49140, 900, 0\n")["outcome"],
        "loading"
    );
    std::fs::write(
        csv,
        "Failed to initialize NVML: Driver/library version mismatch\n",
    )
    .unwrap();
    let driver = diagnosed(&["-", "--gpus", csv], Some(meeting.as_bytes()));
    assert_eq!(driver["cause"], "driver_mismatch", "{driver:#}");
}

#[test]
fn wrong_use_is_told_and_is_not_an_answer() {
    let missing = run(&["/no/such/log"], None);
    assert_eq!(missing.status.code(), Some(2));
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        said.contains("/no/such/log") && said.contains("No such file"),
        "{said}"
    );
    assert_eq!(run(&["-", "--engine", "tgi"], None).status.code(), Some(2));
    assert_eq!(run(&[], None).status.code(), Some(2));
    assert_eq!(
        run(&["-", "--gpus", "/no/such/csv"], None).status.code(),
        Some(2)
    );
    let log = fixtures().join("cases/start-01.log");
    let log = log.to_str().unwrap();
    let wrong = run(&[log, "--gpus", log], None);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&wrong.stderr).contains("nvidia-smi"),
        "{wrong:?}"
    );
    assert_eq!(run(&["-"], Some(b"[{\"t_s\": 1, ")).status.code(), Some(2));
    assert!(run(&["/"], None).status.code() == Some(2));
}

#[test]
fn json_may_go_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("found.json");
    let log = fixtures().join("cases/start-05.log");
    let output = run(
        &[log.to_str().unwrap(), "--json", path.to_str().unwrap()],
        None,
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    let found: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(found["facts"]["port"], 30_000);
}
