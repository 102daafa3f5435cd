//! What `vramp bench` understands.

use crate::bench::options::Slo;
use crate::engine::Kind;
use crate::units::{LengthError, parse_count};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Measure a server without a screen.
///
/// Lengths and counts: K is 1000, M is 1,000,000. Exit codes: 0 measured; 1 a point is void or every request failed; 2 wrong use; 130
/// interrupted, what was measured is kept.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct BenchArgs {
    /// throughput or long-context; the profile's own where there is one, else the standard one
    #[arg(value_name = "PLAN")]
    pub plan: Option<String>,
    /// Address of the server; without it, the profile's
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Model to ask for; the server's first without it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Engine of the server instead of finding it out: sglang, vllm, llamacpp, openai
    #[arg(long, value_name = "KIND")]
    pub engine: Option<Kind>,
    /// Environment variable with the API key
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// Which part of the API to use: auto sends token ids to /v1/completions where the server takes them
    #[arg(long, value_name = "WHICH", default_value = "auto")]
    pub endpoint: ApiName,
    /// Input lengths in tokens, for example 1000,30K
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_count)]
    pub input: Vec<u64>,
    /// Output length in tokens
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub output: Option<u64>,
    /// Requests kept in flight, for example 1,2,4; with --rate the most that may be
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_small)]
    pub concurrency: Vec<u32>,
    /// Requests of each point
    #[arg(long, value_name = "N", value_parser = parse_small)]
    pub requests: Option<u32>,
    /// Time of each point: 30, 30s, 5m; no request is sent later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// Open loop: requests a second, whatever the server does, for example 0.5,1,2
    #[arg(long, value_name = "R", value_delimiter = ',', value_parser = parse_rate)]
    pub rate: Vec<f64>,
    /// How the requests of an open loop are spaced
    #[arg(long, value_name = "HOW", default_value = "poisson", requires = "rate")]
    pub arrivals: Spacing,
    /// End a point early once the 95 % intervals of the medians of TTFT and TPOT are at most so wide, for example 5%
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub precision: Option<f64>,
    /// Targets of a request; goodput counts those that meet them. Without --concurrency and --rate the highest concurrency that
    /// keeps them is looked for
    #[arg(long, value_name = "TARGETS", value_parser = parse_slo)]
    pub slo: Option<Slo>,
    /// Microseconds between the first requests, which else queue behind each other
    #[arg(long, value_name = "US")]
    pub spread_us: Option<u64>,
    /// Makes the prompts again that another run had
    #[arg(long)]
    pub seed: Option<u64>,
    /// One JSON document; to FILE, or to standard output without one
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// One line a point; - is standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// One self-contained page with charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Name of the run, by which vramp runs finds it again
    #[arg(long, value_name = "NAME")]
    pub save: Option<String>,
    /// Go on with the newest run of the same order that did not finish, or with run ID; its requests are kept
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true)]
    pub resume: Option<Option<i64>>,
}

/// Which part of the API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiName {
    #[default]
    Auto,
    Chat,
    Completions,
}

/// How the requests of an open loop are spaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Spacing {
    #[default]
    Poisson,
    Constant,
}

fn parse_small(text: &str) -> Result<u32, String> {
    let value = parse_count(text).map_err(|error: LengthError| error.to_string())?;
    match u32::try_from(value) {
        Ok(value) if value <= 100_000_000 => Ok(value),
        _ => Err(format!("{value} is more than can be worked on")),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(rate) if (0.001..=1e6).contains(&rate) => Ok(rate),
        _ => Err("write requests a second from 0.001 to 1000000, for example 2.5".to_string()),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(share) if share * factor > 0.0 && share * factor < 1.0 => Ok(share * factor),
        _ => Err("write a share, for example 5% or 0.05".to_string()),
    }
}

/// A number with a unit of time; `plain` is the one without any.
fn milliseconds(text: &str, plain: f64) -> Option<f64> {
    let text = text.trim();
    let units = [
        ("ms", 1.0),
        ("s", 1e3),
        ("m", 60e3),
        ("h", 3600e3),
        ("", plain),
    ];
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    let value = number.trim().parse::<f64>().ok()? * factor;
    (value.is_finite() && value > 0.0).then_some(value)
}

fn parse_time(text: &str) -> Result<Duration, String> {
    milliseconds(text, 1e3)
        .filter(|ms| *ms <= 30.0 * 24.0 * 3600e3)
        .map(|ms| Duration::from_secs_f64(ms / 1e3))
        .ok_or_else(|| "write a time, for example 30, 30s, 5m or 1h".to_string())
}

fn parse_slo(text: &str) -> Result<Slo, String> {
    let mut slo = Slo::default();
    for part in text.split(',') {
        let fail =
            || format!("cannot read {part:?} as a target; write for example ttft=1s,tpot=50ms");
        let (name, value) = part.split_once('=').ok_or_else(fail)?;
        let value = milliseconds(value, 1.0).ok_or_else(fail)?;
        let place = match name.trim() {
            "ttft" => &mut slo.ttft_ms,
            "tpot" => &mut slo.tpot_ms,
            _ => return Err(fail()),
        };
        if place.replace(value).is_some() {
            return Err(format!("{} is given twice", name.trim()));
        }
    }
    Ok(slo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_shares_and_targets_are_read() {
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_share("5%"), Ok(0.05));
        let slo = parse_slo("ttft=1s, tpot=50ms").unwrap();
        assert_eq!((slo.ttft_ms, slo.tpot_ms), (Some(1000.0), Some(50.0)));
        for bad in [
            "",
            "ttft",
            "ttft=",
            "e2e=1s",
            "ttft=0s",
            "ttft=1s,ttft=2s",
            "ttft=x",
        ] {
            assert!(parse_slo(bad).is_err(), "{bad:?}");
        }
        assert!(
            parse_time("0").is_err() && parse_time("x").is_err() && parse_time("99999h").is_err()
        );
        assert!(parse_share("0").is_err() && parse_share("200%").is_err());
        assert!(
            parse_rate("0").is_err() && parse_rate("nan").is_err() && parse_rate("2.5").is_ok()
        );
        assert!(parse_small("1G").is_err() && parse_small("1K") == Ok(1000));
    }
}
