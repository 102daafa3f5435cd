//! Every rule, one at a time.

use super::*;
use crate::bench::plan::{Arrivals, PlanKind};
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
        samples_when_full: 20,
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
            Evidence { ok: 1, ..base() },
            Suspect,
            "one answer only: that is too few to tell how much they differ",
        ),
        (
            Evidence { ok: 2, ..base() },
            Suspect,
            "2 answers only: that is too few to tell how much they differ",
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

#[test]
fn a_few_gauges_are_no_proof_that_requests_are_held_back() {
    let held = ServerSide {
        in_server_max: Some(1),
        ..ServerSide::default()
    };
    let few = Evidence {
        server: held,
        samples_when_full: 7,
        ..evidence()
    };
    assert_eq!(judge(&few).0, Validity::Valid);
    let enough = Evidence {
        samples_when_full: 8,
        ..few
    };
    assert_eq!(judge(&enough).0, Validity::Void);
}
