//! `vramp estimate` as a program, and its answers.

// Every test binary uses a part of this.
#![allow(dead_code)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vramp"))
        .arg("estimate")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The rows of the answer.
pub fn rows(args: &[&str]) -> Vec<Value> {
    let mut all = args.to_vec();
    all.push("--json");
    let output = run(&all);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
    serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap()
}

pub fn row(args: &[&str]) -> Value {
    let mut rows = rows(args);
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// `code` with words on standard error and nothing on standard output.
pub fn refuses(args: &[&str], code: i32, words: &[&str]) {
    let output = run(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    for word in words {
        assert!(said.contains(word), "{word:?} in {said:?}");
    }
}

pub fn config(name: &str) -> String {
    fixtures().join("config").join(name).display().to_string()
}

pub fn model(name: &str) -> String {
    let file = format!("{name}.json");
    fixtures()
        .join("kv/configs")
        .join(file)
        .display()
        .to_string()
}

pub fn notes(row: &Value) -> String {
    row["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}
