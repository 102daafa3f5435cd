//! The checks of a context length.

use super::server::{Manner, Server};
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::watch;
use vramp::bench::checks::{self, Check, CheckJob, CheckKind, Event, Verdict};
use vramp::engine::{Endpoint, Kind};
use vramp::gpu::{Card, CardState, Memory, Snapshot};
use vramp::reading::Reading;

const GIB: u64 = 1 << 30;

fn job(server: &Server, context: Option<u64>, gpus: watch::Receiver<Snapshot>) -> CheckJob {
    CheckJob {
        endpoint: Endpoint {
            url: server.url(),
            model: None,
            key: None,
            kind: None,
        },
        kind: Kind::Sglang,
        model: "m".into(),
        context,
        quick: true,
        seed: 5,
        gpus,
        cards: vec![1],
    }
}

fn manner() -> Manner {
    Manner {
        context: 8192,
        step_ms: 0,
        ttft_ms: 1,
        ..Manner::default()
    }
}

fn snapshot(free: u64) -> Snapshot {
    let card = |index, free| Card {
        index,
        uuid: String::new(),
        name: "A".into(),
        state: CardState::Ok,
        memory: Reading::Value(Memory {
            total: 48 * GIB,
            used: 48 * GIB - free,
            free,
            reserved: 0,
        }),
        busy_pct: Reading::unsupported(),
        temp_c: Reading::unsupported(),
        power_mw: Reading::unsupported(),
        power_limit_mw: Reading::unsupported(),
        processes: Reading::unsupported(),
        detail: vramp::gpu::Detail::default(),
    };
    Snapshot {
        // The first card is fuller and not the server's.
        cards: vec![card(0, GIB), card(1, free)],
        ..Snapshot::default()
    }
}

/// Cards of which the free memory falls by `step` at each reading.
fn cards(step: u64) -> watch::Receiver<Snapshot> {
    let (sender, receiver) = watch::channel(snapshot(6 * GIB));
    std::thread::spawn(move || {
        let mut free = 6 * GIB;
        while sender.send(snapshot(free)).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
            free -= step;
        }
    });
    receiver
}

fn no_cards() -> watch::Receiver<Snapshot> {
    let (sender, receiver) = watch::channel(Snapshot {
        fault: Some("no NVIDIA driver".into()),
        ..Snapshot::default()
    });
    // The last value stays readable.
    drop(sender);
    receiver
}

fn all(job: CheckJob) -> Vec<Check> {
    let (sender, receiver) = mpsc::channel();
    let handle = checks::start(job, Box::new(move |event| sender.send(event).unwrap())).unwrap();
    handle.join();
    let events: Vec<Event> = receiver.iter().collect();
    assert_eq!(events.last(), Some(&Event::Finished { stopped: false }));
    let started = events
        .iter()
        .filter(|e| matches!(e, Event::Started { of: 6, .. }));
    assert_eq!(started.count(), 6);
    events
        .into_iter()
        .filter_map(|event| match event {
            Event::Done(check) => Some(check),
            _ => None,
        })
        .collect()
}

fn failed(checks: &[Check]) -> Vec<(CheckKind, String)> {
    checks
        .iter()
        .filter_map(|check| match &check.verdict {
            Verdict::Failed(why) => Some((check.kind, why.clone())),
            _ => None,
        })
        .collect()
}

#[test]
fn a_good_server_passes_all_six() {
    let server = Server::start(manner());
    let checks = all(job(&server, Some(8192), cards(0)));
    let kinds: Vec<CheckKind> = checks.iter().map(|c| c.kind).collect();
    assert_eq!(kinds, CheckKind::ALL);
    for check in &checks {
        assert!(matches!(check.verdict, Verdict::Passed(_)), "{check:?}");
    }
    // The near-full prompt was near full, and nothing that should fit was over.
    let longest = server.seen.prompts.lock().unwrap().iter().copied().max();
    assert!(
        longest.is_some_and(|n| n > 7200 && n + 512 <= 8192),
        "{longest:?}"
    );
}

#[test]
fn without_cards_or_context_checks_are_not_run_and_say_why() {
    let server = Server::start(manner());
    let checks = all(job(&server, Some(8192), no_cards()));
    assert_eq!(
        checks[5].verdict,
        Verdict::NotRun("no cards to watch: no NVIDIA driver".into())
    );
    let checks = all(job(&server, None, no_cards()));
    let not_run = checks
        .iter()
        .filter(|c| c.verdict == Verdict::NotRun("the served context is not known".into()))
        .count();
    assert_eq!(not_run, 5);
}

#[test]
fn each_fault_fails_its_own_check() {
    let forgets = Server::start(Manner {
        remembers: false,
        ..manner()
    });
    let found = failed(&all(job(&forgets, Some(8192), cards(0))));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, CheckKind::HiddenFact);
    assert!(found[0].1.contains("was not found"));

    let endless = Server::start(Manner {
        context: 1 << 20,
        ..manner()
    });
    let found = failed(&all(job(&endless, Some(8192), cards(0))));
    assert_eq!(found[0].0, CheckKind::OverLimit);
    assert!(found[0].1.contains("were accepted"), "{found:?}");

    let leaks = Server::start(manner());
    let found = failed(&all(job(&leaks, Some(8192), cards(48 << 20))));
    assert_eq!(found[0].0, CheckKind::Creep);
    assert!(found[0].1.contains("MiB lost"), "{found:?}");

    let loops = Server::start(Manner {
        only_word: Some("lambda"),
        ..manner()
    });
    let found = failed(&all(job(&loops, Some(8192), cards(0))));
    assert_eq!(found[0].0, CheckKind::LongAnswer);
    assert!(found[0].1.contains("\"lambda\""), "{found:?}");

    let short = Server::start(Manner {
        context: 7000,
        ..manner()
    });
    let kinds: Vec<CheckKind> = failed(&all(job(&short, Some(8192), cards(0))))
        .into_iter()
        .map(|(kind, _)| kind)
        .collect();
    assert_eq!(kinds, [CheckKind::HiddenFact]);
}

#[test]
fn a_dead_server_fails_with_the_reason_and_soon() {
    let server = Server::start(Manner {
        refuses: Some((401, r#"{"error":"no key"}"#)),
        ..manner()
    });
    let found = failed(&all(job(&server, Some(8192), no_cards())));
    assert_eq!(found.len(), 6);
    assert!(found[0].1.contains("no key"), "{found:?}");
}

#[test]
fn the_operator_can_stop_them() {
    let server = Server::start(Manner {
        ttft_ms: 60_000,
        ..manner()
    });
    let (sender, receiver) = mpsc::channel();
    let handle = checks::start(
        job(&server, Some(8192), no_cards()),
        Box::new(move |event| sender.send(event).unwrap()),
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    handle.stop();
    handle.join();
    let events: Vec<Event> = receiver.iter().collect();
    assert_eq!(events.last(), Some(&Event::Finished { stopped: true }));
}
