//! The estimator as its users see it: exact bytes for published models, and clear refusals.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/estimate.rs"]
mod support;

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use support::{config, fixtures, model, notes, refuses, row, run};

/// The fields of one line of the table; a field in quotes may hold commas.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

#[test]
fn every_published_figure_is_met_exactly() {
    let text = std::fs::read_to_string(fixtures().join("kv/expected.csv")).unwrap();
    let mut lines = text.lines();
    let heads = fields(lines.next().unwrap());
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let mut count = 0;
    for line in lines {
        let cells = fields(line);
        let cell = |name: &str| cells[at(name)].as_str();
        let file = fixtures().join("kv").join(cell("config"));
        let file = file.display().to_string();
        let tokens = if cell("tokens") == "0" {
            "1024"
        } else {
            cell("tokens")
        };
        let mut args = vec![file.as_str(), "--context", tokens, "--tp", cell("tp")];
        args.extend(["--engine", "sglang", "--seqs", cell("seqs")]);
        if !cell("kv_dtype").is_empty() {
            args.extend(["--kv-dtype", cell("kv_dtype")]);
        }
        if !cell("state_dtype").is_empty() {
            args.extend(["--state-dtype", cell("state_dtype")]);
        }
        let mut scope = cell("scope").split(';');
        let field = match scope.next().unwrap() {
            "kv" => "kv_bytes",
            "kv_uniform" => "kv_uniform_bytes",
            "kv_llamacpp" => "kv_llamacpp_bytes",
            "state" => "state_bytes",
            "mtp_draft_kv" => "mtp_draft_kv_bytes",
            "spec_intermediate" => {
                args.extend(["--draft-tokens", "1"]);
                "spec_intermediate_bytes"
            }
            other => panic!("{other}"),
        };
        if let Some(ubatch) = scope.next() {
            args.extend(["--ubatch", ubatch.strip_prefix("ubatch=").unwrap()]);
        }
        let row = row(&args);
        let expected: u64 = cell("expected_bytes").parse().unwrap();
        assert_eq!(row[field], expected, "{line}");
        if let ("kv_bytes", Ok(each)) = (field, cell("bytes_per_token").parse::<u64>()) {
            assert_eq!(row["kv_bytes_per_token"], each, "{line}");
        }
        count += 1;
    }
    assert_eq!(count, 147);
}

#[test]
fn the_text_part_counts_not_the_vision_part() {
    let row = row(&[
        &config("cfg-01.config.json"),
        "--context",
        "32K",
        "--engine",
        "sglang",
    ]);
    assert_eq!(row["kv_bytes_per_token"], 65_536);
    assert_eq!(row["state_bytes"], 153_944_064);
    let notes = notes(&row);
    assert!(
        notes.contains("64 layers: 16 full attention, 48 linear with a fixed state"),
        "{notes}"
    );
    assert!(notes.contains("262,144"), "{notes}");
}

#[test]
fn absent_kv_heads_and_a_given_head_size() {
    let each =
        |name: &str| row(&[&config(name), "--context", "4096"])["kv_bytes_per_token"].clone();
    assert_eq!(each("cfg-02a.config.json"), 524_288);
    assert_eq!(each("cfg-02b.config.json"), 262_144);
}

#[test]
fn the_limits_that_are_derived_from_one_configuration() {
    let row = row(&[
        &config("cfg-03.config.json"),
        "--context",
        "64K",
        "--engine",
        "sglang",
    ]);
    let notes = notes(&row);
    for words in [
        "made for 32,768 tokens, 131,072 with its yarn x4",
        "SGLang derives 32,768",
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    ] {
        assert!(notes.contains(words), "{words:?} in {notes}");
    }
}

#[test]
fn nothing_is_given_that_was_not_asked() {
    let row = row(&[
        &model("llama-3.1-8b"),
        "--context",
        "32K",
        "--engine",
        "vllm",
    ]);
    let mut keys: Vec<&str> = row
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    let mut form = vec![
        "model",
        "context",
        "kv_bytes_per_token",
        "kv_bytes",
        "kv_uniform_bytes",
        "kv_llamacpp_bytes",
        "state_bytes",
        "spec_intermediate_bytes",
        "mtp_draft_kv_bytes",
        "pool_tokens",
        "capacity",
        "fits",
        "notes",
    ];
    form.sort_unstable();
    assert_eq!(keys, form);
    for absent in [
        "spec_intermediate_bytes",
        "mtp_draft_kv_bytes",
        "pool_tokens",
        "capacity",
        "fits",
    ] {
        assert!(row[absent].is_null(), "{absent}");
    }
    assert_eq!(row["model"], "llama-3.1-8b");
    assert_eq!(row["context"], 32_768);
}

#[test]
fn a_pasted_configuration_and_a_folder() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vramp"))
        .args(["estimate", "-", "--context", "32K", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = std::fs::read(model("jamba-v0.1")).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    let pasted: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(pasted[0]["kv_bytes"], 536_870_912);
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("Jamba-v0.1");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("config.json"), &text).unwrap();
    let found = row(&[&home.display().to_string(), "--context", "32K"]);
    assert_eq!(found["kv_bytes"], 536_870_912);
    assert_eq!(found["model"], "Jamba-v0.1");
}

#[test]
fn the_table_is_for_people() {
    let output = run(&[
        &model("qwen3.6-27b"),
        "--engine",
        "sglang",
        "--context",
        "32K,128K",
        "--tp",
        "2",
        "--draft-tokens",
        "4",
        "--seqs",
        "8",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "qwen3.6-27b",
        "TP 2",
        "32,768",
        "131,072",
        "32,768 ",
        "verify",
        "draft KV",
        "hardly moves",
    ] {
        assert!(text.contains(words), "{words:?} in\n{text}");
    }
    assert!(
        !text.contains("capacity   "),
        "no column without a value:\n{text}"
    );
}

#[test]
fn wrong_use_is_2_and_a_bad_model_is_1() {
    let good = model("llama-3.1-8b");
    refuses(&[&good], 2, &["--context"]);
    for (flag, value, words) in [
        ("--context", "0", "it is zero"),
        ("--engine", "tgi", "llamacpp"),
        ("--kv-dtype", "q9", "q8_0"),
        ("--state-dtype", "conv=int2", "fp32"),
        ("--tp", "0", "0"),
        ("--dp", "3", "--dp must divide --tp"),
        ("--fraction", "1.5", "0.85"),
        ("--vram", "48 apples", "48GiB"),
    ] {
        let mut args = vec![good.as_str(), flag, value];
        if flag != "--context" {
            args.extend(["--context", "32K"]);
        }
        refuses(&args, 2, &[words]);
    }
    refuses(
        &["/nowhere/config.json", "--context", "32K"],
        1,
        &["/nowhere/config.json", "nothing is downloaded"],
    );
    let folder = tempfile::tempdir().unwrap();
    let bad = |name: &str, text: &[u8], words: &[&str]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        refuses(&[&path.display().to_string(), "--context", "32K"], 1, words);
    };
    bad("empty.json", b"", &["empty.json", "it is empty"]);
    bad("page.json", b"<html>", &["not JSON"]);
    bad("list.json", b"[1]", &["not a JSON object"]);
    bad("binary.json", b"\xff\xfe\x00", &["not text"]);
    bad(
        "adapter_config.json",
        br#"{"peft_type":"LORA","r":8}"#,
        &["adapter"],
    );
    bad("none.json", b"{}", &["num_hidden_layers"]);
    bad(
        "rwkv.json",
        br#"{"model_type":"rwkv6","num_hidden_layers":24}"#,
        &["not supported", "RWKV"],
    );
    bad(
        "cut.gguf",
        b"GGUF\x03\x00\x00\x00",
        &["GGUF", "ends in the middle"],
    );
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    refuses(
        &[&empty.display().to_string(), "--context", "32K"],
        1,
        &["neither config.json nor a GGUF"],
    );
}
