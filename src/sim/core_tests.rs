use super::*;
use std::collections::HashMap;

const POOL: u64 = 159_744;

fn work(first: u32, input: u32, output: u32) -> Work {
    Work {
        prompt: std::iter::once(first).chain(1..input).collect(),
        output,
        reserve: u64::from(input) + u64::from(output),
    }
}

/// A closed loop of `concurrency` requests: output tokens a second between the first and the last quarter of the run.
fn closed_loop(concurrency: u32, input: u32, output: u32, rounds: u32) -> f64 {
    let mut core = Core::new(Timing::Model, POOL, 1);
    let mut out = Vec::new();
    let mut unique = 1 << 20;
    let mut submit = |core: &mut Core| {
        unique += 1;
        core.submit(work(unique, input, output));
    };
    (0..concurrency).for_each(|_| submit(&mut core));
    let total = concurrency * rounds;
    let mut done = 0;
    let mut marks = Vec::new();
    let mut tokens = 0;
    while done < total {
        let at = core.next_event().expect("work to do");
        core.advance(at, &mut out);
        for emission in out.drain(..) {
            tokens += emission.tokens;
            if emission.last {
                done += 1;
                marks.push((at, tokens));
                submit(&mut core);
            }
        }
    }
    let (from, to) = (marks[marks.len() / 4], marks[marks.len() - 1]);
    f64::from(to.1 - from.1) / (to.0 - from.0)
}

#[test]
fn throughput_is_that_of_the_rig() {
    for (concurrency, expected) in [
        (1, 73.5),
        (2, 137.7),
        (4, 207.1),
        (16, 430.0),
        (64, 505.0),
        (100, 505.0),
    ] {
        let rounds = if concurrency < 16 { 40 } else { 12 };
        let rate = closed_loop(concurrency, 1000, 500, rounds);
        assert!(
            (rate / expected - 1.0).abs() < 0.02,
            "{concurrency}: {rate:.1} instead of {expected}"
        );
    }
}

#[test]
fn one_long_request_alone_has_the_rigs_times() {
    for (input, ttft, decode) in [
        (1_000, 0.16, 73.6),
        (10_000, 1.24, 73.0),
        (120_000, 17.9, 64.9),
    ] {
        let mut core = Core::new(Timing::Model, POOL, 3);
        let mut out = Vec::new();
        core.submit(work(9, input, 200));
        core.advance(1000.0, &mut out);
        let first = out.first().expect("tokens").at;
        let last = out.last().expect("tokens");
        assert_eq!(out.iter().map(|e| e.tokens).sum::<u32>(), 200);
        assert!(last.last);
        assert!(
            (first / ttft - 1.0).abs() < 0.02,
            "{input}: first token after {first}"
        );
        let rate = 199.0 / (last.at - first);
        assert!((rate / decode - 1.0).abs() < 0.03, "{input}: {rate}");
        assert!(
            (out.len() as f64 / 69.0 - 1.0).abs() < 0.1,
            "{} chunks",
            out.len()
        );
    }
}

#[test]
fn long_prompts_wait_for_each_other_and_a_short_one_slips_by() {
    let mut core = Core::new(Timing::Model, POOL, 3);
    let mut out = Vec::new();
    let long: Vec<u64> = (0..4)
        .map(|n| core.submit(work(1000 + n, 30_000, 2)))
        .collect();
    core.advance(1000.0, &mut out);
    let first: HashMap<u64, f64> = out.iter().rev().map(|e| (e.id, e.at)).collect();
    assert!(first[&long[3]] > 3.5 * 3.91, "{first:?}");
    let mut core = Core::new(Timing::Model, POOL, 3);
    out.clear();
    core.submit(work(1, 100_000, 2));
    let short = core.submit(work(2, 1_000, 2));
    core.advance(1000.0, &mut out);
    let at = out.iter().find(|e| e.id == short).expect("token").at;
    assert!((0.3..0.4).contains(&at), "{at}");
}

#[test]
fn a_cancelled_request_frees_its_place() {
    let mut core = Core::new(Timing::Model, POOL, 3);
    let ids: Vec<u64> = (0..60)
        .map(|n| core.submit(work(1000 + n, 100, 1000)))
        .collect();
    assert_eq!((core.state().prefilling, core.state().waiting), (48, 12));
    let mut out = Vec::new();
    core.advance(6.0, &mut out);
    for id in &ids[..20] {
        core.cancel(*id);
    }
    assert_eq!(core.state().waiting, 0);
    for id in ids {
        core.cancel(id);
    }
    assert_eq!(
        core.state(),
        State {
            counters: core.state().counters,
            ..State::default()
        }
    );
    assert_eq!(core.reserved, 0);
    assert_eq!(core.next_event(), None);
}

#[test]
fn the_pool_bounds_what_runs_together() {
    let mut core = Core::new(Timing::Model, POOL, 3);
    core.submit(work(1, 120_000, 100));
    core.submit(work(2, 120_000, 100));
    core.submit(work(3, 100, 100));
    let state = core.state();
    assert_eq!(
        (state.prefilling, state.waiting),
        (1, 2),
        "first come, first served"
    );
    let mut out = Vec::new();
    core.advance(1e6, &mut out);
    assert_eq!(out.iter().filter(|e| e.last).count(), 3);
}

#[test]
fn a_repeated_prompt_is_served_from_the_cache() {
    let mut core = Core::new(Timing::Model, POOL, 3);
    let mut out = Vec::new();
    core.submit(work(1, 10_000, 1));
    core.advance(100.0, &mut out);
    core.submit(work(1, 10_000, 1));
    core.advance(200.0, &mut out);
    assert_eq!((out[0].cached, out[1].cached), (0, 9_999));
    assert!(out[1].at < 100.1, "{}", out[1].at);
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let run = |seed| {
        let mut core = Core::new(Timing::Model, POOL, seed);
        let mut out = Vec::new();
        core.submit(work(1, 1000, 50));
        core.advance(100.0, &mut out);
        out
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn a_raw_schedule_keeps_its_times_under_any_load() {
    let raw = Timing::Raw {
        ttft_s: 0.05,
        itl_s: 0.01,
        tokens_per_chunk: 4,
    };
    let mut core = Core::new(raw, POOL, 1);
    let mut out = Vec::new();
    let id = (0..200)
        .map(|n| core.submit(work(1000 + n, 10, 10)))
        .last()
        .expect("id");
    core.advance(10.0, &mut out);
    let mine: Vec<(i64, u32)> = out
        .iter()
        .filter(|e| e.id == id)
        .map(|e| ((e.at * 1e6).round() as i64, e.tokens))
        .collect();
    assert_eq!(mine, [(50_000, 1), (90_000, 4), (130_000, 4), (140_000, 1)]);
}
