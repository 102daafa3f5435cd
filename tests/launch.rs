//! `vramp launch`, the real program on files of every form.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::place::Place;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/launch")
        .join(name)
}

fn launch(place: &Place, arguments: &[&str]) -> Output {
    place.run(&[&["launch"], arguments].concat())
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The folder of a test with these files.
fn with(files: &[(&str, &str)]) -> Place {
    let place = Place::new();
    for (name, text) in files {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    place
}

fn at(place: &Place, name: &str) -> String {
    place.path().join(name).to_string_lossy().into_owned()
}

#[track_caller]
fn show(place: &Place, arguments: &[&str]) -> Value {
    let output = launch(place, &[&["show"], arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Sets on the file `name`; the changed text.
#[track_caller]
fn set(place: &Place, name: &str, more: &[&str]) -> String {
    let file = at(place, name);
    let output = launch(place, &[&["set", &file], more, &["--stdout"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    out(&output)
}

/// Case, arguments, the file that changes, and what it becomes.
const CASES: [(&str, &[&str], &str, &str); 9] = [
    ("01.service", &["65536"], "01.service", "01.after.service"),
    ("02.service", &["131072"], "02.service", "02.after.service"),
    (
        "03.service",
        &["65536"],
        "03.default.env",
        "03.default.after.env",
    ),
    (
        "03.default.env",
        &["64K", "--engine", "llama.cpp"],
        "03.default.env",
        "03.default.after.env",
    ),
    ("04.service", &["65536"], "04.service", "04.after.service"),
    ("05.sh", &["65536", "--per-request"], "05.sh", "05.after.sh"),
    (
        "05.sh",
        &["262144", "--engine", "llamacpp"],
        "05.sh",
        "05.after.sh",
    ),
    (
        "06.compose.yaml",
        &["131072", "--service", "llm"],
        "06.compose.yaml",
        "06.compose.after.yaml",
    ),
    (
        "07.service",
        &["65536", "--engine", "sglang"],
        "07.service",
        "07.after.service",
    ),
];

#[test]
fn every_case_changes_by_its_digits_alone() {
    for (name, arguments, changed, after) in CASES {
        let place = Place::new();
        let expected = fs::read(fixture(after)).unwrap();
        let mut files = vec![name, changed];
        files.dedup();
        for file in &files {
            fs::copy(fixture(file), place.path().join(file)).unwrap();
        }
        let file = at(&place, name);
        let map = format!("/etc/default/llm={}", at(&place, "03.default.env"));
        let all = [&["set", file.as_str()], arguments, &["--map", map.as_str()]].concat();
        let output = launch(&place, &[&all[..], &["--stdout"]].concat());
        assert_eq!(output.status.code(), Some(0), "{name}: {}", err(&output));
        assert_eq!(output.stdout, expected, "{name}");
        // Without --write nothing is written; with it the one file is, and a second time nothing changes.
        assert_eq!(launch(&place, &all).status.code(), Some(0));
        for file in &files {
            assert_eq!(
                fs::read(place.path().join(file)).unwrap(),
                fs::read(fixture(file)).unwrap(),
                "{name}"
            );
        }
        for _ in 0..2 {
            let output = launch(&place, &[&all[..], &["--write"]].concat());
            assert_eq!(output.status.code(), Some(0), "{name}: {}", err(&output));
            for file in &files {
                let is = fs::read(place.path().join(file)).unwrap();
                let unchanged = fs::read(fixture(file)).unwrap();
                let wanted = if *file == changed {
                    &expected
                } else {
                    &unchanged
                };
                assert_eq!(&is, wanted, "{name}: {file}");
            }
        }
        let backups: Vec<PathBuf> = fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "bak"))
            .collect();
        assert_eq!(backups.len(), 1, "{name}: {backups:?}");
        assert_eq!(
            fs::read(&backups[0]).unwrap(),
            fs::read(fixture(changed)).unwrap()
        );
    }
}

#[test]
fn what_the_cases_say_of_themselves() {
    let place = Place::new();
    let path = |name: &str| fixture(name).to_string_lossy().into_owned();
    let server = |arguments: &[&str]| show(&place, arguments)["servers"][0].clone();
    let short = server(&[&path("04.service")]);
    assert_eq!(short["value"], 32_000);
    assert_eq!(short["found"][0]["text"], "32k");
    let total = server(&[&path("05.sh")]);
    assert_eq!(total["engine"], "llamacpp");
    assert_eq!(total["meaning"], "total");
    assert_eq!(total["slots"], 4);
    assert_eq!(total["value"], 131_072);
    assert_eq!(total["context_per_request"], 32_768);
    let twice = server(&[&path("07.service")]);
    assert_eq!(twice["context_per_request"], 49_152);
    assert!(twice["notes"][0].as_str().unwrap().contains("duplicate"));
    let map = format!("/etc/default/llm={}", path("03.default.env"));
    let variable = server(&[&path("03.service"), "--map", &map]);
    assert_eq!(variable["found"][0]["variable"], "CTX");
    assert_eq!(variable["found"][0]["file"], path("03.default.env"));
    let named = server(&[&path("06.compose.yaml"), "--service", "embed"]);
    assert_eq!(named["line"], 20);
    let words = launch(&place, &["show", &path("05.sh")]);
    assert!(out(&words).contains("32,768 tokens a request: 131,072 in all over 4 slots"));
}

#[test]
fn a_written_file_keeps_mode_and_link() {
    let place = with(&[("real/llm.env", "TOKEN=secret\nLLAMA_ARG_CTX_SIZE=4096\n")]);
    let real = place.path().join("real/llm.env");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, place.path().join("llm.env")).unwrap();
    let output = launch(&place, &["set", &at(&place, "llm.env"), "8K", "--write"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(text.contains("8,192 tokens a request"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    assert!(
        fs::symlink_metadata(place.path().join("llm.env"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        fs::read_to_string(&real).unwrap(),
        "TOKEN=secret\nLLAMA_ARG_CTX_SIZE=8192\n"
    );
    let line = text
        .lines()
        .find(|line| line.starts_with("backup: "))
        .unwrap();
    let backup = PathBuf::from(line.trim_start_matches("backup: "));
    for path in [&real, &backup] {
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }
    assert!(!out(&launch(&place, &["show", &at(&place, "llm.env"), "--json"])).contains("secret"));
}

#[test]
fn exit_codes_and_reasons() {
    let two = "services:\n  a:\n    image: vllm/vllm-openai\n    command: --max-model-len 1\n  b:\n    image: vllm/vllm-openai\n    command: --max-model-len 2\n";
    let place = with(&[
        ("none.service", "[Service]\nExecStart=/bin/sleep 5\n"),
        ("two.yaml", two),
        ("bad.yaml", "services:\n  a: 'open\n"),
        (
            "var.service",
            "[Service]\nExecStart=/x/llama-server -c ${CTX}\n",
        ),
    ]);
    let run = |arguments: &[&str]| {
        let file = at(&place, arguments[1]);
        let all = [&[arguments[0], file.as_str()], &arguments[2..]].concat();
        let output = launch(&place, &all);
        (output.status.code().unwrap(), err(&output))
    };
    for (arguments, code, words) in [
        (&["show", "none.service"][..], 1, "no command here"),
        (&["set", "none.service", "5"], 1, "--engine"),
        (&["show", "gone.service"], 1, "cannot read"),
        (&["show", "bad.yaml"], 1, "line 2"),
        (&["set", "two.yaml", "5"], 2, "a (line 4), b (line 7)"),
        (&["set", "two.yaml", "5", "--service", "c"], 2, "\"c\""),
        (&["show", "two.yaml"], 0, ""),
        (&["set", "var.service", "5"], 1, "${CTX}"),
        (&["set", "two.yaml", "5x", "--service", "a"], 2, "5x"),
        (&["set", "two.yaml", "0", "--service", "a"], 2, "zero"),
        (
            &["set", "two.yaml", "5", "--engine", "x"],
            2,
            "unknown engine",
        ),
        (
            &["set", "two.yaml", "5", "--write", "--stdout"],
            2,
            "cannot be used",
        ),
    ] {
        let (is, why) = run(arguments);
        assert_eq!(is, code, "{arguments:?}: {why}");
        assert!(why.contains(words), "{arguments:?}: {why}");
    }
    let output = launch(&place, &["show", &at(&place, "none.service"), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["servers"], serde_json::json!([]));
}

#[test]
fn what_stands_beside_a_file_counts() {
    let place = with(&[
        ("llm.service", "[Service]\nExecStart=/x/llama-server -c 1\n"),
        (
            "llm.service.d/10.conf",
            "[Service]\nExecStart=\nExecStart=/x/llama-server -c 2\n",
        ),
        (
            "llm.service.d/20.conf",
            "[Service]\nEnvironmentFile=/etc/llm\nExecStart=\nExecStart=/x/llama-server -c ${CTX}\n",
        ),
        (
            "llm.service.d/30.conf.off",
            "[Service]\nExecStart=\nExecStart=/x/llama-server -c 3\n",
        ),
        ("root/etc/llm", "CTX=4096\n"),
        (
            "compose.yaml",
            "services:\n  a:\n    image: vllm/vllm-openai\n    command: --max-model-len ${CTX:-1}\n",
        ),
        (".env", "CTX=4096\n"),
        (
            "start.sh",
            "#!/bin/sh\n. ./vars.env\nexec vllm serve m --max-model-len $CTX\n",
        ),
        ("vars.env", "CTX=4096\n"),
        ("other.service", "[Service]\nExecStart=/opt/start.sh\n"),
        (
            "root/opt/start.sh",
            "#!/bin/sh\nexec vllm serve m --max-model-len 4096\n",
        ),
    ]);
    let root = at(&place, "root");
    assert_eq!(
        set(&place, "llm.service", &["8K", "--root", &root]),
        "CTX=8192\n"
    );
    assert_eq!(set(&place, "compose.yaml", &["8K"]), "CTX=8192\n");
    assert_eq!(set(&place, "start.sh", &["8K"]), "CTX=8192\n");
    assert_eq!(
        set(&place, "other.service", &["8K", "--root", &root]),
        "#!/bin/sh\nexec vllm serve m --max-model-len 8192\n"
    );
    fs::write(
        place.path().join("compose.override.yaml"),
        "services:\n  a:\n    command: --max-model-len 7\n",
    )
    .unwrap();
    assert!(
        set(&place, "compose.yaml", &["8K"])
            .starts_with("services:\n  a:\n    command: --max-model-len 8192")
    );
}

#[test]
fn a_profile_of_our_own() {
    let text = "[profile.a]\nurl = \"http://h:1\"\nproduction = \"16K\" # kept\n[profile.a.process]\nargv = [\"llama-server\", \"-c\", \"{context_total}\", \"-np\", \"2\"]\nslots = 2\n[profile.b]\nurl = \"http://h:2\"\n[profile.b.process]\nargv = [\n  \"vllm\", \"serve\", \"m\",\n  '--max-model-len=4096', # tokens\n]\n";
    let place = with(&[("vramp.toml", text)]);
    let a = set(&place, "vramp.toml", &["32K", "--service", "a"]);
    assert_eq!(a, text.replace("16K", "32768"));
    let b = set(&place, "vramp.toml", &["32K", "--service", "b"]);
    assert_eq!(b, text.replace("4096", "32768"));
    let shown = show(&place, &[&at(&place, "vramp.toml"), "--service", "a"]);
    assert_eq!(shown["servers"][0]["context_per_request"], 16_384);
}

#[test]
fn standard_input_and_the_words_of_a_process() {
    let place = Place::new();
    let mut child = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args(["launch", "set", "-", "8K", "--stdout", "--as", "script"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"llama-server -c 4096").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"llama-server -c 8192");
    let words = "/x/llama-server|-c|4096|-np|2|".replace('|', "\0");
    let place = with(&[("cmdline", &words)]);
    let shown = show(&place, &[&at(&place, "cmdline")]);
    assert_eq!(shown["form"], "argv");
    assert_eq!(shown["servers"][0]["context_per_request"], 2048);
}
