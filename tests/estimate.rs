//! The estimator as its users see it: exact bytes for published models, and clear refusals.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vramp"))
        .arg("estimate")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The rows of the answer.
fn rows(args: &[&str]) -> Vec<Value> {
    let mut all = args.to_vec();
    all.push("--json");
    let output = run(&all);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
    serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap()
}

fn row(args: &[&str]) -> Value {
    let mut rows = rows(args);
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// `code` with words on standard error and nothing on standard output.
fn refuses(args: &[&str], code: i32, words: &[&str]) {
    let output = run(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    for word in words {
        assert!(said.contains(word), "{word:?} in {said:?}");
    }
}

fn config(name: &str) -> String {
    fixtures().join("config").join(name).display().to_string()
}

fn model(name: &str) -> String {
    let file = format!("{name}.json");
    fixtures()
        .join("kv/configs")
        .join(file)
        .display()
        .to_string()
}

fn notes(row: &Value) -> String {
    row["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

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
        notes.contains("64 layers: 16 full attention, 48 with a fixed state"),
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
fn the_pool_stays_and_the_capacity_falls_on_sglang() {
    let file = model("llama-3.1-8b");
    let rows = rows(&[
        &file,
        "--engine",
        "sglang",
        "--context",
        "32K,64K,128K",
        "--vram",
        "48GiB",
        "--fraction",
        "0.75",
        "--weights",
        "15GiB",
    ]);
    // 36 GiB - 15 GiB = 21 GiB at 128 KiB a token.
    for row in &rows {
        assert_eq!(row["pool_tokens"], 172_032);
        assert_eq!(row["fits"], true);
    }
    assert_eq!(rows[0]["capacity"], 5.25);
    assert_eq!(rows[2]["capacity"], 1.3125);
    let last = notes(&rows[2]);
    assert!(
        last.contains("a 131,072 context fits 1.3 requests at once"),
        "{last}"
    );
    let over = row(&[
        &file,
        "--engine",
        "sglang",
        "--context",
        "256K",
        "--vram",
        "48GiB",
        "--fraction",
        "0.75",
        "--weights",
        "15GiB",
    ]);
    assert_eq!(over["fits"], false);
    let words = notes(&over);
    assert!(
        words.contains("smaller than the context of 262,144, and refuses longer requests later"),
        "{words}"
    );
    assert!(
        words.contains("above the trained length of 131,072"),
        "{words}"
    );
}

#[test]
fn verify_states_eat_the_pool_and_the_request_limit_is_the_lever() {
    let file = model("qwen3.6-27b");
    let with = |seqs: &str| {
        row(&[
            &file,
            "--engine",
            "sglang",
            "--context",
            "128K",
            "--tp",
            "2",
            "--seqs",
            seqs,
            "--draft-tokens",
            "4",
            "--vram",
            "47GiB",
            "--fraction",
            "0.85",
            "--weights",
            "27GiB",
        ])
    };
    let (sixteen, eight) = (with("16"), with("8"));
    assert_eq!(sixteen["spec_intermediate_bytes"], 76_972_032u64 * 64);
    let gained = eight["pool_tokens"].as_u64().unwrap() - sixteen["pool_tokens"].as_u64().unwrap();
    // 2.3 GiB, of which 10/19 go to KV at 32 KiB a token.
    assert_eq!(gained / 1000, 39);
    let words = notes(&sixteen);
    assert!(
        words.contains("lower max-running-requests from 16 to 8: +37K KV tokens"),
        "{words}"
    );
    let none = row(&[
        &file,
        "--engine",
        "sglang",
        "--context",
        "128K",
        "--tp",
        "2",
        "--draft-tokens",
        "4",
        "--vram",
        "47GiB",
        "--fraction",
        "0.85",
        "--weights",
        "27GiB",
    ]);
    assert_eq!(none["fits"], false);
    assert!(
        notes(&none).contains("SGLang allows 48: 13.8 GiB a card"),
        "{}",
        notes(&none)
    );
}

#[test]
fn vllm_refuses_what_does_not_fit_and_names_the_largest() {
    let row = row(&[
        &model("qwen3-32b"),
        "--engine",
        "vllm",
        "--context",
        "128K",
        "--tp",
        "2",
        "--vram",
        "48GiB",
        "--fraction",
        "0.9",
        "--weights",
        "31GiB",
    ]);
    // 12.2 GiB at 128 KiB a token.
    assert_eq!(row["fits"], false);
    let words = notes(&row);
    assert!(words.contains("vLLM refuses to start"), "{words}");
    assert!(
        words.contains("largest context for one request: 99,936"),
        "{words}"
    );
}

#[test]
fn every_slot_of_llama_cpp_is_taken_at_start() {
    let with = |seqs: &str, context: &str| {
        row(&[
            &model("qwen3-0.6b"),
            "--engine",
            "llamacpp",
            "--context",
            context,
            "--seqs",
            seqs,
            "--vram",
            "16GiB",
            "--weights",
            "1GiB",
        ])
    };
    assert_eq!(with("4", "32K")["kv_llamacpp_bytes"], 4 * 3_758_096_384u64);
    assert_eq!(with("4", "32K")["fits"], true);
    assert_eq!(with("4", "64K")["fits"], false);
    assert_eq!(with("1", "64K")["fits"], true);
    assert!(notes(&with("4", "32K")).contains("4 x 32,768 = 131,072 cells"));
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
