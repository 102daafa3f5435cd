//! `vramp gpus` against a stand-in for the driver's library, `nvidia-smi` on the same one, a DCGM exporter's page, and a kernel's `/sys`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/nvml.rs"]
mod stub;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use stub::{Driver, shipped};

/// What a run of the command said.
struct Said {
    cards: Value,
    stderr: String,
}

fn run(driver: Option<&Driver>, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramp"));
    command.arg("gpus").args(args);
    let absent = PathBuf::from("libvramp-has-no-such-driver.so.1");
    let library = driver.map_or(absent, Driver::library);
    command.env("VRAMP_NVML_LIB", &library);
    // nvidia-smi's stand-in lies beside the library that it asks.
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml-stub");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", stand_in.display()));
    command.env("NVML_STUB_LIB", &library);
    command.output().unwrap()
}

fn said(driver: Option<&Driver>, args: &[&str]) -> Said {
    let output = run(driver, args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    Said {
        cards: serde_json::from_slice(&output.stdout).unwrap(),
        stderr,
    }
}

#[test]
fn every_key_of_a_card_that_works() {
    let Some(driver) = Driver::new(&shipped("two-h100.state"), &[]) else {
        return;
    };
    let seen = said(Some(&driver), &["--source", "nvml", "--json"]);
    assert_eq!(seen.stderr, "");
    assert_eq!(seen.cards.as_array().unwrap().len(), 2);
    let card = &seen.cards[0];
    for (key, value) in [
        ("index", Value::from(0)),
        ("uuid", "GPU-c0c00000-5b1e-4c0d-9a00-000000000000".into()),
        ("name", "H100 80GB HBM3".into()),
        ("state", "ok".into()),
        ("reasons", Value::Array(vec![])),
        ("total_mib", 81559.into()),
        ("used_mib", 72192.into()),
        ("free_mib", 8815.into()),
        ("reserved_mib", 552.into()),
        ("util_pct", 97.into()),
        ("mem_util_pct", 61.into()),
        ("temp_c", 68.into()),
        ("power_w", 642.0.into()),
        ("power_limit_w", 700.0.into()),
        ("sm_mhz", 1755.into()),
        ("throttle", vec!["power cap"].into()),
        ("nvlink_active", 18.into()),
        ("xid", Value::Null),
        ("memory_of", "card".into()),
        ("simulated", false.into()),
    ] {
        assert_eq!(card[key], value, "{key}");
    }
    let process = &card["processes"][0];
    assert_eq!(
        (&process["pid"], &process["used_mib"]),
        (&1.into(), &71475.into())
    );
    assert_eq!(process["local"], Value::Bool(true));
    assert_eq!(seen.cards[1]["processes"], Value::Array(vec![]));
}

#[test]
fn what_is_broken_is_null_here_and_told_there() {
    let state = shipped("faults.state") + "gpu2.sleep_ms = 400\ngpu3.xid = 48\n";
    let Some(driver) = Driver::new(&state, &[]) else {
        return;
    };
    let seen = said(Some(&driver), &["--source", "nvml", "--json"]);
    let [lost, no_util, slow, hidden] = seen.cards.as_array().unwrap().as_slice() else {
        panic!("four cards: {}", seen.cards)
    };
    assert_eq!(lost["state"], "lost");
    for key in [
        "total_mib",
        "used_mib",
        "util_pct",
        "temp_c",
        "power_w",
        "throttle",
        "processes",
    ] {
        assert_eq!(lost[key], Value::Null, "{key}");
    }
    assert_eq!(no_util["state"], "ok");
    assert_eq!(no_util["util_pct"], Value::Null);
    assert_eq!(no_util["used_mib"], 20480);
    assert_eq!(no_util["reasons"][0], "utilisation: not supported");
    // Several seconds for one card make none of them old.
    for card in [no_util, slow, hidden] {
        assert_eq!(
            (&card["state"], &card["age_ms"]),
            (&"ok".into(), &Value::Null)
        );
    }
    assert_eq!(slow["used_mib"], 20480);
    assert_eq!(hidden["processes"], Value::Null);
    assert_eq!(hidden["throttle"], Value::from(vec!["hardware thermal"]));
    assert_eq!(
        (&hidden["fan_pct"], &hidden["xid"]),
        (&100.into(), &48.into())
    );
    assert!(
        seen.stderr.contains("card 0") && seen.stderr.contains("lost"),
        "{}",
        seen.stderr
    );
    assert!(seen.stderr.contains("processes: denied"), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("Xid 48 (uncorrectable memory error)"),
        "{}",
        seen.stderr
    );
    assert!(
        !seen.stderr.contains("card 1"),
        "what a card has not is not broken: {}",
        seen.stderr
    );
}

#[test]
fn no_card_and_no_driver_are_answers() {
    let Some(driver) = Driver::new("count = 0", &[]) else {
        return;
    };
    let seen = said(Some(&driver), &["--json"]);
    assert_eq!(seen.cards, Value::Array(vec![]));
    assert!(seen.stderr.contains("sees no card"), "{}", seen.stderr);
    driver.set("init = LIB_RM_VERSION_MISMATCH");
    for source in ["nvml", "nvidia-smi"] {
        let seen = said(Some(&driver), &["--source", source, "--json"]);
        assert_eq!(seen.cards, Value::Array(vec![]));
        assert!(
            seen.stderr.contains("was updated"),
            "{source}: {}",
            seen.stderr
        );
    }
    let seen = said(None, &["--source", "nvml", "--json"]);
    assert!(seen.stderr.contains("no NVIDIA driver"), "{}", seen.stderr);
}

#[test]
fn a_process_of_another_namespace_is_not_local() {
    let Some(driver) = Driver::new("gpu0.procs = 4194999:3G:C, 1:1G:C\n", &[]) else {
        return;
    };
    let seen = said(Some(&driver), &["--source", "nvml", "--json"]);
    let listed = &seen.cards[0]["processes"];
    assert_eq!(listed[0]["local"], Value::Bool(true));
    assert_eq!(listed[1]["local"], Value::Bool(false));
    assert_eq!(
        (&listed[1]["name"], &listed[1]["used_mib"]),
        (&Value::Null, &3072.into())
    );
}

#[test]
fn instances_and_shared_memory_are_labelled() {
    let Some(driver) = Driver::new(&shipped("mig.state"), &[]) else {
        return;
    };
    let seen = said(Some(&driver), &["--json"]);
    assert_eq!(seen.cards.as_array().unwrap().len(), 3);
    assert_eq!(seen.cards[0]["mig"], Value::Bool(true));
    let reason = seen.cards[0]["reasons"][0].as_str().unwrap();
    assert!(reason.contains("MIG"), "{reason}");
    assert_eq!(seen.cards[1]["mig_parent"], 0);
    assert_eq!(seen.cards[1]["used_mib"], 31232);
    driver.set(&shipped("unified-memory.state"));
    let seen = said(Some(&driver), &["--json"]);
    assert_eq!(seen.cards[0]["memory_of"], "host");
    assert!(seen.cards[0]["total_mib"].as_u64().unwrap() > 0);
}

#[test]
fn nvidia_smi_says_the_same_numbers() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("LEFT OUT: nvidia-smi's stand-in: there is no python3");
        return;
    }
    let state = shipped("two-h100.state") + "gpu1.util = 3\ngpu1.procs = 1:5M:C\n";
    let Some(driver) = Driver::new(&state, &[]) else {
        return;
    };
    let by_library = said(Some(&driver), &["--source", "nvml", "--json"]);
    let by_tool = said(Some(&driver), &["--source", "nvidia-smi", "--json"]);
    for card in 0..2 {
        let (library, tool) = (&by_library.cards[card], &by_tool.cards[card]);
        for key in [
            "index",
            "uuid",
            "name",
            "state",
            "total_mib",
            "used_mib",
            "free_mib",
            "reserved_mib",
            "util_pct",
            "mem_util_pct",
            "temp_c",
            "power_w",
            "power_limit_w",
            "sm_mhz",
            "mem_mhz",
            "throttle",
        ] {
            assert_eq!(library[key], tool[key], "{key} of card {card}");
        }
        let process = |from: &Value| {
            (
                from["processes"][0]["pid"].clone(),
                from["processes"][0]["used_mib"].clone(),
            )
        };
        assert_eq!(process(library), process(tool));
    }
}

#[test]
fn a_table_for_people() {
    let Some(driver) = Driver::new(&shipped("two-h100.state"), &[]) else {
        return;
    };
    let output = run(Some(&driver), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "NVML 580.95.05");
    for part in [
        "H100 80GB HBM3",
        "97 %",
        "70.5/",
        "68 C",
        "642/700 W",
        "power cap",
    ] {
        assert!(lines[1].contains(part), "{part}: {}", lines[1]);
    }
    assert!(
        lines[2].contains("1755 MHz") && lines[2].contains("NVLink 18 of 18 up"),
        "{text}"
    );
    assert!(lines[3].contains("69.8 GiB"), "{text}");
}

#[test]
fn watching_shows_what_changes_and_a_call_that_hangs_grows_old() {
    use std::io::{BufRead, BufReader};
    let Some(driver) = Driver::new("gpu0.mem.used = 1G\n", &[]) else {
        return;
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_vramp"))
        .args(["gpus", "--source", "nvml", "--watch", "--json"])
        .env("VRAMP_NVML_LIB", driver.library())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |wanted: &dyn Fn(&Value) -> bool| {
        let began = Instant::now();
        loop {
            let line = lines.next().unwrap().unwrap();
            let cards: Value = serde_json::from_str(&line).unwrap();
            if wanted(&cards[0]) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{cards}");
        }
    };
    until(&|card| card["used_mib"] == 1024);
    driver.set("gpu0.mem.used = 2G\n");
    until(&|card| card["used_mib"] == 2048);
    driver.set("gpu0.mem.used = 2G\ngpu0.mem.sleep_ms = 5000\n");
    until(&|card| card["state"] == "stale" && card["age_ms"].as_u64() > Some(3000));
    driver.set("gpu0.mem.used = 3G\n");
    until(&|card| card["state"] == "ok" && card["used_mib"] == 3072);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn wrong_use_says_what_is_right() {
    for (args, part) in [
        (&["--source", "amd"][..], "dcgm:URL"),
        (&["--source", "dcgm:node"], "http://"),
        (&["--source", "nvml", "--host", "gpu-7"], "nvidia-smi"),
        (&["--host", "a b"], "HOST"),
    ] {
        let output = run(None, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(part), "{args:?}: {text}");
    }
}
