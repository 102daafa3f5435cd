//! What is asked of every real server, in order: one start serves them all, for a start takes a minute or two.

use crate::support::bench::Bench;
use crate::support::http;
use crate::support::place::Place;
use crate::support::secs;
use crate::support::server::Server;
use serde_json::Value;
use std::path::PathBuf;
use vramp::engine::{Endpoint, EngineError, Facts, Health, Kind, Load, detect};
use vramp::reading::Reading;

/// What is known of the server from its flags and its model.
pub struct Known {
    pub kind: Kind,
    pub version: &'static str,
    pub pool_tokens: u64,
    pub model_limit: Option<u64>,
    /// The histogram of seconds between two tokens.
    pub token_seconds: &'static str,
    /// Output tokens and requests of a point: enough to be seen in gauges that are read twice a second, and no more than a busy machine gets done.
    pub output: u64,
    pub requests: u64,
    /// How it refuses 8,180 tokens with an answer of 64.
    pub over_by_the_answer: &'static str,
}

pub struct Steps {
    bench: Bench,
    server: Server,
}

impl Steps {
    /// Starts the program that the variable names, on the model that the other one names. `arguments` of model and port.
    pub fn start(
        program: &str,
        model: &str,
        ready: &str,
        arguments: impl Fn(&str, &str) -> Vec<String>,
    ) -> Steps {
        let named = |name: &str| {
            PathBuf::from(std::env::var_os(name).unwrap_or_else(|| {
                panic!("{name} is not set; ./tests/run full installs the server and sets it")
            }))
        };
        let model = named(model).to_string_lossy().into_owned();
        let place = Place::new();
        let arguments = |port: &str| arguments(&model, port);
        let server = Server::start(&place, &named(program), arguments, ready, secs(900));
        let bench = Bench {
            place,
            port: server.port,
        };
        Steps { bench, server }
    }

    pub fn all(&self, known: &Known) {
        self.facts_are_read(known);
        self.a_closed_loop_is_exact(known);
        self.messages_have_their_length();
        self.an_open_loop_keeps_its_rate();
        self.repeated_prompts_are_void_and_ours_are_not();
        self.what_is_too_long_is_told_as_that(known);
        self.more_than_it_works_on_waits(known);
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            url: format!("http://127.0.0.1:{}", self.bench.port),
            model: None,
            key: None,
            kind: None,
        }
    }

    fn ask(&self) -> (Facts, Load) {
        block_on(async {
            let engine = detect(&self.endpoint()).await.expect("found");
            let facts = engine.facts().await.expect("facts");
            (facts, engine.load().await.expect("load"))
        })
    }

    fn facts_are_read(&self, known: &Known) {
        step("facts");
        let probe = block_on(async {
            let engine = detect(&self.endpoint()).await.expect("found");
            engine.probe().await
        });
        assert!(probe.expect("a token").output_tokens > 0);
        let (facts, load) = self.ask();
        assert_eq!((facts.kind, &facts.health), (known.kind, &Health::Up));
        assert_eq!(facts.version, Reading::Value(known.version.to_string()));
        assert_eq!(facts.model, Reading::Value("tiny".to_string()));
        assert!(facts.notes.is_empty() && !facts.simulated, "{facts:?}");
        let context = facts.context;
        assert_eq!(context.configured, Reading::Value(8192));
        assert_eq!(context.effective, Reading::Value(8192));
        assert_eq!(context.pool_tokens, Reading::Value(known.pool_tokens));
        assert_eq!(context.model_limit.known().copied(), known.model_limit);
        assert_eq!(
            (load.running, load.waiting),
            (Reading::Value(0), Reading::Value(0))
        );
        assert!(load.kv_use.known().is_some() && load.queued.known().is_some());
        assert!(load.prefilled.known().is_some() && load.preemptions_total.known().is_some());
        assert!(load.cache_hits_total.known().is_some());
        assert!(load.generation_tokens_total.known().is_some_and(|n| *n > 0));
        assert!(load.accept_length.known().is_none(), "no speculation");
    }

    fn a_closed_loop_is_exact(&self, known: &Known) {
        step("closed loop");
        let (output, requests) = (known.output, known.requests);
        let (out, each) = (output.to_string(), requests.to_string());
        let before = (self.token_seconds(known), self.ask().1);
        let (code, json) = self.bench.json(&[
            "--input",
            "256",
            "--output",
            &out,
            "--concurrency",
            "1,4",
            "--requests",
            &each,
        ]);
        assert_eq!(code, Some(0), "{json:#}");
        let after = (self.token_seconds(known), self.ask().1);
        assert_eq!(json["server"]["engine"], known.kind.name());
        assert_eq!(json["server"]["version"], known.version);
        assert_eq!(
            (&json["server"]["model"], &json["server"]["context"]),
            (&"tiny".into(), &8192.into())
        );
        for point in points(&json) {
            assert_ne!(point["validity"], "void", "{point:#}");
            assert_eq!(point["requests"]["ok"], requests);
            assert_eq!(point["input_tokens"], requests * 256, "exact prompts");
            assert_eq!(
                point["output_tokens"],
                requests * output,
                "no answer ends early"
            );
            assert_eq!(point["tokens_source"], "usage");
            // Every event says how many tokens there are: nothing is shared out, however many an event has.
            assert_eq!(point["itl_estimated"], false);
            assert!(number(&point["tokens_per_chunk"]) >= 1.0);
            assert!(number(&point["cached_share"]) <= 0.01, "{point:#}");
            assert_eq!(
                (&point["queue_ms"]["n"], &point["prefill_ms"]["n"]),
                (&requests.into(), &requests.into())
            );
            let (prefill, ttft) = (
                number(&point["prefill_ms"]["mean"]),
                number(&point["ttft_ms"]["mean"]),
            );
            assert!(prefill > 0.0 && prefill <= ttft, "{prefill} of {ttft}");
            let side = &point["server_side"];
            assert_eq!(side["preemptions"], 0);
            assert!(number(&side["kv_use_max"]) < 0.1);
        }
        let side = &json["points"][1]["server_side"];
        assert_eq!(
            (&side["running_max"], &side["waiting_max"]),
            (&4.into(), &0.into()),
            "{side}"
        );
        assert!(number(&side["kv_use_max"]) > 0.0);
        // The server's own clocks: seconds between tokens, of these requests and the few that warmed it up.
        let total = |name: &str| {
            points(&json)
                .iter()
                .map(|point| number(&point[name]))
                .sum::<f64>()
        };
        let made = |load: &Load| *load.generation_tokens_total.known().unwrap() as f64;
        let served = made(&after.1) - made(&before.1);
        let ours = total("output_tokens");
        assert!((ours..=ours * 1.4).contains(&served), "{served} for {ours}");
        let (seconds, tokens) = (after.0.0 - before.0.0, after.0.1 - before.0.1);
        let theirs_ms = seconds * 1e3 / tokens;
        let ours_ms = points(&json)
            .iter()
            .map(|point| number(&point["tpot_ms"]["mean"]))
            .sum::<f64>()
            / 2.0;
        assert!(
            (0.7..1.4).contains(&(ours_ms / theirs_ms)),
            "{ours_ms} ms a token for {theirs_ms}"
        );
    }

    fn messages_have_their_length(&self) {
        step("chat");
        let (_, json) = self.bench.json(&[
            "--endpoint",
            "chat",
            "--input",
            "400",
            "--output",
            "24",
            "--concurrency",
            "2",
            "--requests",
            "6",
        ]);
        let point = &json["points"][0];
        assert_eq!(point["requests"]["ok"], 6, "{point:#}");
        let mean = number(&point["input_tokens"]) / 6.0;
        assert!((mean - 400.0).abs() <= 2.0, "{mean} tokens instead of 400");
        assert_eq!(point["output_tokens"], 6 * 24);
        // What all messages have in common is in the cache, and is not held against them.
        assert_ne!(point["validity"], "void", "{point:#}");
    }

    fn an_open_loop_keeps_its_rate(&self) {
        step("open loop");
        let (code, json) = self.bench.json(&[
            "--rate",
            "2",
            "--arrivals",
            "constant",
            "--requests",
            "12",
            "--input",
            "64",
            "--output",
            "16",
        ]);
        assert_eq!(code, Some(0), "{json:#}");
        let point = &json["points"][0];
        assert_eq!(
            (&point["requests"]["ok"], &point["output_tokens"]),
            (&12.into(), &(12 * 16).into())
        );
        assert!(number(&point["client_queue_ms"]["p50"]) < 20.0, "{point:#}");
        assert_eq!(point["input_tokens"], 12 * 64);
    }

    fn repeated_prompts_are_void_and_ours_are_not(&self) {
        step("repeated prompts");
        // vLLM caches whole blocks, of 128 tokens on the CPU, and works on the last token anew: 15 of the 16 blocks come from the cache.
        let again = [
            "--input",
            "2048",
            "--output",
            "20",
            "--concurrency",
            "2",
            "--requests",
            "4",
            "--seed",
            "7",
        ];
        let (_, first) = self.bench.json(&again);
        assert_ne!(first["points"][0]["validity"], "void", "{first:#}");
        let (code, second) = self.bench.json(&again);
        let point = &second["points"][0];
        assert_eq!(
            (code, &point["validity"]),
            (Some(1), &"void".into()),
            "{point:#}"
        );
        assert!(number(&point["cached_share"]) > 0.9, "{point:#}");
        assert!(
            point["reasons"]
                .to_string()
                .contains("came from the prefix cache"),
            "{point:#}"
        );
    }

    fn what_is_too_long_is_told_as_that(&self, known: &Known) {
        step("over the limit");
        for (input, words) in [("8300", "8300"), ("8180", known.over_by_the_answer)] {
            let (code, json) = self.bench.json(&[
                "--input",
                input,
                "--output",
                "64",
                "--concurrency",
                "1",
                "--requests",
                "1",
            ]);
            assert_eq!(code, Some(1));
            let requests = &json["points"][0]["requests"];
            assert_eq!(requests["by_kind"]["context_exceeded"], 1, "{requests}");
            let message = requests["messages"]["context_exceeded"].to_string();
            assert!(message.contains(words), "{message}");
        }
        let refused = block_on(async {
            let engine = detect(&self.endpoint()).await.expect("found");
            engine.ask(&"word ".repeat(9000), 4).await
        });
        match refused {
            Err(EngineError::OverLimit {
                asked: Some(asked),
                limit: Some(8192),
                ..
            }) => assert!(asked > 8192),
            other => panic!("{other:?}"),
        }
    }

    fn more_than_it_works_on_waits(&self, known: &Known) {
        step("more requests than it works on at once");
        let (out, requests) = (known.output.to_string(), known.requests.max(16));
        let each = requests.to_string();
        let (_, json) = self.bench.json(&[
            "--input",
            "256",
            "--output",
            &out,
            "--concurrency",
            "12",
            "--requests",
            &each,
        ]);
        let point = &json["points"][0];
        assert_eq!(
            (&point["requests"]["ok"], &point["requests"]["failed"]),
            (&requests.into(), &0.into())
        );
        let side = &point["server_side"];
        assert_eq!(side["running_max"], 4, "{side}");
        assert!(
            (6.0..=8.0).contains(&number(&side["waiting_max"])),
            "{side}"
        );
        assert_eq!(point["queue_ms"]["n"], requests);
        assert!(
            number(&point["queue_ms"]["mean"]) > number(&point["prefill_ms"]["mean"]) / 4.0,
            "{point:#}"
        );
        let reasons = point["reasons"].to_string();
        assert!(
            reasons.contains("12 clients, 4 running: the plateau is the server's request limit"),
            "{reasons}"
        );
        assert_ne!(point["validity"], "void", "{point:#}");
        assert!(
            !self.server.log().contains("Traceback"),
            "{}",
            self.server.log()
        );
    }

    /// Seconds between tokens and how many there were, over all lines of the histogram.
    fn token_seconds(&self, known: &Known) -> (f64, f64) {
        let (_, page) = http::get(self.bench.port, "/metrics").expect("metrics");
        let sum = |name: String| -> f64 {
            let lines = page.lines().filter(|line| line.starts_with(&name));
            lines
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum()
        };
        (
            sum(format!("{}_sum", known.token_seconds)),
            sum(format!("{}_count", known.token_seconds)),
        )
    }
}

/// Where a failure stands in the long output of one test.
fn step(name: &str) {
    println!("-- {name}");
}

fn points(json: &Value) -> &Vec<Value> {
    json["points"].as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}
