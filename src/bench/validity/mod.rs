//! Whether a point counts, and why not, in words.

mod loops;

pub use loops::looks_like_a_loop;

use super::plan::Cell;
use super::point::{Failure, Reason, ServerSide, TokensSource, Validity};
use super::run::Steady;
use crate::units::thousands;

/// What a reason begins with when the output itself is no result, so that its speed is not offered.
pub const OUTPUT_DOUBT: &str = "the output is not a result: ";

/// The least decode tokens that make a rate, and those that make a sure one.
pub const DECODE_NONE: u64 = 8;
const DECODE_SURE: u64 = 32;
/// Share of prompt tokens from a cache above which a point is void.
const CACHED_LIMIT: f64 = 0.01;
/// Share of one core above which the client may have been the limit.
const CPU_LIMIT: f64 = 0.9;
/// By how much the requests in flight may fall short of the level asked for, and a prompt's length of the one asked for.
const LEVEL_LIMIT: f64 = 0.05;
const LENGTH_LIMIT: f64 = 0.005;

/// What is known about a cell when it is judged.
#[derive(Debug)]
pub struct Evidence<'a> {
    pub cell: Cell,
    pub ok: u32,
    /// By kind, most frequent first.
    pub failures: &'a [(Failure, u32)],
    /// The cell was given up: one request after another failed.
    pub given_up: bool,
    pub cached_share: Option<f64>,
    pub texts: &'a [String],
    /// Good answers shorter than asked, and the shortest.
    pub early: u32,
    pub shortest: Option<u64>,
    pub cpu_share: Option<f64>,
    pub steady: Option<Steady>,
    pub foreign: Option<u64>,
    pub server: ServerSide,
    /// Server samples behind `server`.
    pub samples: u32,
    pub decode_tokens: u64,
    pub source: TokensSource,
    /// Mean prompt length as the server counts; `None` if it does not say.
    pub prompt_mean: Option<f64>,
    pub partial: bool,
}

/// The reasons, weightiest first, and what they come to.
pub fn judge(evidence: &Evidence<'_>) -> (Validity, Vec<Reason>) {
    let mut reasons = Vec::new();
    failures(evidence, &mut reasons);
    if evidence.ok > 0 {
        cache(evidence, &mut reasons);
        output(evidence, &mut reasons);
        client(evidence, &mut reasons);
        server(evidence, &mut reasons);
        samples(evidence, &mut reasons);
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weighs));
    let validity = reasons.first().map_or(Validity::Valid, |r| r.weighs);
    (validity, reasons)
}

fn say(reasons: &mut Vec<Reason>, weighs: Validity, text: String) {
    reasons.push(Reason { weighs, text });
}

fn failures(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    let failed: u32 = evidence.failures.iter().map(|(_, n)| n).sum();
    let total = failed + evidence.ok;
    let Some((most, _)) = evidence.failures.first() else {
        return;
    };
    let given_up = if evidence.given_up {
        format!(", given up after {total} of {}", evidence.cell.requests)
    } else {
        String::new()
    };
    if evidence.ok == 0 {
        let text = format!("all {total} requests failed{given_up}: {}", most.message);
        say(reasons, Validity::Void, text);
    } else {
        let text = format!(
            "{failed} of {total} requests failed{given_up}: {}",
            most.message
        );
        say(reasons, Validity::Suspect, text);
    }
}

fn cache(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    if let Some(share) = evidence.cached_share.filter(|share| *share > CACHED_LIMIT) {
        let text = format!(
            "{:.0} % of the prompt tokens came from the prefix cache",
            share * 100.0
        );
        say(reasons, Validity::Void, text);
    }
    if let Some(mean) = evidence.prompt_mean {
        let asked = evidence.cell.input as f64;
        if (mean - asked).abs() > (asked * LENGTH_LIMIT).max(1.0) {
            let text = format!(
                "prompts had {} tokens instead of {}",
                thousands(mean.round() as u64),
                thousands(evidence.cell.input)
            );
            say(reasons, Validity::Suspect, text);
        }
    }
}

fn output(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    let loops: Vec<String> = evidence
        .texts
        .iter()
        .filter_map(|text| looks_like_a_loop(text))
        .collect();
    if let Some(unit) = loops.first() {
        let text = format!(
            "{OUTPUT_DOUBT}{} of {} answers repeat {unit:?} over and over",
            loops.len(),
            evidence.ok
        );
        say(reasons, Validity::Suspect, text);
    }
    let empty = evidence
        .texts
        .iter()
        .filter(|t| t.trim().is_empty())
        .count();
    if empty > 0 {
        let text = format!("{OUTPUT_DOUBT}{empty} of {} answers are empty", evidence.ok);
        say(reasons, Validity::Suspect, text);
    }
    if let Some(shortest) = evidence.shortest.filter(|_| evidence.early > 0) {
        let text = format!(
            "{OUTPUT_DOUBT}{} of {} answers ended early, the shortest after {} of {} tokens",
            evidence.early,
            evidence.ok,
            thousands(shortest),
            thousands(evidence.cell.output)
        );
        say(reasons, Validity::Suspect, text);
    }
}

fn client(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    if let Some(share) = evidence.cpu_share.filter(|share| *share > CPU_LIMIT) {
        let text = format!(
            "the client was the limit: its thread was busy {:.0} % of the time",
            share * 100.0
        );
        say(reasons, Validity::Void, text);
    }
    let wanted = f64::from(evidence.cell.concurrency);
    // With failures the level falls for another reason, and one round of requests has no steady level.
    let rounds = evidence.ok >= 2 * evidence.cell.concurrency && evidence.failures.is_empty();
    match evidence.steady {
        Some(steady) if rounds && steady.in_flight < wanted * (1.0 - LEVEL_LIMIT) => {
            let text = format!(
                "the client was the limit: {:.1} requests in flight on average instead of {}",
                steady.in_flight, evidence.cell.concurrency
            );
            say(reasons, Validity::Void, text);
        }
        Some(_) => {}
        None => say(
            reasons,
            Validity::Valid,
            "too short for a steady part: output rate from the first start to the last end"
                .to_string(),
        ),
    }
    if evidence.partial {
        let text = "stopped before all requests were done".to_string();
        say(reasons, Validity::Valid, text);
    }
}

fn server(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    if let Some(foreign) = evidence.foreign {
        let text = format!("the server had {foreign} requests that are not ours");
        say(reasons, Validity::Suspect, text);
    }
    let level = u64::from(evidence.cell.concurrency);
    if let (Some(running), Some(waiting)) =
        (evidence.server.running_max, evidence.server.waiting_max)
        && evidence.samples >= 2
        && running > 0
        && waiting > 0
        && running * 10 < level * 9
    {
        let text = format!(
            "{level} clients, {running} running: the plateau is the server's request limit"
        );
        say(reasons, Validity::Valid, text);
    }
}

fn samples(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    if evidence.decode_tokens < DECODE_SURE {
        let text = format!(
            "only {} tokens to measure the decode rate from",
            evidence.decode_tokens
        );
        say(reasons, Validity::Suspect, text);
    }
    match evidence.source {
        TokensSource::Usage | TokensSource::Tokenizer => {}
        TokensSource::Chunks => say(
            reasons,
            Validity::Suspect,
            "the server does not count its tokens: they are estimated from the events of the stream"
                .to_string(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::PlanKind;
    use crate::bench::point::FailureKind;

    fn evidence() -> Evidence<'static> {
        Evidence {
            cell: Cell {
                kind: PlanKind::Throughput,
                input: 1000,
                output: 500,
                concurrency: 100,
                requests: 300,
            },
            ok: 300,
            failures: &[],
            given_up: false,
            cached_share: Some(0.0),
            texts: &[],
            early: 0,
            shortest: None,
            cpu_share: Some(0.2),
            steady: Some(Steady {
                seconds: 60.0,
                chunks: 100_000,
                in_flight: 99.0,
            }),
            foreign: None,
            server: ServerSide::default(),
            samples: 30,
            decode_tokens: 149_700,
            source: TokensSource::Usage,
            prompt_mean: Some(1000.0),
            partial: false,
        }
    }

    fn only(evidence: &Evidence<'_>) -> (Validity, String) {
        let (validity, reasons) = judge(evidence);
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        (validity, reasons.into_iter().map(|r| r.text).collect())
    }

    #[test]
    fn a_clean_point_is_valid_without_a_word() {
        assert_eq!(judge(&evidence()), (Validity::Valid, vec![]));
    }

    #[test]
    fn each_doubt_has_its_weight_and_words() {
        let failure = Failure {
            kind: FailureKind::Status(500),
            message: "CUDA out of memory".into(),
        };
        let some = [(failure.clone(), 4)];
        let all = [(failure, 300)];
        let lambda = ["x ".to_string() + &"lambda ".repeat(50), "fine".to_string()];
        let blank = [" \n".to_string()];
        let base = evidence;
        let busy = Steady {
            in_flight: 90.0,
            ..base().steady.unwrap()
        };
        let limited = ServerSide {
            running_max: Some(48),
            waiting_max: Some(52),
            ..ServerSide::default()
        };
        use Validity::{Suspect, Valid, Void};
        let rows: Vec<(Evidence<'_>, Validity, &str)> = vec![
            (
                Evidence {
                    failures: &some,
                    ..base()
                },
                Suspect,
                "4 of 304 requests failed: CUDA out of memory",
            ),
            (
                Evidence {
                    failures: &all,
                    ok: 0,
                    ..base()
                },
                Void,
                "all 300 requests failed: CUDA out of memory",
            ),
            (
                Evidence {
                    cached_share: Some(0.5),
                    ..base()
                },
                Void,
                "50 % of the prompt tokens came from the prefix cache",
            ),
            (
                Evidence {
                    prompt_mean: Some(1012.0),
                    ..base()
                },
                Suspect,
                "prompts had 1,012 tokens instead of 1,000",
            ),
            (
                Evidence {
                    texts: &lambda,
                    ..base()
                },
                Suspect,
                "the output is not a result: 1 of 300 answers repeat \"lambda\" over and over",
            ),
            (
                Evidence {
                    texts: &blank,
                    ..base()
                },
                Suspect,
                "the output is not a result: 1 of 300 answers are empty",
            ),
            (
                Evidence {
                    early: 300,
                    shortest: Some(40),
                    ..base()
                },
                Suspect,
                "the output is not a result: 300 of 300 answers ended early, the shortest after 40 of 500 tokens",
            ),
            (
                Evidence {
                    cpu_share: Some(0.95),
                    ..base()
                },
                Void,
                "the client was the limit: its thread was busy 95 % of the time",
            ),
            (
                Evidence {
                    steady: Some(busy),
                    ..base()
                },
                Void,
                "the client was the limit: 90.0 requests in flight on average instead of 100",
            ),
            (
                Evidence {
                    steady: None,
                    ..base()
                },
                Valid,
                "too short for a steady part: output rate from the first start to the last end",
            ),
            (
                Evidence {
                    foreign: Some(3),
                    ..base()
                },
                Suspect,
                "the server had 3 requests that are not ours",
            ),
            (
                Evidence {
                    server: limited,
                    ..base()
                },
                Valid,
                "100 clients, 48 running: the plateau is the server's request limit",
            ),
            (
                Evidence {
                    decode_tokens: 31,
                    ..base()
                },
                Suspect,
                "only 31 tokens to measure the decode rate from",
            ),
            (
                Evidence {
                    source: TokensSource::Chunks,
                    ..base()
                },
                Suspect,
                "the server does not count its tokens: they are estimated from the events of the stream",
            ),
            (
                Evidence {
                    partial: true,
                    ..base()
                },
                Valid,
                "stopped before all requests were done",
            ),
        ];
        for (evidence, validity, text) in rows {
            assert_eq!(only(&evidence), (validity, text.to_string()));
        }
    }

    #[test]
    fn the_weightiest_reason_comes_first() {
        let evidence = Evidence {
            partial: true,
            foreign: Some(1),
            cached_share: Some(0.02),
            ..evidence()
        };
        let (validity, reasons) = judge(&evidence);
        assert_eq!(validity, Validity::Void);
        let weights: Vec<Validity> = reasons.iter().map(|r| r.weighs).collect();
        assert_eq!(
            weights,
            [Validity::Void, Validity::Suspect, Validity::Valid]
        );
    }
}
