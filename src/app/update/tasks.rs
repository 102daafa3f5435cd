//! Enter on a task: the run goes on from there.

use super::super::bench::BlockedCell;
use super::super::effect::Effect;
use super::super::model::{Activity, Model, Tone};
use super::super::rig::Connection;
use super::super::task::{Task, TaskKind, TaskState};
use super::{End, begin, bench, end, question, restart, save_tasks};
use crate::bench::plan::PlanKind;
use crate::ramp::Purpose;
use crate::units::thousands;

/// What Enter would do to the selected task, in two or three words; `None`: nothing.
pub fn possible_act(model: &Model) -> Option<String> {
    let task = model.tasks.selected()?;
    if model.running.is_some() {
        return None;
    }
    match (&task.kind, &task.state) {
        (TaskKind::Own, _) => None,
        (
            _,
            TaskState::Blocked {
                raise_to: Some(to), ..
            },
        ) => Some(format!("raise to {}", thousands(*to))),
        (_, TaskState::Blocked { raise_to: None, .. }) => None,
        (TaskKind::Attach, _) if model.rig.startable => Some("start the server".into()),
        (TaskKind::Attach, _) => Some("attach".into()),
        (TaskKind::Raise { .. }, _) => Some("raise".into()),
        (TaskKind::Decide, _) => Some("decide".into()),
        (TaskKind::Report, _) => Some("write the report".into()),
        _ => Some("run".into()),
    }
}

/// Runs the selected task.
pub fn act(model: &mut Model) -> Vec<Effect> {
    let Some(task) = model.tasks.selected().cloned() else {
        return Vec::new();
    };
    if task.kind == TaskKind::Own {
        model.say(Tone::Plain, "this task is your own: Space ticks it off");
        return Vec::new();
    }
    if let Some(running) = &model.running {
        let text = format!("a {} runs; x stops it", running.activity.words());
        model.say(Tone::Warn, text);
        return Vec::new();
    }
    if let TaskState::Blocked { why, raise_to } = &task.state {
        return unblock(model, &task, why, *raise_to);
    }
    run(model, &task)
}

/// A blocked task takes the operator to the step that frees it.
fn unblock(model: &mut Model, task: &Task, why: &str, raise_to: Option<u64>) -> Vec<Effect> {
    match raise_to {
        Some(to) => {
            let step = model
                .tasks
                .find(|t| t.kind == TaskKind::Raise { to })
                .map(|t| t.id);
            restart::ask(model, Purpose::Change, to, step);
        }
        None => {
            let text = format!(
                "{}: {why}; no step of the ladder is long enough. c sets a context freely",
                task.title
            );
            model.say(Tone::Warn, text);
        }
    }
    Vec::new()
}

fn run(model: &mut Model, task: &Task) -> Vec<Effect> {
    let id = Some(task.id);
    match &task.kind {
        TaskKind::Attach => match start_instead(model) {
            Some(to) => {
                restart::ask(model, Purpose::Start, to, id);
                Vec::new()
            }
            None => attach(model),
        },
        TaskKind::Raise { to } => {
            restart::ask(model, Purpose::Change, *to, id);
            Vec::new()
        }
        TaskKind::Decide => {
            question::open(model);
            Vec::new()
        }
        TaskKind::Report => super::save_rig(model)
            .into_iter()
            .chain([Effect::WriteReport])
            .collect(),
        TaskKind::Own => Vec::new(),
        TaskKind::Smoke
        | TaskKind::Throughput
        | TaskKind::LongContext { .. }
        | TaskKind::Checks { .. }
            if !model.rig.up() =>
        {
            model.say(
                Tone::Warn,
                "no server is attached: Enter on the first task looks for it",
            );
            Vec::new()
        }
        TaskKind::Smoke => {
            begin(model, Activity::Smoke, id);
            vec![Effect::Smoke]
        }
        TaskKind::Throughput => bench::start(model, PlanKind::Throughput, id, |_| true),
        TaskKind::LongContext { inputs } => {
            let base = baseline(model);
            bench::start(model, PlanKind::LongContext, id, |cell| {
                inputs.contains(&cell.input) || Some(cell.input) == base
            })
        }
        TaskKind::Checks { at } => match at.filter(|at| model.running_context() != Some(*at)) {
            Some(at) => {
                let text = format!(
                    "these checks are for {}, the server runs at {}: raise first",
                    thousands(at),
                    model.running_context().map_or("?".into(), thousands)
                );
                model.say(Tone::Warn, text);
                Vec::new()
            }
            None => bench::start_checks(model, id),
        },
    }
}

/// The shortest input of the plan, unless it was measured at this context: what the long ones are compared with.
fn baseline(model: &Model) -> Option<u64> {
    let shortest = bench::plan(model, PlanKind::LongContext)?
        .inputs
        .into_iter()
        .min()?;
    let here = model.bench.long_context(model.served());
    here.iter()
        .all(|p| p.cell.input != shortest)
        .then_some(shortest)
}

fn start_instead(model: &Model) -> Option<u64> {
    if model.rig.startable {
        restart::start_context(model)
    } else {
        None
    }
}

/// Looks for the server.
pub fn attach(model: &mut Model) -> Vec<Effect> {
    let task = model
        .tasks
        .find(|t| t.kind == TaskKind::Attach)
        .map(|t| t.id);
    begin(model, Activity::Attaching, task);
    if !matches!(model.rig.connection, Connection::Restarting) {
        model.rig.connection = Connection::Trying;
    }
    vec![Effect::Attach]
}

/// The report is written, or why not.
pub fn reported(model: &mut Model, result: Result<String, String>) -> Vec<Effect> {
    let id = model
        .tasks
        .find(|t| t.kind == TaskKind::Report)
        .map(|t| t.id);
    let state = match &result {
        Ok(_) => TaskState::Done { took_ms: 0 },
        Err(why) => TaskState::Failed {
            took_ms: 0,
            why: why.clone(),
        },
    };
    if let Some(task) = id.and_then(|id| model.tasks.get_mut(id)) {
        task.state = state;
        task.note = result.as_ref().ok().cloned();
    }
    match result {
        Ok(path) => {
            model.say(Tone::Good, format!("report written: {path}"));
            model.report = Some(path);
        }
        Err(why) => model.say(Tone::Bad, format!("the report could not be written: {why}")),
    }
    vec![save_tasks(model)]
}

/// `b`: the benchmark that fits where the operator stands: the selected task's, else the next open one.
pub fn run_benchmark(model: &mut Model) -> Vec<Effect> {
    let measures = |t: &Task| matches!(t.kind, TaskKind::Throughput | TaskKind::LongContext { .. });
    let open =
        |t: &Task| measures(t) && matches!(t.state, TaskState::Pending | TaskState::Failed { .. });
    let chosen = match model.tasks.selected() {
        Some(task) if measures(task) => Some(task.clone()),
        _ => model.tasks.find(open).cloned(),
    };
    match chosen {
        Some(task) if matches!(task.state, TaskState::Blocked { .. }) => {
            let TaskState::Blocked { why, raise_to } = &task.state else {
                return Vec::new();
            };
            unblock(model, &task, why, *raise_to)
        }
        Some(task) => run(model, &task),
        None => bench::start(model, PlanKind::Throughput, None, |_| true),
    }
}

/// Measures the running context at every input length that fits and was not measured here.
pub fn measure_here(model: &mut Model) -> Vec<Effect> {
    let context = model.served();
    let done: Vec<u64> = model
        .bench
        .long_context(context)
        .iter()
        .map(|p| p.cell.input)
        .collect();
    let blocked: Vec<u64> = model
        .bench
        .blocked
        .iter()
        .map(|b: &BlockedCell| b.cell.input)
        .collect();
    let missing = |input: u64| !done.contains(&input) && !blocked.contains(&input);
    // The open task that asks for some of it shows the progress.
    let wants = |t: &Task| matches!(&t.kind, TaskKind::LongContext { inputs } if inputs.iter().any(|i| missing(*i)));
    let id = model
        .tasks
        .find(|t| t.state == TaskState::Pending && wants(t))
        .map(|t| t.id);
    let plan = bench::plan(model, PlanKind::LongContext);
    let any = plan.is_some_and(|p| p.inputs.iter().any(|i| missing(*i)));
    bench::start(model, PlanKind::LongContext, id, |cell| {
        if any { missing(cell.input) } else { true }
    })
}

/// Stops the present activity, after the operator said yes.
pub fn stop(model: &mut Model) -> Vec<Effect> {
    let Some(running) = &mut model.running else {
        return Vec::new();
    };
    running.stopping = true;
    match running.activity {
        Activity::Bench => vec![Effect::StopBench],
        Activity::Checks => vec![Effect::StopChecks],
        Activity::Restart => vec![Effect::CancelRestart],
        Activity::Attaching | Activity::Smoke => {
            vec![end(model, End::Open(Some("stopped".into())))]
        }
    }
}
