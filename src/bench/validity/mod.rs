//! Whether a point counts, and why not, in words.

mod loops;

pub use loops::looks_like_a_loop;

use super::plan::{Arrivals, Cell};
use super::point::{ClientHealth, Failure, Reason, ServerSide, TokensSource, Validity};
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
/// Age of the data at the read, as a share of the gap between chunks, above which reading was late.
const LAG_LIMIT: f64 = 0.1;
/// Milliseconds that half of the requests of an open loop may be sent late.
const LATE_LIMIT: f64 = 5.0;
/// Samples of the server's gauges that show how many requests reach it.
const GAUGES_SURE: u32 = 5;
/// By how much the requests in flight may fall short of the level asked for, and a prompt's length of the one asked for.
const LEVEL_LIMIT: f64 = 0.05;
const LENGTH_LIMIT: f64 = 0.005;

/// What the answers themselves were.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judged {
    /// Answers that were looked at.
    pub judged: u32,
    pub loops: u32,
    /// What the first of them repeats.
    pub unit: Option<String>,
    pub empty: u32,
}

impl Judged {
    /// Looks at one answer.
    pub fn add(&mut self, text: &str) {
        self.judged += 1;
        if text.trim().is_empty() {
            self.empty += 1;
        } else if let Some(unit) = looks_like_a_loop(text) {
            self.loops += 1;
            self.unit.get_or_insert(unit);
        }
    }
}

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
    pub judged: &'a Judged,
    /// Good answers shorter than asked, and the shortest.
    pub early: u32,
    pub shortest: Option<u64>,
    pub client: ClientHealth,
    /// Median gap between chunks.
    pub gap_ms: Option<f64>,
    /// Median time from when a request should have been sent to when it was.
    pub queue_ms: Option<f64>,
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
    let judged = evidence.judged;
    if let Some(unit) = judged.unit.as_ref() {
        let text = format!(
            "{OUTPUT_DOUBT}{} of {} answers repeat {unit:?} over and over",
            judged.loops, judged.judged
        );
        say(reasons, Validity::Suspect, text);
    }
    if judged.empty > 0 {
        let text = format!(
            "{OUTPUT_DOUBT}{} of {} answers are empty",
            judged.empty, judged.judged
        );
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
    let busy = evidence.client.cpu_share;
    if let Some(share) = busy.filter(|share| *share > CPU_LIMIT) {
        let text = format!(
            "the client was the limit: its thread was busy {:.0} % of the time",
            share * 100.0
        );
        say(reasons, Validity::Void, text);
    }
    late_reads(evidence, reasons);
    match evidence.cell.arrivals {
        Arrivals::Closed => level(evidence, reasons),
        Arrivals::Constant { .. } | Arrivals::Poisson { .. } => schedule(evidence, reasons),
    }
    if evidence.steady.is_none() {
        let text = "too short for a steady part: output rate from the first start to the last end";
        say(reasons, Validity::Valid, text.to_string());
    }
    if evidence.partial {
        let text = "stopped before all requests were done".to_string();
        say(reasons, Validity::Valid, text);
    }
}

/// Data that waits for the reader makes every time late, unless the kernel said when it came.
fn late_reads(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    let (Some(lag), Some(gap)) = (evidence.client.lag_p99_ms, evidence.gap_ms) else {
        return;
    };
    if lag <= gap * LAG_LIMIT {
        return;
    }
    let late =
        format!("data waited up to {lag:.1} ms for the client (p99), chunks are {gap:.1} ms apart");
    if evidence.client.kernel_stamps {
        let text = format!("{late}; times are the kernel's, taken on arrival");
        say(reasons, Validity::Suspect, text);
    } else {
        let text = format!("the client was the limit: {late}");
        say(reasons, Validity::Void, text);
    }
}

/// Little's law of a closed loop: what is in flight on average is the level that was asked for.
fn level(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    // With failures the level falls for another reason, and one round of requests has no steady level.
    let level = evidence.cell.concurrency;
    let rounds = evidence.ok >= level.saturating_mul(2) && evidence.failures.is_empty();
    if !rounds {
        return;
    }
    let least = f64::from(level) * (1.0 - LEVEL_LIMIT);
    if let Some(steady) = evidence.steady.filter(|steady| steady.in_flight < least) {
        let text = format!(
            "the client was the limit: {:.1} requests in flight on average instead of {level}",
            steady.in_flight
        );
        say(reasons, Validity::Void, text);
    }
    if let Some(most) = evidence.server.in_server_max
        && evidence.samples >= GAUGES_SURE
        && (most as f64) < least
    {
        let text = format!(
            "no more than {most} of {level} requests reached the server at once: something before it holds them back"
        );
        say(reasons, Validity::Void, text);
    }
}

/// An open loop is one only while its requests go when they should.
fn schedule(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    if let Some(late) = evidence.queue_ms.filter(|ms| *ms > LATE_LIMIT) {
        let text = format!(
            "half of the requests were sent {late:.0} ms late or later: this rate keeps more than {} in flight",
            evidence.cell.concurrency
        );
        say(reasons, Validity::Suspect, text);
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
        && let Some(text) = plateau(level, running, waiting)
    {
        say(reasons, Validity::Valid, text);
    }
}

/// That the server works on fewer requests than are kept in flight and lets the others wait, in words.
pub fn plateau(level: u64, running: u64, waiting: u64) -> Option<String> {
    let fewer = running > 0 && waiting > 0 && running.saturating_mul(10) < level.saturating_mul(9);
    fewer.then(|| {
        format!("{level} clients, {running} running: the plateau is the server's request limit")
    })
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

    const FINE: Judged = Judged {
        judged: 300,
        loops: 0,
        unit: None,
        empty: 0,
    };

    fn evidence() -> Evidence<'static> {
        Evidence {
            cell: Cell {
                kind: PlanKind::Throughput,
                input: 1000,
                output: 500,
                concurrency: 100,
                requests: 300,
                arrivals: Default::default(),
            },
            ok: 300,
            failures: &[],
            given_up: false,
            cached_share: Some(0.0),
            judged: &FINE,
            early: 0,
            shortest: None,
            client: ClientHealth {
                cpu_share: Some(0.2),
                lag_p99_ms: Some(0.9),
                kernel_stamps: true,
                events_per_read: Some(1.0),
            },
            gap_ms: Some(10.0),
            queue_ms: Some(0.0),
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
        let base = evidence;
        let failure = Failure {
            kind: FailureKind::Status(500),
            message: "CUDA out of memory".into(),
        };
        let some = [(failure.clone(), 4)];
        let all = [(failure, 300)];
        let mut lambda = Judged::default();
        lambda.add(&("x ".to_string() + &"lambda ".repeat(50)));
        lambda.add("fine");
        let mut blank = Judged::default();
        blank.add(" \n");
        let late = |kernel_stamps| ClientHealth {
            lag_p99_ms: Some(1.2),
            kernel_stamps,
            ..base().client
        };
        let rate = crate::bench::plan::Rate::from(4.0);
        let open = Cell {
            arrivals: Arrivals::Constant { rate },
            ..base().cell
        };
        let held = ServerSide {
            in_server_max: Some(60),
            ..ServerSide::default()
        };
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
                    judged: &lambda,
                    ..base()
                },
                Suspect,
                "the output is not a result: 1 of 2 answers repeat \"lambda\" over and over",
            ),
            (
                Evidence {
                    judged: &blank,
                    ..base()
                },
                Suspect,
                "the output is not a result: 1 of 1 answers are empty",
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
                    client: ClientHealth {
                        cpu_share: Some(0.95),
                        ..base().client
                    },
                    ..base()
                },
                Void,
                "the client was the limit: its thread was busy 95 % of the time",
            ),
            (
                Evidence {
                    client: late(true),
                    ..base()
                },
                Suspect,
                "data waited up to 1.2 ms for the client (p99), chunks are 10.0 ms apart; times are the kernel's, taken on arrival",
            ),
            (
                Evidence {
                    client: late(false),
                    ..base()
                },
                Void,
                "the client was the limit: data waited up to 1.2 ms for the client (p99), chunks are 10.0 ms apart",
            ),
            (
                Evidence {
                    cell: open,
                    steady: Some(busy),
                    queue_ms: Some(40.0),
                    ..base()
                },
                Suspect,
                "half of the requests were sent 40 ms late or later: this rate keeps more than 100 in flight",
            ),
            (
                Evidence {
                    server: held,
                    ..base()
                },
                Void,
                "no more than 60 of 100 requests reached the server at once: something before it holds them back",
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
