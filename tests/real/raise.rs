//! A context raised beyond what the pool of the real server holds: it comes back at the last good value, and the number that the
//! failure names is one at which the server really serves.

use crate::support::http::{self, free_port};
use crate::support::place::Place;
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// A server that is raised by `vramp ramp`.
pub struct Raised {
    place: Place,
    port: u16,
}

impl Raised {
    /// A profile that runs the program which the variable names at 8,192 tokens, on the small model, and nothing running yet.
    pub fn new(program: &str, engine: &str, arguments: &str) -> Raised {
        let named = |name: &str| {
            PathBuf::from(std::env::var_os(name).unwrap_or_else(|| {
                panic!("{name} is not set; ./tests/run full installs the server and sets it")
            }))
        };
        let (place, port) = (Place::new(), free_port());
        let arguments = arguments
            .replace("MODEL", &named("SMALL_MODEL").to_string_lossy())
            .replace("PORT", &port.to_string());
        let mut argv = vec![named(program).to_string_lossy().into_owned()];
        argv.extend(arguments.split(' ').map(str::to_string));
        place.profile(&format!(
            r#"[profile.tiny]
url = "http://127.0.0.1:{port}"
engine = "{engine}"
ladder = ["8K", "32K"]
production = 8192

[profile.tiny.process]
argv = {argv:?}
start_when_absent = true
stop_grace = 20
stuck_after = 300
"#
        ));
        Raised { place, port }
    }

    fn ramp(&self, to: &str) -> (Option<i32>, Value, String) {
        let output = self
            .place
            .run(&["ramp", "--json", "--no-watch", "--to", to]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let end = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        (output.status.code(), end, said)
    }

    /// Asked for `too_much` it fails for `cause` and serves 8,192 again; at the number that is suggested it serves.
    pub fn raises(&self, too_much: u64, cause: &str, suggested: RangeInclusive<u64>) {
        let (code, end, said) = self.ramp(&too_much.to_string());
        assert_eq!(code, Some(1), "{end:#}\n{said}");
        assert_eq!(end["outcome"], json!("rolled_back"), "{end:#}\n{said}");
        let step = end["steps"]
            .as_array()
            .and_then(|steps| steps.iter().find(|step| step["context"] == json!(too_much)))
            .unwrap_or_else(|| panic!("no step at {too_much}: {end:#}"));
        let told = step["cause"].as_str().unwrap_or_default();
        assert!(told.contains(cause), "{cause} is not in {told:?}\n{said}");
        let number = step["suggested_context"].as_u64();
        let number = number.unwrap_or_else(|| panic!("nothing is suggested: {end:#}\n{said}"));
        assert!(suggested.contains(&number), "{number}: {end:#}");
        assert_eq!(self.served(), Some(8192));

        let before = self.pool();
        let (code, end, said) = self.ramp(&number.to_string());
        assert_eq!(code, Some(0), "{end:#}\n{said}");
        assert_eq!(end["outcome"], json!("trial"), "{end:#}");
        assert_eq!(self.served(), Some(number));
        // The pool was taken at start and stays; what fits into it is what was forecast.
        let after = self.pool();
        println!("pool and capacity {before:?} -> {after:?}");
        assert!((after.0 / before.0 - 1.0).abs() < 0.02, "the pool stays");
        let (now, then) = forecast(&said);
        for (forecast, measured) in [(now, before.1), (then, after.1)] {
            // It is said with one decimal.
            assert!((forecast - measured).abs() < 0.06, "{forecast} {measured}");
        }
        let shrinks = before.1 / after.1 * 8192.0 / number as f64;
        assert!((shrinks - 1.0).abs() < 0.02, "{before:?} {after:?}");
    }

    /// Tokens of the pool and the capacity, as the server says them now.
    fn pool(&self) -> (f64, f64) {
        let output = self.place.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let figure = |at: &str| {
            let found = status.pointer(at).and_then(Value::as_f64);
            found.unwrap_or_else(|| panic!("{at}: {status:#}"))
        };
        (figure("/context/pool_tokens"), figure("/capacity"))
    }

    fn served(&self) -> Option<u64> {
        let models = http::json(self.port, "/v1/models")?;
        models.pointer("/data/0/max_model_len")?.as_u64()
    }
}

/// The capacity now and then of the forecast before the first restart that `said` tells of.
fn forecast(said: &str) -> (f64, f64) {
    let line = said.lines().find(|line| line.contains("capacity: "));
    let line = line.unwrap_or_else(|| panic!("no forecast: {said}"));
    let figures: Vec<f64> = line
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    match figures[..] {
        [now, then, ..] => (now, then),
        _ => panic!("{line}"),
    }
}
