use super::*;
use crate::bench::point::{RequestRecord, Validity};
use crate::store::{Store, fixture};

fn run(store: &mut Store, points: &[Point]) -> RunReport {
    let id = fixture::begin(store, None);
    for point in points {
        store.add_point(id, point).unwrap();
    }
    store.end_run(id, Ending::Finished, 99).unwrap();
    RunReport::read(store, id).unwrap().unwrap()
}

fn requests(n: u32, ttft_ms: f64, e2e_ms: f64) -> Vec<RequestRecord> {
    (0..n)
        .map(|i| {
            // Within 2 % of what is stated, evenly.
            let off = 1.0 + 0.04 * (f64::from(i % 11) / 10.0 - 0.5);
            RequestRecord {
                ttft_ms: Some(ttft_ms * off),
                e2e_ms: Some(e2e_ms * off),
                tpot_ms: Some(10.0 * off),
                output_tokens: Some(500),
                ..RequestRecord::default()
            }
        })
        .collect()
}

fn point(ttft_ms: f64, e2e_ms: f64, output_tok_s: f64) -> Point {
    Point {
        requests: requests(40, ttft_ms, e2e_ms),
        output_tok_s: Some(output_tok_s),
        ..fixture::point(8, Validity::Valid)
    }
}

#[test]
fn the_document_has_the_promised_form() {
    let (_dir, path) = fixture::place();
    let mut store = Store::open(&path).unwrap();
    let run = run(&mut store, &[fixture::point(8, Validity::Valid)]);
    let json = serde_json::to_value(document(&run)).unwrap();
    for path in [
        "/tool/name",
        "/tool/version",
        "/server/engine",
        "/server/version",
        "/server/model",
        "/server/context",
        "/points/0/concurrency",
        "/points/0/rate",
        "/points/0/isl",
        "/points/0/osl",
        "/points/0/requests/total",
        "/points/0/requests/by_kind/status_503",
        "/points/0/tokens_source",
        "/points/0/ttft_ms/p99",
        "/points/0/first_answer_ms/n",
        "/points/0/chunk_gap_ms/stalls",
        "/points/0/chunk_gap_ms/p50",
        "/points/0/queue_ms/mean",
        "/points/0/goodput",
        "/points/0/client/cpu_share",
        "/points/0/server_side/running_max",
        "/points/0/gpus",
    ] {
        assert!(json.pointer(path).is_some(), "{path}: {json:#}");
    }
    assert_eq!(json["simulated"], false);
    assert_eq!(json["partial"], false);
    assert_eq!(json["points"][0]["validity"], "valid");
    assert_eq!(json["points"][0]["ttft_ms"]["p99"], serde_json::Value::Null);
}

#[test]
fn tables_have_a_line_for_each_point() {
    let (_dir, path) = fixture::place();
    let mut store = Store::open(&path).unwrap();
    let mut void = fixture::point(8, Validity::Void);
    void.reasons[0].text = "=HYPERLINK(\"x\"), cached".into();
    let run = run(&mut store, &[fixture::point(1, Validity::Valid), void]);
    let csv = csv(&run);
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(lines[0].starts_with("run,plan,engine,") && lines[0].contains(",ttft_ms_p99,"));
    assert!(
        lines[2].contains(",\"'=HYPERLINK(\"\"x\"\"), cached\","),
        "{}",
        lines[2]
    );
    let table = table(&run);
    assert!(
        table.contains("73.5") && table.contains("8 at once: void: =HYPERLINK"),
        "{table}"
    );
    let shown = table.lines().nth(3).unwrap();
    assert!(
        !shown.contains("73.5"),
        "the speed of a void point is not offered: {shown}"
    );
}

#[test]
fn a_change_is_better_worse_or_not_shown() {
    let (_dir, path) = fixture::place();
    let mut store = Store::open(&path).unwrap();
    let a = run(&mut store, &[point(100.0, 5000.0, 800.0)]);
    let b = run(&mut store, &[point(150.0, 4000.0, 1000.0)]);
    let found = compare(&a, &b, |id| store.requests(id)).unwrap();
    let verdict = |found: &Comparison, name: &str| {
        let figures = &found.cells[0].figures;
        let figure = figures.iter().find(|f| f.name == name).unwrap().clone();
        assert!(
            figure.low <= figure.change && figure.change <= figure.high,
            "{figure:?}"
        );
        figure.verdict
    };
    assert_eq!(verdict(&found, "TTFT median"), compare::Verdict::Worse);
    assert_eq!(
        verdict(&found, "end to end median"),
        compare::Verdict::Better
    );
    assert_eq!(verdict(&found, "output"), compare::Verdict::Better);
    assert_eq!(
        verdict(&found, "TPOT median"),
        compare::Verdict::NoDifferenceShown
    );
    assert!(found.text().contains("+50.0 %"), "{}", found.text());
    let same = compare(&a, &a, |id| store.requests(id)).unwrap();
    assert_eq!(
        verdict(&same, "output"),
        compare::Verdict::NoDifferenceShown
    );
}

#[test]
fn void_points_and_few_requests_are_not_judged() {
    let (_dir, path) = fixture::place();
    let mut store = Store::open(&path).unwrap();
    let a = run(
        &mut store,
        &[
            fixture::point(8, Validity::Valid),
            fixture::point(2, Validity::Valid),
        ],
    );
    let b = run(
        &mut store,
        &[
            fixture::point(8, Validity::Void),
            fixture::point(2, Validity::Valid),
        ],
    );
    let found = compare(&a, &b, |id| store.requests(id)).unwrap();
    assert_eq!(
        found.cells[0].void.as_deref(),
        Some("the second is void: 1 of 2 failed")
    );
    assert!(found.cells[0].figures.is_empty());
    assert!(
        found.cells[1]
            .figures
            .iter()
            .all(|f| f.verdict == compare::Verdict::TooFew)
    );
}

#[test]
fn vllms_names_are_kept() {
    let (_dir, path) = fixture::place();
    let mut store = Store::open(&path).unwrap();
    let run = run(&mut store, &[point(100.0, 5000.0, 800.0)]);
    let requests = store.requests(run.ids[0]).unwrap();
    let json = vllm(&run, &run.points[0], &requests);
    assert_eq!(json["request_rate"], "inf");
    assert_eq!(json["max_concurrency"], 8);
    assert_eq!(json["output_throughput"], 800.0);
    assert_eq!(json["ttfts"].as_array().unwrap().len(), 40);
    assert!((json["ttfts"][5].as_f64().unwrap() - 0.1).abs() < 1e-9);
    assert!(json["std_e2el_ms"].as_f64().unwrap() > 1.0);
    for name in [
        "mean_ttft_ms",
        "median_tpot_ms",
        "p99_itl_ms",
        "completed",
        "duration",
        "date",
    ] {
        assert!(json.get(name).is_some(), "{name}");
    }
}
