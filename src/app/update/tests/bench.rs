//! Benchmarks.

use super::*;
use crate::app::bench::Compared;
use crate::app::bench::view::{Row, View, lines};
use crate::app::config::Edit;
use crate::app::dialog::Dialog;
use crate::app::effect::{Effect, Save};
use crate::app::evidence;
use crate::app::keys;
use crate::app::model::Pane;
use crate::app::msg::Msg;
use crate::app::task::{TaskKind, TaskState};
use crate::bench;
use crate::bench::Live;
use crate::bench::plan::{Cell, PlanKind};
use crate::bench::point::RequestRecord;
use crate::engine::Kind;
use crate::keymap::Action;
use crate::keymap::Context;
use crate::report::bench::{RunReport, compare};
use crate::store::{Ending, RunRow};

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

fn finished(play: &mut Play, levels: &[u32], context: u64) {
    play.select(|k| *k == TaskKind::Throughput).key(Action::Act);
    for (index, level) in levels.iter().enumerate() {
        let cell = Cell {
            kind: PlanKind::Throughput,
            input: 1_000,
            output: 500,
            concurrency: *level,
            requests: 8,
            arrivals: Default::default(),
        };
        play.msg(Msg::Bench(bench::Event::CellStarted {
            index,
            of: levels.len(),
            cell,
        }));
        let mut measured = point(cell, context, 70.0);
        measured.output_tok_s = Some(70.0 * f64::from(*level));
        measured.ended_unix_ms = play.now.unix_ms;
        play.msg(Msg::Bench(bench::Event::CellDone(Box::new(measured))));
    }
    play.msg(Msg::Bench(bench::Event::Finished { stopped: false }));
}

#[test]
fn the_charts_follow_what_goes_on_until_another_view_is_chosen() {
    let mut play = Play::attached(32_768);
    assert_eq!(play.model.bench.shown(), View::Curves);
    play.select(|k| *k == TaskKind::Throughput).key(Action::Act);
    assert_eq!(play.model.bench.shown(), View::Live);
    play.msg(Msg::Bench(bench::Event::Live(Live {
        output_tok_s: 73.6,
        in_flight: 1,
        ..Live::default()
    })));
    let line = play.model.bench.timeline.clone().expect("a run has a time");
    assert_eq!(line.last().map(|r| r.rate), Some(73.6));
    play.key(Action::ChartView);
    assert_eq!(play.model.bench.shown(), View::Curves);
    assert_eq!(play.model.focus, Pane::Bench);
    play.msg(Msg::Bench(bench::Event::Finished { stopped: true }));
    finished(&mut play, &[1, 2], 32_768);
    assert_eq!(play.model.bench.shown(), View::Curves, "a new run, its own");
    play.key(Action::ChartView);
    assert_eq!(play.model.bench.shown(), View::Latency);
    play.key(Action::ChartView);
    assert_eq!(play.model.bench.shown(), View::Live, "the run that is over");
}

#[test]
fn frozen_and_narrowed_charts_leave_points_out_and_the_table_does_not() {
    let mut play = Play::attached(32_768);
    finished(&mut play, &[1, 2, 4, 8], 32_768);
    play.model.focus = Pane::Bench;
    let levels = |play: &Play| -> Vec<u32> {
        let (lines, _) = lines(&play.model, PlanKind::Throughput);
        let points = lines.iter().flat_map(|line| line.points.iter());
        points.map(|p| p.cell.concurrency).collect()
    };
    assert_eq!(levels(&play), [1, 2, 4, 8]);
    play.key(Action::WindowShorter);
    assert_eq!(levels(&play), [1, 2, 4]);
    for _ in 0..9 {
        play.key(Action::WindowShorter);
    }
    assert_eq!(levels(&play), [1, 2], "two are left");
    play.key(Action::WindowLonger).key(Action::WindowLonger);
    assert_eq!(levels(&play), [1, 2, 4, 8]);
    play.key(Action::Freeze);
    finished(&mut play, &[16], 32_768);
    assert_eq!(levels(&play), [1, 2, 4, 8], "they stand still");
    assert_eq!(play.model.bench.rows().len(), 5);
    play.key(Action::Freeze);
    assert_eq!(levels(&play), [1, 2, 4, 8, 16]);
}

#[test]
fn the_run_measured_last_comes_first_and_contexts_stay_apart() {
    let mut play = Play::attached(32_768);
    finished(&mut play, &[1, 2], 32_768);
    finished(&mut play, &[1, 2], 65_536);
    let rows = play.model.bench.table(PlanKind::Throughput);
    let headings: Vec<String> = rows
        .iter()
        .filter_map(|row| match row {
            Row::Heading(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(headings, ["65,536", "32,768"]);
    assert_eq!(
        play.model.bench.selected().and_then(|p| p.context),
        Some(65_536)
    );
    play.model.focus = Pane::Bench;
    play.key(Action::Copy);
    let [Effect::Copy(text)] = play.effects.as_slice() else {
        panic!("{:?}", play.effects)
    };
    assert_eq!(text.lines().count(), 5, "{text}");
    let second = text.lines().nth(1).expect("a row");
    let cells: Vec<&str> = second.split('\t').collect();
    assert_eq!(
        cells[..6],
        ["throughput", "65536", "1000", "500", "1", "70.00"]
    );
}

fn row(id: i64, name: Option<&str>, ended: bool) -> RunRow {
    RunRow {
        id,
        name: name.map(String::from),
        session: None,
        profile: None,
        plan: "throughput".into(),
        kind: PlanKind::Throughput,
        url: String::new(),
        engine: Kind::Sglang,
        engine_version: None,
        model: "qwen".into(),
        context: Some(32_768),
        seed: 1,
        simulated: true,
        started_unix_ms: 0,
        ended_unix_ms: ended.then_some(1),
        ending: ended.then_some(Ending::Finished),
        points: 1,
        void: 0,
    }
}

#[test]
fn two_runs_are_chosen_by_number_or_name_and_judged_in_that_order() {
    let mut play = Play::attached(32_768);
    play.key(Action::CompareRuns);
    assert_eq!(play.effects, [Effect::ListRuns]);
    assert_eq!(keys::context(&play.model), Context::List);
    play.msg(Msg::Runs(Ok(vec![
        row(13, None, false),
        row(12, None, true),
        row(3, Some("12"), true),
        row(2, Some("before"), true),
    ])));
    let Some(Dialog::Runs(dialog)) = play.model.dialog() else {
        panic!("the list is there")
    };
    assert_eq!(
        dialog.found().len(),
        3,
        "a run that goes on is no finished one"
    );
    play.msg(Msg::Edited(Edit::at_end("Before")))
        .key(Action::Act);
    assert!(play.effects.is_empty());
    play.msg(Msg::Edited(Edit::at_end("12"))).key(Action::Act);
    assert_eq!(play.effects, [Effect::CompareRuns { a: 2, b: 12 }]);
    assert!(play.model.dialogs.is_empty());
    play.msg(Msg::Compared(Err("run 2 is no longer on record".into())));
    assert!(play.said().contains("no longer on record"));
}

#[test]
fn a_comparison_covers_the_points_until_it_is_put_away() {
    let mut play = Play::attached(32_768);
    finished(&mut play, &[1, 2], 32_768);
    let report = |id: i64, by: f64| {
        let points = play.model.bench.points.iter().cloned().map(|mut p| {
            p.output_tok_s = p.output_tok_s.map(|v| v * by);
            p
        });
        RunReport {
            row: row(id, None, true),
            points: points.collect(),
            ids: vec![id * 10, id * 10 + 1],
        }
    };
    let (a, b) = (report(1, 1.0), report(2, 1.5));
    let record = |id: i64| {
        let record = RequestRecord {
            e2e_ms: Some(if id >= 20 { 1_000.0 } else { 1_500.0 }),
            output_tokens: Some(500),
            ..RequestRecord::default()
        };
        Ok::<_, ()>(vec![record; 8])
    };
    let found = compare(&a, &b, record).expect("they are compared");
    play.msg(Msg::Compared(Ok(Box::new(Compared::new(a, b, found)))));
    assert_eq!(play.model.focus, Pane::Bench);
    let (both, _) = lines(&play.model, PlanKind::Throughput);
    let names: Vec<&str> = both.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["run 2, 32,768", "run 1, 32,768"]);
    play.key(Action::MoveBottom).key(Action::Origin);
    let Some(Dialog::Origin { lines: said }) = play.model.dialog() else {
        panic!("it says where the figure is from")
    };
    let said = said.join("\n");
    assert!(said.contains("2 at once: output"), "{said}");
    assert!(
        said.contains("n = 8 requests") && said.contains("Little"),
        "{said}"
    );
    play.key(Action::Back).key(Action::Copy);
    let [Effect::Copy(text)] = play.effects.as_slice() else {
        panic!("{:?}", play.effects)
    };
    let last = text.lines().last().expect("a figure");
    assert!(last.ends_with("better"), "{text}");
    play.key(Action::Back);
    assert!(play.model.bench.compared.is_none());
    let (own, _) = lines(&play.model, PlanKind::Throughput);
    assert_eq!(own.len(), 1);
}
