//! Benchmarks and checks: begun, followed, ended.

use super::super::bench::timeline::{Reading, Timeline};
use super::super::bench::{ChecksView, Run};
use super::super::effect::{Effect, Notice, Save};
use super::super::history::MarkKind;
use super::super::model::{Activity, Model, Tone};
use super::super::question;
use super::super::task::{TaskKind, TaskState};
use super::{End, begin, end, mark, save_tried};
use crate::bench::Event;
use crate::bench::checks::{self, Verdict};
use crate::bench::plan::{Cell, Plan, PlanKind};
use crate::bench::point::{Point, Validity};
use crate::bench::saturation::knee;
use crate::units::{short_count, thousands};

/// The plan of the profile, in the form of this session.
pub fn plan(model: &Model, kind: PlanKind) -> Option<Plan> {
    let profile = model.profile.as_ref()?;
    let plan = match kind {
        PlanKind::Throughput => &profile.throughput,
        PlanKind::LongContext => &profile.long_context,
    };
    Some(if model.settings.quick {
        plan.quicker()
    } else {
        plan.clone()
    })
}

/// Runs those cells of a plan that `wanted` names and the served context can hold.
pub fn start(
    model: &mut Model,
    kind: PlanKind,
    task: Option<u64>,
    wanted: impl Fn(&Cell) -> bool,
) -> Vec<Effect> {
    if let Some(running) = &model.running {
        let text = format!("a {} runs; x stops it", running.activity.words());
        model.say(Tone::Warn, text);
        return Vec::new();
    }
    if !model.rig.up() {
        model.say(
            Tone::Warn,
            "no server is attached: Enter on the first task looks for it",
        );
        return Vec::new();
    }
    let Some(plan) = plan(model, kind) else {
        return Vec::new();
    };
    let served = model.served();
    let chosen: Vec<Cell> = plan
        .cells()
        .into_iter()
        .filter(|cell| wanted(cell))
        .collect();
    let cells: Vec<Cell> = chosen
        .iter()
        .copied()
        .filter(|cell| served.is_none_or(|s| cell.needs() <= s))
        .collect();
    if cells.is_empty() {
        let needs = chosen.iter().map(Cell::needs).min().unwrap_or(0);
        let text = format!(
            "nothing of this fits: the shortest needs {} tokens, the server serves {}",
            thousands(needs),
            served.map_or("?".to_string(), thousands)
        );
        model.say(Tone::Warn, text);
        return Vec::new();
    }
    begin(model, Activity::Bench, task);
    model.bench.fault = None;
    model.bench.run = Some(Run::new(plan.clone(), cells.clone(), served));
    model.bench.timeline = Some(Timeline::new(model.now));
    // A new run comes to the front.
    model.bench.compared = None;
    model.bench.view = None;
    model.bench.scroll = 0;
    let context = model.running_context();
    let text = Some(match kind {
        PlanKind::Throughput => "throughput".to_string(),
        PlanKind::LongContext => "long context".to_string(),
    });
    vec![
        mark(model, MarkKind::Bench, context, text),
        Effect::StartBench { plan, cells },
    ]
}

/// A restart that began by itself has cut the work off: what its actor still says counts for nothing.
fn is_cut_off(model: &Model) -> bool {
    matches!(
        model.running.as_ref().map(|running| running.activity),
        Some(Activity::Restart)
    )
}

/// What the run reports.
pub fn event(model: &mut Model, event: Event) -> Vec<Effect> {
    if is_cut_off(model) {
        return Vec::new();
    }
    match event {
        Event::CellStarted { index, cell, .. } => {
            if let Some(run) = &mut model.bench.run {
                // The first level again, which the plan does not list.
                if index == run.cells.len() {
                    run.cells.push(cell);
                }
                run.index = index;
                run.live = crate::bench::Live {
                    run_left_ms: run.live.run_left_ms,
                    ..Default::default()
                };
            }
        }
        Event::Live(live) => {
            model.bench.own.note(model.now, live.in_flight);
            if let Some(run) = &mut model.bench.run {
                let asked = run.cell().map_or(0, |cell| cell.concurrency);
                let reading = Reading::new(&live, asked, &model.rig.load);
                if let Some(line) = &mut model.bench.timeline {
                    line.push(model.now, reading);
                }
                run.live = live;
            }
        }
        Event::Failed(failure) => {
            if let Some(run) = &mut model.bench.run {
                run.push_failure(failure);
            }
        }
        // The cockpit has them in the points.
        Event::Requests { .. } => {}
        Event::CellDone(point) => return cell_done(model, *point),
        Event::Finished { stopped } => return finished(model, stopped),
    }
    Vec::new()
}

fn cell_done(model: &mut Model, point: Point) -> Vec<Effect> {
    if let Some(run) = &mut model.bench.run {
        run.points += 1;
    }
    if point.validity == Validity::Void
        && let Some(reason) = point.reasons.iter().find(|r| r.weighs == Validity::Void)
    {
        let text = format!("{}: void, {}", cell_name(&point.cell), reason.text);
        model.say(Tone::Warn, text);
    }
    let save = Effect::Save(Save::Point(Box::new(point.clone())));
    // The records of single requests are kept in the store, not in memory.
    model.bench.points.push(Point {
        requests: Vec::new(),
        ..point
    });
    vec![save]
}

/// `C 16`, `30K in`.
pub fn cell_name(cell: &Cell) -> String {
    match cell.kind {
        PlanKind::Throughput => format!("C {}", cell.concurrency),
        PlanKind::LongContext => format!("{} in", short_count(cell.input)),
    }
}

fn finished(model: &mut Model, stopped: bool) -> Vec<Effect> {
    let Some(run) = model.bench.run.take() else {
        return Vec::new();
    };
    let from = model.bench.points.len().saturating_sub(run.points);
    let points: Vec<Point> = model.bench.points.iter().skip(from).cloned().collect();
    let mut effects = vec![Effect::Save(Save::RunEnded { stopped })];
    let result = result(&run, &points, stopped);
    match &result {
        End::Done(Some(note)) => {
            model.say(Tone::Good, format!("{} measured: {note}", run.plan.name))
        }
        End::Failed(why) => model.say(Tone::Bad, format!("{}: {why}", run.plan.name)),
        End::Open(_) | End::Done(None) => {
            let text = format!(
                "{} stopped; {} finished points are kept",
                run.plan.name,
                points.len()
            );
            model.say(Tone::Plain, text);
        }
    }
    if !stopped {
        effects.push(Effect::Notify(Notice(format!("{} done", run.plan.name))));
    }
    let result = with_left_out(model, result);
    let ended = end(model, result);
    if !stopped {
        credit(model);
    }
    effects.push(if stopped {
        ended
    } else {
        super::save_tasks(model)
    });
    if let Some(context) = model.served() {
        effects.push(save_tried(model, context));
    }
    if std::mem::take(&mut model.question_after) && !stopped && model.on_trial() {
        question::arrive(model);
    }
    effects
}

/// Long-context tasks whose inputs were measured along with others are done.
fn credit(model: &mut Model) {
    let measured: Vec<u64> = model
        .bench
        .long_context(None)
        .iter()
        .filter(|p| p.ok > 0)
        .map(|p| p.cell.input)
        .collect();
    for task in &mut model.tasks.list {
        if let TaskKind::LongContext { inputs } = &task.kind
            && task.state == TaskState::Pending
            && inputs.iter().all(|input| measured.contains(input))
        {
            task.state = TaskState::Done { took_ms: 0 };
            task.note = Some("measured along with others".into());
        }
    }
}

/// A long-context task of which a part did not fit stays open for the rest.
fn with_left_out(model: &Model, result: End) -> End {
    let task = model
        .running
        .as_ref()
        .and_then(|r| r.task)
        .and_then(|id| model.tasks.get(id));
    let (Some(TaskKind::LongContext { inputs }), Some(served)) =
        (task.map(|t| &t.kind), model.served())
    else {
        return result;
    };
    let output = plan(model, PlanKind::LongContext).map_or(0, |p| p.output);
    let left: Vec<String> = inputs
        .iter()
        .filter(|i| **i + output > served)
        .map(|i| short_count(*i))
        .collect();
    match result {
        End::Done(note) if !left.is_empty() => End::Done(Some(format!(
            "{}; {} did not fit",
            note.unwrap_or_default(),
            left.join(", ")
        ))),
        other => other,
    }
}

fn result(run: &Run, points: &[Point], stopped: bool) -> End {
    if stopped {
        return End::Open(Some(format!(
            "stopped, {} of {} points kept",
            points.len(),
            run.cells.len()
        )));
    }
    if points.iter().all(|p| p.ok == 0) {
        let why = points
            .iter()
            .flat_map(|p| p.failures.first())
            .map(|(failure, _)| failure.message.clone())
            .next()
            .or_else(|| run.failures.front().map(|f| f.message.clone()))
            .unwrap_or_else(|| "nothing was measured".to_string());
        return End::Failed(format!("every request failed: {why}"));
    }
    let rate = |p: &Point| match run.plan.kind {
        PlanKind::Throughput => p.offered_output(),
        PlanKind::LongContext => p.decode_tok_s.filter(|_| p.speed_counts()),
    };
    let rates: Vec<f64> = points
        .iter()
        .filter(|p| p.validity != Validity::Void && !p.repeat)
        .filter_map(rate)
        .collect();
    let mut note = match (rates.first(), rates.last()) {
        (Some(first), Some(last)) if rates.len() > 1 => format!("{first:.1} … {last:.1} tok/s"),
        (Some(one), _) => format!("{one:.1} tok/s"),
        _ => "no speed that counts".to_string(),
    };
    if let Some(knee) = knee(points) {
        note.push_str(&format!(", saturated at {}", knee.concurrency));
    }
    for (validity, word) in [(Validity::Suspect, "suspect"), (Validity::Void, "void")] {
        let n = points.iter().filter(|p| p.validity == validity).count();
        if n > 0 {
            note.push_str(&format!(", {n} {word}"));
        }
    }
    let failed: u32 = points.iter().map(|p| p.failed).sum();
    if failed > 0 {
        note.push_str(&format!(", {failed} failed"));
    }
    End::Done(Some(note))
}

/// The run could not start.
pub fn failed(model: &mut Model, why: String) -> Vec<Effect> {
    model.bench.run = None;
    model.bench.checks = None;
    model.bench.fault = Some(why.clone());
    model.question_after = false;
    model.say(Tone::Bad, why.clone());
    vec![end(model, End::Failed(why))]
}

/// Ends whatever works on the server, which is gone; what its actor still reports belongs to nothing any more.
pub fn cut_off(model: &mut Model, why: &str) -> Vec<Effect> {
    let stop = match model.running.as_ref().map(|running| running.activity) {
        None => return Vec::new(),
        Some(Activity::Bench) => Some(Effect::StopBench),
        Some(Activity::Checks) => Some(Effect::StopChecks),
        Some(_) => None,
    };
    let mut effects: Vec<Effect> = stop.into_iter().collect();
    model.bench.checks = None;
    if model.bench.run.take().is_some() {
        effects.push(Effect::Save(Save::RunEnded { stopped: true }));
    }
    effects.push(end(model, End::Failed(why.to_string())));
    effects
}

/// Runs the checks at what is served now.
pub fn start_checks(model: &mut Model, task: Option<u64>) -> Vec<Effect> {
    let Some(context) = model.served() else {
        model.say(
            Tone::Warn,
            "the served context is unknown: there is nothing to check against",
        );
        return Vec::new();
    };
    begin(model, Activity::Checks, task);
    model.bench.checks = Some(ChecksView {
        done: 0,
        of: 0,
        name: "starting".into(),
    });
    model.tried_mut(context).checks.clear();
    vec![
        mark(model, MarkKind::Bench, Some(context), Some("checks".into())),
        Effect::StartChecks { context },
    ]
}

/// What the checks report.
pub fn check(model: &mut Model, event: checks::Event) -> Vec<Effect> {
    if is_cut_off(model) {
        return Vec::new();
    }
    let context = model.served();
    match event {
        checks::Event::Started { kind, index, of } => {
            let name = kind.name().to_string();
            let share = u16::try_from(index * 1000 / of.max(1)).ok();
            if let Some(task) = model
                .running
                .as_ref()
                .and_then(|r| r.task)
                .and_then(|id| model.tasks.get_mut(id))
                && let TaskState::Running { since_unix_ms, .. } = task.state
            {
                task.state = TaskState::Running {
                    since_unix_ms,
                    share,
                    left_ms: None,
                };
                task.note = Some(name.clone());
            }
            model.bench.checks = Some(ChecksView {
                done: index,
                of,
                name,
            });
            Vec::new()
        }
        checks::Event::Done(result) => {
            if let Verdict::Failed(why) = &result.verdict {
                let text = format!("check failed: {}: {why}", result.kind.name());
                model.say(Tone::Bad, text);
            }
            let Some(context) = context else {
                return Vec::new();
            };
            model.tried_mut(context).checks.push(result);
            vec![save_tried(model, context)]
        }
        checks::Event::Finished { stopped } => checks_finished(model, context, stopped),
    }
}

fn checks_finished(model: &mut Model, context: Option<u64>, stopped: bool) -> Vec<Effect> {
    model.bench.checks = None;
    let checks = context
        .map(|c| model.tried_mut(c).checks.clone())
        .unwrap_or_default();
    let passed = checks
        .iter()
        .filter(|c| matches!(c.verdict, Verdict::Passed(_)))
        .count();
    let bad: Vec<String> = checks
        .iter()
        .filter_map(|c| match &c.verdict {
            Verdict::Failed(why) => Some(format!("{}: {why}", c.kind.name())),
            _ => None,
        })
        .collect();
    let tally = format!("{passed} of {} passed", checks.len());
    let result = if stopped {
        End::Open(Some(format!("stopped, {tally}")))
    } else if bad.is_empty() {
        model.say(Tone::Good, format!("checks: {tally}"));
        End::Done(Some(tally))
    } else {
        End::Failed(format!("{tally}; {}", bad.join("; ")))
    };
    let mut effects = vec![end(model, result)];
    if !stopped {
        effects.push(Effect::Notify(Notice("checks done".into())));
    }
    effects
}
