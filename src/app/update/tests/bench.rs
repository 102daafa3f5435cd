//! Benchmarks.

use super::*;
use crate::app::dialog::Dialog;
use crate::app::effect::{Effect, Save};
use crate::app::evidence;
use crate::app::msg::Msg;
use crate::app::task::{TaskKind, TaskState};
use crate::bench;
use crate::bench::Live;
use crate::bench::plan::{Cell, PlanKind};
use crate::keymap::Action;

#[test]
fn a_run_fills_the_pane_and_the_evidence() {
    let mut play = Play::attached(32_768);
    play.select(is_long(1_000)).key(Action::Act);
    let Some(Effect::StartBench { cells, .. }) = play.effects.last() else {
        panic!("{:?}", play.effects)
    };
    let inputs: Vec<u64> = cells.iter().map(|c| c.input).collect();
    assert_eq!(inputs, [1_000, 10_000, 30_000]);
    let cells = cells.clone();
    for (index, (cell, decode)) in cells.iter().zip([73.6, 73.1, 71.8]).enumerate() {
        play.msg(Msg::Bench(bench::Event::CellStarted {
            index,
            of: 3,
            cell: *cell,
        }));
        play.msg(Msg::Bench(bench::Event::Live(Live {
            done: 1,
            of: 8,
            in_flight: 1,
            ..Default::default()
        })));
        play.msg(Msg::Bench(bench::Event::CellDone(Box::new(point(
            *cell, 32_768, decode,
        )))));
        assert!(matches!(
            play.effects.as_slice(),
            [Effect::Save(Save::Point(_))]
        ));
    }
    play.msg(Msg::Tick);
    assert!(
        matches!(play.state(is_long(1_000)), TaskState::Running { share: Some(s), .. } if *s > 600)
    );
    play.msg(Msg::Bench(bench::Event::Finished { stopped: false }));
    assert!(matches!(play.state(is_long(1_000)), TaskState::Done { .. }));
    let evidence = evidence::evidence(&play.model);
    assert_eq!(evidence.len(), 1);
    assert_eq!(evidence[0].longest.map(|(input, _)| input), Some(30_000));
    assert!((evidence[0].vs_short.expect("compared") - (71.8 / 73.6 - 1.0) * 100.0).abs() < 1e-9);
}

#[test]
fn each_context_measures_its_own_baseline() {
    let mut play = Play::attached(65_536);
    play.select(is_long(60_000)).key(Action::Act);
    let Some(Effect::StartBench { cells, .. }) = play.effects.last() else {
        panic!("{:?}", play.effects)
    };
    let inputs: Vec<u64> = cells.iter().map(|c| c.input).collect();
    assert_eq!(inputs, [1_000, 60_000]);
}

#[test]
fn stopping_keeps_what_was_measured() {
    let mut play = Play::attached(32_768);
    play.select(|k| *k == TaskKind::Throughput).key(Action::Act);
    play.key(Action::Stop);
    assert!(matches!(play.model.dialog(), Some(Dialog::Stop(_))));
    play.key(Action::Yes);
    assert_eq!(play.effects, [Effect::StopBench]);
    let cell = Cell {
        kind: PlanKind::Throughput,
        input: 1000,
        output: 500,
        concurrency: 1,
        requests: 8,
        arrivals: Default::default(),
    };
    play.msg(Msg::Bench(bench::Event::CellDone(Box::new(point(
        cell, 32_768, 73.5,
    )))));
    play.msg(Msg::Bench(bench::Event::Finished { stopped: true }));
    assert_eq!(
        play.state(|k| *k == TaskKind::Throughput),
        &TaskState::Pending
    );
    assert_eq!(play.model.bench.points.len(), 1);
    assert!(play.model.running.is_none());
}
