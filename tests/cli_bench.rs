//! `vramp bench` and `vramp runs`, the real program against `vramp sim` on an exact schedule.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use serde_json::Value;
use support::bench::{Rig, err, out, signal};
use support::place::Place;
use support::{http, secs, until};

const FAST: [&str; 4] = ["--ttft-ms", "30", "--itl-ms", "2"];

#[test]
fn one_document_says_what_the_server_knows_it_sent() {
    let rig = Rig::new(&[
        "--ttft-ms",
        "60",
        "--itl-ms",
        "4",
        "--tokens-per-chunk",
        "4",
    ]);
    let output = rig.bench(&[
        "--input",
        "300",
        "--output",
        "61",
        "--concurrency",
        "1,4",
        "--requests",
        "40",
        "--json",
        "-",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let json: Value = serde_json::from_str(&out(&output)).expect("one document and nothing else");
    assert_eq!(json["tool"]["name"], "vramp");
    assert_eq!(json["server"]["engine"], "sglang");
    assert_eq!(json["server"]["context"], 32_768);
    assert_eq!(
        (&json["simulated"], &json["partial"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "the levels that were named and no more");
    let stats = rig.stats();
    let sent = stats["ttft_ms"]["mean"].as_f64().unwrap();
    for point in points {
        // Tests share the machine: data that waited for the client is no surprise here.
        assert_ne!(point["validity"], "void", "{point:#}");
        assert_eq!((&point["isl"], &point["osl"]), (&300.into(), &61.into()));
        assert_eq!(point["requests"]["ok"], 40);
        assert_eq!(point["output_tokens"], 40 * 61);
        assert_eq!(point["input_tokens"], 40 * 300);
        assert_eq!(point["tokens_source"], "usage");
        let per_chunk = point["tokens_per_chunk"].as_f64().unwrap();
        assert!((per_chunk - 61.0 / 16.0).abs() < 0.1, "{per_chunk}");
        let ttft = point["ttft_ms"]["mean"].as_f64().unwrap();
        assert!((ttft - sent).abs() < 10.0, "{ttft} for {sent}");
        let (itl, tpot, gap) = (&point["itl_ms"], &point["tpot_ms"], &point["chunk_gap_ms"]);
        for (figure, wanted) in [
            (&itl["mean"], 4.0),
            (&tpot["p50"], 4.0),
            (&gap["p50"], 16.0),
        ] {
            let figure = figure.as_f64().unwrap();
            assert!((figure / wanted - 1.0).abs() < 0.1, "{figure} for {wanted}");
        }
        assert!(point["ttft_ms"]["p90"].is_number());
        assert_eq!(point["ttft_ms"]["p95"], Value::Null, "40 samples have none");
        assert_eq!(point["ttft_ms"]["p99"], Value::Null);
        assert_eq!(point["requests"]["failed"], 0);
    }
    assert!(
        err(&output).contains("2/2"),
        "progress in plain lines: {}",
        err(&output)
    );
    assert!(!err(&output).contains('\r'));
}

#[test]
fn failures_and_stalls_are_told_and_decide_the_exit_code() {
    let rig = Rig::new(&[&FAST[..], &["--fail-every", "1"]].concat());
    let output = rig.bench(&[
        "--input",
        "100",
        "--output",
        "10",
        "--concurrency",
        "2",
        "--requests",
        "4",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_str(&out(&output)).unwrap();
    let requests = &json["points"][0]["requests"];
    assert_eq!(requests["ok"], 0);
    assert!(
        requests["by_kind"]["status_500"].as_u64() >= Some(1),
        "{requests}"
    );
    assert!(
        requests["messages"]["status_500"]
            .as_str()
            .unwrap()
            .contains("CUDA out of memory")
    );
    assert_eq!(json["points"][0]["validity"], "void");
    drop(rig);

    let rig = Rig::new(&[&FAST[..], &["--stall-every", "4", "--stall-ms", "900"]].concat());
    let output = rig.bench(&[
        "--input",
        "100",
        "--output",
        "50",
        "--concurrency",
        "4",
        "--requests",
        "16",
        "--json",
    ]);
    let json: Value = serde_json::from_str(&out(&output)).unwrap();
    let gap = &json["points"][0]["chunk_gap_ms"];
    let stalled = gap["stalls"].as_u64().unwrap();
    assert!((3..=5).contains(&stalled), "{gap}");
    assert!(gap["max"].as_f64().unwrap() > 890.0);
}

#[test]
fn wrong_use_is_told_from_failure() {
    let place = Place::new();
    for (arguments, words) in [
        (&["bench"][..], "there is no profile to measure"),
        (&["bench", "--url", "ftp://x"], "only http and https"),
        (&["bench", "--url", "1", "--input", "12x"], "12x"),
        (&["bench", "--url", "1", "--input", "0"], "it is zero"),
        (&["bench", "--url", "1", "--rate", "0"], "requests a second"),
        (
            &["bench", "--url", "1", "--slo", "e2e=1s"],
            "ttft=1s,tpot=50ms",
        ),
        (&["bench", "--url", "1", "--duration", "soon"], "30s"),
        (
            &["bench", "fast", "--url", "1"],
            "there is no plan \"fast\"",
        ),
        (
            &["bench", "--url", "1", "--json", "--csv", "-"],
            "give one of them a file",
        ),
        (&["bench", "--url", "1", "--html", "-"], "give it a file"),
        (
            &["bench", "--url", "1", "--rate", "1", "--concurrency", "1,2"],
            "has one value",
        ),
        (
            &["bench", "--url", "1", "--key-env", "VRAMP_NO_SUCH"],
            "VRAMP_NO_SUCH",
        ),
        (&["bench", "--url", "1", "--resume"], "no unfinished run"),
        (&["bench", "--resume=7"], "run 7 cannot be gone on with"),
        (&["runs", "show", "7"], "there is no run \"7\""),
        (&["runs", "-n", "0"], "0 is not in 1.."),
        (
            &["attach", "1", "--key-env", "VRAMP_NO_SUCH"],
            "needs a terminal",
        ),
    ] {
        let output = place.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            err(&output)
        );
        assert!(
            err(&output).contains(words),
            "{arguments:?}: {}",
            err(&output)
        );
        assert_eq!(out(&output), "", "{arguments:?}");
    }
    let port = http::free_port().to_string();
    let output = place.run(&["bench", "--url", &port, "--input", "10"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("connection refused"),
        "{}",
        err(&output)
    );
    let file = ["bench", "--url", &port, "--json", "/nowhere/x.json"];
    assert_ne!(place.run(&file).status.code(), Some(0));
}

#[test]
fn a_record_that_cannot_be_read_is_no_empty_record() {
    let place = Place::new();
    let data = place.path().join("data");
    std::fs::remove_dir(&data).unwrap();
    std::fs::write(&data, "a file").unwrap();
    for what in ["runs", "decisions"] {
        let output = place.run(&[what]);
        assert_eq!(output.status.code(), Some(1), "{}", out(&output));
        assert!(
            err(&output).contains("cannot look for the record")
                && err(&output).contains("XDG_DATA_HOME"),
            "{}",
            err(&output)
        );
    }
}

#[test]
fn a_key_is_asked_for_in_words_that_fit() {
    let refusal = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: 42\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"Invalid API Key\"}}   ";
    let port = http::always(refusal).to_string();
    let output = Place::new().run(&["bench", "--url", &port, "--input", "10"]);
    assert_eq!(output.status.code(), Some(1));
    let said = err(&output);
    assert!(
        said.contains("401") && said.contains("Invalid API Key") && said.contains("--key-env NAME"),
        "{said}"
    );
    assert!(!said.contains("in the profile"), "there is none: {said}");
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let rig = Rig::new(&FAST);
    let child = rig.start(&[
        "--input",
        "100",
        "--output",
        "20",
        "--concurrency",
        "1,2",
        "--requests",
        "60",
        "--json",
        "-",
        "--save",
        "cut",
    ]);
    until("the second level runs", secs(60), || {
        (rig.stats()["done"].as_u64()? > 72).then_some(())
    });
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let json: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(json["partial"], true);
    assert_eq!(json["points"][0]["requests"]["total"], 60);
    assert_eq!(json["points"][0]["partial"], false);
    let cut = &json["points"][1];
    assert_eq!(cut["partial"], true, "{cut:#}");
    let there = cut["requests"]["ok"].as_u64().unwrap();
    assert!(there > 0 && there < 60);
    // Gone on with by its number alone, from where it was.
    let before = rig.stats()["streams"].as_u64().unwrap();
    let output = rig.place.run(&["bench", "--resume=1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let json: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(json["partial"], false);
    assert_eq!(json["points"].as_array().unwrap().len(), 2);
    assert_eq!(json["points"][1]["requests"]["total"], 60);
    assert_eq!(json["points"][1]["ttft_ms"]["n"], 60);
    let asked = rig.stats()["streams"].as_u64().unwrap() - before;
    assert!(
        asked < 60 - there + 15,
        "{asked} more for {there} that were there"
    );
}

#[test]
fn a_killed_run_goes_on_with_the_requests_that_are_there() {
    let rig = Rig::new(&FAST);
    let order = [
        "--input",
        "100",
        "--output",
        "20",
        "--concurrency",
        "1,3",
        "--requests",
        "60",
        "--json",
        "run.json",
    ];
    let mut child = rig.start(&order);
    until("the second level runs", secs(60), || {
        (rig.stats()["done"].as_u64()? > 85).then_some(())
    });
    signal(&child, Signal::KILL);
    let _ = child.wait();
    let file = rig.place.path().join("run.json");
    let read = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let json = read();
    assert_eq!(
        json["partial"], true,
        "what is there is on disk and says that it is not all"
    );
    assert_eq!(json["points"].as_array().unwrap().len(), 1);
    let before = rig.stats()["streams"].as_u64().unwrap();
    let resume: Vec<&str> = order.iter().copied().chain(["--resume"]).collect();
    let output = rig.bench(&resume);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let json = read();
    assert_eq!(json["partial"], false);
    assert_eq!(json["points"].as_array().unwrap().len(), 2);
    let point = &json["points"][1];
    assert_eq!(point["requests"]["total"], 60);
    assert_ne!(point["validity"], "void", "{point:#}");
    let reasons = point["reasons"].to_string();
    assert!(reasons.contains("measured in two parts"), "{reasons}");
    let asked = rig.stats()["streams"].as_u64().unwrap() - before;
    assert!(
        asked < 60,
        "{asked}: the first level was not asked again, the second only in part"
    );
    let output = rig.bench(&resume);
    assert_eq!(
        output.status.code(),
        Some(2),
        "a finished run is not gone on with"
    );
}

#[test]
fn two_programs_never_measure_one_run() {
    let rig = Rig::new(&FAST);
    let child = rig.start(&[
        "--input",
        "100",
        "--output",
        "20",
        "--concurrency",
        "1",
        "--requests",
        "500",
    ]);
    until("it runs", secs(60), || {
        (rig.stats()["done"].as_u64()? > 12).then_some(())
    });
    let output = rig.place.run(&["bench", "--resume=1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("by another vramp"),
        "{}",
        err(&output)
    );
    // As `timeout` sends it: to the process and to its group.
    signal(&child, Signal::TERM);
    std::thread::sleep(std::time::Duration::from_millis(5));
    signal(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert!(
        out(&output).contains("stopped: partial"),
        "{}",
        err(&output)
    );
    assert_eq!(output.status.code(), Some(130));
}

#[test]
fn runs_are_found_compared_and_handed_on() {
    let rig = Rig::new(&FAST);
    for (name, requests) in [("first", "40"), ("second", "44")] {
        let output = rig.bench(&[
            "--input",
            "100",
            "--output",
            "20",
            "--concurrency",
            "1,2",
            "--requests",
            requests,
            "--save",
            name,
            "--csv",
            "run.csv",
            "--html",
            "run.html",
            "--slo",
            "ttft=1s,tpot=50ms",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(
            out(&output).contains("output tok/s"),
            "a table: {}",
            out(&output)
        );
    }
    let list = rig.runs(&[]);
    assert!(
        list.contains("first") && list.contains("second") && list.contains("SIMULATED"),
        "{list}"
    );
    assert_eq!(list, rig.runs(&["list"]));
    let listed: Value = serde_json::from_str(&rig.runs(&["--json"])).unwrap();
    let second = &listed[0];
    assert_eq!(
        (&second["name"], &second["points"]),
        (&"second".into(), &2.into())
    );
    let figures = &second["figures"][1];
    assert_eq!(
        (&figures["concurrency"], &figures["isl"]),
        (&2.into(), &100.into())
    );
    for figure in ["output_tok_s", "decode_tok_s", "ttft_p50_ms", "tpot_p50_ms"] {
        assert!(
            figures[figure].as_f64().unwrap() > 0.0,
            "{figure}: {figures}"
        );
    }
    let shown = rig.runs(&["show", "second"]);
    assert!(
        shown.contains("run 2 \"second\"") && shown.contains("highest concurrency"),
        "{shown}"
    );
    let compared = rig.runs(&["compare", "first", "2"]);
    for words in [
        "run 1 -> run 2",
        "SIMULATED",
        "100 in, 20 out, 2 at once",
        "TPOT median",
        "95 %",
    ] {
        assert!(compared.contains(words), "{words}: {compared}");
    }
    let json: Value = serde_json::from_str(&rig.runs(&["compare", "1", "2", "--json"])).unwrap();
    let figure = &json["cells"][0]["figures"][0];
    assert!(figure["low"].as_f64() < figure["high"].as_f64(), "{figure}");
    let json: Value = serde_json::from_str(&rig.runs(&["export", "first"])).unwrap();
    assert_eq!(json["points"].as_array().unwrap().len(), 2);
    assert!(json["points"][0]["goodput"].as_f64().unwrap() > 1.0);
    let csv = rig.runs(&["export", "second", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 3);
    assert_eq!(
        csv,
        std::fs::read_to_string(rig.place.path().join("run.csv")).unwrap()
    );
    let vllm = rig.runs(&["export", "first", "--format", "vllm"]);
    let lines: Vec<Value> = vllm
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["max_concurrency"], 2);
    assert_eq!(lines[1]["ttfts"].as_array().unwrap().len(), 40);
    let page = std::fs::read_to_string(rig.place.path().join("run.html")).unwrap();
    for words in [
        "<svg",
        "prefers-color-scheme: dark",
        "SIMULATED",
        "application/json",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let outside = page
        .replace("http://www.w3.org/2000/svg", "")
        .replace(&format!("http://127.0.0.1:{}", rig.port), "");
    assert!(!outside.contains("http"), "it needs nothing from elsewhere");
}

#[test]
fn an_open_loop_keeps_its_rate_and_a_search_says_what_it_found() {
    let rig = Rig::new(&FAST);
    let output = rig.bench(&[
        "--input",
        "50",
        "--output",
        "10",
        "--rate",
        "40",
        "--arrivals",
        "constant",
        "--duration",
        "2s",
        "--save",
        "steady",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let json: Value = serde_json::from_str(&out(&output)).unwrap();
    let point = &json["points"][0];
    assert_eq!(
        (&point["rate"], &point["arrivals"]),
        (&40.0.into(), &"constant".into())
    );
    let sent = point["requests"]["total"].as_u64().unwrap();
    assert!((75..=82).contains(&sent), "{sent}");
    assert!(
        point["client_queue_ms"]["n"].as_u64() >= Some(75),
        "{point:#}"
    );
    // What waited in the client is on record with every request, and leaves it again as it came.
    let kept: Value = serde_json::from_str(&rig.runs(&["export", "steady"])).unwrap();
    assert_eq!(
        kept["points"][0]["client_queue_ms"],
        point["client_queue_ms"]
    );
    let csv = rig.runs(&["export", "steady", "--format", "csv"]);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let queue = names.iter().position(|n| n.starts_with("client_queue_ms"));
    assert!(values[queue.unwrap()].parse::<f64>().is_ok(), "{csv}");
    let store = vramp::store::Store::open(&rig.place.data().join("vramp.db")).unwrap();
    let queued: Vec<f64> = (store.requests(1).unwrap().iter())
        .map(|request| request.client_queue_ms.unwrap())
        .collect();
    assert_eq!(queued.len() as u64, sent);
    let most = queued.iter().copied().fold(0.0, f64::max);
    assert_eq!(Some(most), point["client_queue_ms"]["max"].as_f64());
    let output = rig.bench(&[
        "--input",
        "50",
        "--output",
        "10",
        "--requests",
        "8",
        "--slo",
        "ttft=1ms",
        "--json",
    ]);
    let json: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(json["points"][0]["concurrency"], 1, "{}", err(&output));
    assert_eq!(json["points"][0]["goodput"], 0.0);
    let found = json["findings"][0]["words"].to_string();
    assert!(found.contains("no concurrency measured keeps"), "{found}");
}

#[test]
fn the_profiles_plan_is_measured_without_an_address() {
    let rig = Rig::new(&FAST);
    rig.place.profile(&format!(
        "[profile.lab]\nurl = \"http://127.0.0.1:{}\"\n",
        rig.port
    ));
    let arguments = [
        "bench",
        "throughput",
        "--quick",
        "--output",
        "12",
        "--json",
        "-",
    ];
    let output = rig.place.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let json: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(json["run"]["plan"], "throughput");
    let levels: Vec<u64> = json["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["concurrency"].as_u64().unwrap())
        .collect();
    assert_eq!(levels, [1, 2, 4, 8, 16, 32, 64, 100]);
    let output = rig.place.run(&["bench", "long-context", "--quick"]);
    let said = err(&output);
    assert!(
        said.contains(
            "60,000 in + 200 out needs 60,200 tokens, the server serves 32,768: left out"
        ),
        "{said}"
    );
}

#[test]
fn a_terminal_gets_a_line_that_changes_and_then_the_table() {
    let rig = Rig::new(&FAST);
    let url = format!("127.0.0.1:{}", rig.port);
    let arguments = [
        "bench",
        "--url",
        &url,
        "--input",
        "100",
        "--output",
        "50",
        "--concurrency",
        "1",
        "--requests",
        "20",
    ];
    let mut term = rig.place.cockpit(&arguments, 90, 30);
    term.wait_for("[##", secs(30));
    assert!(term.screen().contains("tok/s"));
    let code = term.wait_exit(secs(30)).exit_code();
    let screen = term.screen();
    assert_eq!(code, 0, "{screen}");
    assert!(
        screen.contains("decode tok/s") && !screen.contains("[##"),
        "{screen}"
    );
    term.assert_restored();
}
