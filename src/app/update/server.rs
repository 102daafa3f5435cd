//! The server: found, lost, smoke-tested, watched.

use super::super::dialog::Dialog;
use super::super::effect::{Effect, Save};
use super::super::forecast;
use super::super::history::MarkKind;
use super::super::model::{Activity, Model, Tone};
use super::super::msg::Attached;
use super::super::rig::{Connection, ServiceView};
use super::super::task::{TaskKind, TaskState};
use super::{End, end, pool, reassess, restart, save_rig, save_tried};
use crate::engine::{EngineError, Facts, Probe};
use crate::profile::ServiceSpec;
use crate::ramp::{self, Purpose};
use crate::service::Config;
use crate::units::{model_name, thousands};

/// A configuration is good when it passed the smoke test and then served for this long.
const GOOD_AFTER_MS: u64 = 60_000;

/// One second passed.
pub fn tick(model: &mut Model) -> Vec<Effect> {
    let mut effects = Vec::new();
    restart::watch_drain(model);
    effects.extend(super::deadline::tick(model));
    effects.extend(forecast::settle(model));
    if let Some(running) = &model.running
        && matches!(running.activity, Activity::Bench)
        && let (Some(id), Some(run)) = (running.task, &model.bench.run)
    {
        let (share, left_ms) = (run.share(), run.live.run_left_ms);
        if let Some(task) = model.tasks.get_mut(id)
            && let TaskState::Running { since_unix_ms, .. } = task.state
        {
            task.state = TaskState::Running {
                since_unix_ms,
                share: Some(share),
                left_ms,
            };
        }
    }
    if model.rig.up()
        && let (Some(passed), Some(config)) = (model.rig.smoke_passed, &model.rig.config)
        && model.now.since(passed) >= GOOD_AFTER_MS
        && model.rig.last_good.as_ref() != Some(config)
        && !matches!(
            model.running.as_ref().map(|r| r.activity),
            Some(Activity::Restart)
        )
    {
        let config = config.clone();
        model.rig.last_good = Some(config.clone());
        effects.push(Effect::LastGood(config));
    }
    effects
}

/// The server answers and said what it is.
pub fn attached(model: &mut Model, attached: Attached) -> Vec<Effect> {
    model.rig.connection = Connection::Up { since: model.now };
    take_service(model, attached.service);
    model.rig.config = attached.config;
    model.rig.last_good = attached
        .last_good
        .filter(|good| ramp::fits(good, model.launch(), model.rig.config.as_ref()));
    model.rig.serves_anew(model.now);
    model.rig.smoke_passed = None;
    model.rig.startable = false;
    let note = describe(&attached.facts);
    take_facts(model, attached.facts);
    model.config.chosen = model.running_context().or(model.config.chosen);
    super::deadline::found(model);
    if model.can_restart() && model.rig.config.is_some() && model.on_trial() {
        model.question_waits = true;
        wait_for_decision(model);
    } else {
        settle_decision(model);
    }
    let mut effects: Vec<Effect> = save_rig(model).into_iter().collect();
    if let Some(context) = model.served() {
        effects.push(save_tried(model, context));
    }
    reassess(model);
    if matches!(
        model.running.as_ref().map(|r| r.activity),
        Some(Activity::Attaching)
    ) {
        let odd = model
            .rig
            .facts
            .as_ref()
            .and_then(|f| f.notes.first().cloned());
        match model.settings.read_only.clone().or(odd) {
            Some(odd) => model.say(Tone::Warn, format!("attached: {note} · {odd}")),
            None => model.say(Tone::Good, format!("attached: {note}")),
        }
        effects.push(end(model, End::Done(Some(note))));
    }
    effects
}

/// Takes what the service says of itself; the text of its launch is shown unless it is being edited.
pub fn take_service(model: &mut Model, service: Option<ServiceView>) {
    let Some(service) = service else { return };
    if let Some(launch) = &service.launch
        && model.config.edited.is_none()
        && model.config.editing.is_none()
    {
        model.config.launch_text = crate::profile::launch_text(launch);
    }
    if let Some(profile) = &mut model.profile
        && service.production.is_some()
        && profile.production != service.production
    {
        // The walk begins at what the service brings; known only now.
        profile.production = service.production;
        model.tasks.walk_anew(profile, model.settings.quick);
    }
    model.rig.service = Some(service);
}

/// Shows on the list that the decision waits.
pub fn wait_for_decision(model: &mut Model) {
    if let Some(id) = model
        .tasks
        .find(|t| t.kind == TaskKind::Decide)
        .map(|t| t.id)
        && let Some(task) = model.tasks.get_mut(id)
    {
        task.state = TaskState::Waiting;
    }
}

/// Without a trial nothing waits to be decided.
pub fn settle_decision(model: &mut Model) {
    if model.on_trial() {
        return;
    }
    model.question_waits = false;
    let decide = model
        .tasks
        .list
        .iter_mut()
        .find(|t| t.kind == TaskKind::Decide && t.state == TaskState::Waiting);
    if let Some(task) = decide {
        task.state = TaskState::Pending;
    }
}

fn describe(facts: &Facts) -> String {
    let mut parts = vec![facts.kind.name().to_string()];
    if let Some(version) = facts.version.known() {
        parts.push(version.clone());
    }
    if let Some(model) = facts.model.known() {
        parts.push(model_name(model).to_string());
    }
    match facts
        .context
        .effective
        .known()
        .or(facts.context.configured.known())
    {
        Some(context) => parts.push(format!("{} tokens", thousands(*context))),
        None => parts.push("context unknown".to_string()),
    }
    parts.join(" · ")
}

/// Takes what the server says of itself.
pub fn take_facts(model: &mut Model, mut facts: Facts) {
    pool::of_slots(model, &mut facts);
    model.rig.facts = Some(facts.clone());
    let config = model.rig.config.clone();
    if let Some(context) = model.served() {
        model.tried_mut(context).serves(&facts, config);
    }
    pool::count_whole_requests(model);
}

/// The facts again, after the server was away or changed.
pub fn facts(model: &mut Model, facts: Facts) -> Vec<Effect> {
    let back = matches!(model.rig.connection, Connection::Down { .. });
    if back {
        model.say(
            Tone::Good,
            format!("the server answers again: {}", describe(&facts)),
        );
        model.rig.serves_anew(model.now);
        model.rig.smoke_passed = None;
    }
    if !model.rig.up() && !matches!(model.rig.connection, Connection::Restarting) {
        model.rig.connection = Connection::Up { since: model.now };
    }
    take_facts(model, facts);
    reassess(model);
    let mut effects = Vec::new();
    if back {
        let context = model.running_context();
        effects.push(super::mark(model, MarkKind::Back, context, None));
    }
    let note = model.rig.facts.as_ref().map(describe);
    let attach = model
        .tasks
        .list
        .iter_mut()
        .find(|t| t.kind == TaskKind::Attach);
    if let Some(task) = attach.filter(|t| matches!(t.state, TaskState::Failed { .. })) {
        task.state = TaskState::Done { took_ms: 0 };
        task.note = note;
        effects.push(super::save_tasks(model));
    }
    effects
}

/// Nothing runs where the server should be, and vramp knows how to start it.
pub fn absent(
    model: &mut Model,
    service: Option<ServiceView>,
    error: EngineError,
    exit: Option<String>,
) -> Vec<Effect> {
    let startable = service.is_some();
    take_service(model, service);
    if matches!(model.rig.connection, Connection::Restarting) {
        return Vec::new();
    }
    if model.rig.coming_back.is_some() {
        // Something else is about to start it.
        return Vec::new();
    }
    let mut effects: Vec<Effect> = lost(model).into_iter().collect();
    model.rig.startable = startable;
    model.rig.config = None;
    model.rig.facts = None;
    model.rig.connection = Connection::Down {
        since: model.now,
        error: error.clone(),
    };
    effects.extend(nobody_there(model, startable, error, exit));
    effects
}

/// It is started, or offered to be.
fn nobody_there(
    model: &mut Model,
    startable: bool,
    error: EngineError,
    exit: Option<String>,
) -> Vec<Effect> {
    let by_itself = model.profile.as_ref().is_some_and(
        |p| matches!(p.service, ServiceSpec::Process { start_when_absent, .. } if start_when_absent),
    ) && !just_restarted(model);
    if model
        .dialogs
        .iter()
        .any(|d| matches!(d, Dialog::Recovery(_)))
    {
        // How the server comes back is what the operator is being asked.
        return vec![end(
            model,
            End::Failed("an unfinished restart waits for your answer".into()),
        )];
    }
    let Some(to) = restart::start_context(model).filter(|_| startable && model.can_restart())
    else {
        return unreachable(model, error);
    };
    if by_itself
        && !std::mem::replace(&mut model.rig.auto_started, true)
        && let Some(plan) = restart::plan(model, Purpose::Start, to)
    {
        let task = model.running.as_ref().and_then(|r| r.task);
        restart::take_over(model, &plan, task);
        return vec![Effect::StartAbsent(plan)];
    }
    let why = format!("nothing runs; Enter starts it at {}", thousands(to));
    let offer = format!("Enter on the first task starts it at {}", thousands(to));
    match exit {
        Some(exit) => model.say(Tone::Bad, format!("{exit} · {offer} · L shows its log")),
        None => model.say(Tone::Warn, format!("no server runs: {offer} · {error}")),
    }
    vec![end(model, End::Failed(why))]
}

/// The first minute after a restart: its own watch brings back what came before.
fn just_restarted(model: &Model) -> bool {
    let young = |since| model.now.since(since) < GOOD_AFTER_MS;
    model.rig.serving_since.is_some_and(young)
        && model.restart.as_ref().is_some_and(|view| {
            view.ended.is_some() && view.purpose != Purpose::Start && view.way_back.is_some()
        })
}

/// Our own process runs and does not answer: it loads still, hangs, or listens elsewhere.
pub fn silent(
    model: &mut Model,
    service: Option<ServiceView>,
    pid: u32,
    config: Option<Config>,
    error: EngineError,
) -> Vec<Effect> {
    let mark = lost(model);
    take_service(model, service);
    model.rig.config = config;
    model.rig.startable = false;
    model.rig.smoke_passed = None;
    model.rig.connection = Connection::Down {
        since: model.now,
        error: error.clone(),
    };
    let text = format!(
        "the server (pid {pid}) runs but does not answer: it may still load, L shows its log; the command roll-back (:) \
         restarts it at the production value · {error}"
    );
    model.say(Tone::Warn, text);
    let why = format!("pid {pid} runs but does not answer");
    let mut effects = vec![end(model, End::Failed(why))];
    effects.extend(mark);
    effects
}

/// The server does not answer as one.
pub fn unreachable(model: &mut Model, error: EngineError) -> Vec<Effect> {
    if matches!(model.rig.connection, Connection::Restarting) {
        return Vec::new();
    }
    let loaded = matches!(
        model.running.as_ref().map(|r| r.activity),
        Some(Activity::Bench | Activity::Checks | Activity::Smoke)
    );
    if loaded && !matches!(error, EngineError::Refused { .. }) {
        // Under our own load its pages may be slow; the requests themselves tell whether it lives.
        return Vec::new();
    }
    let was_up = model.rig.up();
    let mark = lost(model);
    if was_up
        || !matches!(&model.rig.connection, Connection::Down { error: known, .. } if *known == error)
    {
        model.say(Tone::Bad, error.to_string());
        model.rig.connection = Connection::Down {
            since: model.now,
            error: error.clone(),
        };
    }
    model.rig.smoke_passed = None;
    model.rig.load = crate::engine::Load::default();
    if model
        .dialogs
        .iter()
        .any(|d| matches!(d, Dialog::Question(_)))
    {
        // What is asked about does not serve any more.
        model.dialogs.retain(|d| !matches!(d, Dialog::Question(_)));
        model.question_waits = true;
    }
    let mut effects = Vec::new();
    if matches!(
        model.running.as_ref().map(|r| r.activity),
        Some(Activity::Attaching)
    ) {
        effects.push(end(model, End::Failed(error.to_string())));
    }
    if was_up {
        let text = format!("the server is lost: {error}");
        effects.push(Effect::Save(Save::Event { text }));
    }
    effects.extend(mark);
    effects
}

/// Marks the moment at which a server that was up is there no more.
fn lost(model: &mut Model) -> Option<Effect> {
    let context = model.running_context();
    let up = model.rig.up();
    up.then(|| super::mark(model, MarkKind::Lost, context, None))
}

/// The answer to the smoke question.
pub fn smoke(model: &mut Model, result: Result<Probe, EngineError>) -> Vec<Effect> {
    if !matches!(
        model.running.as_ref().map(|r| r.activity),
        Some(Activity::Smoke)
    ) {
        return Vec::new();
    }
    let verdict = match result {
        Ok(probe) => crate::bench::smoke::judge_smoke(&probe.text, probe.output_tokens).map(|()| {
            let first: String = probe
                .text
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .chars()
                .take(60)
                .collect();
            format!("\"{first}\" in {}", crate::units::duration(probe.ms as f64))
        }),
        Err(error) => Err(error.to_string()),
    };
    match verdict {
        Ok(note) => {
            passed_smoke(model);
            model.say(Tone::Good, format!("the model answers: {note}"));
            let mut effects = vec![end(model, End::Done(Some(note)))];
            if let Some(context) = model.served() {
                effects.push(save_tried(model, context));
            }
            effects
        }
        Err(why) => {
            model.rig.smoke_passed = None;
            model.say(Tone::Bad, format!("smoke test: {why}"));
            vec![end(model, End::Failed(why))]
        }
    }
}

/// The running configuration passed the smoke test now.
pub fn passed_smoke(model: &mut Model) {
    model.rig.smoke_passed = Some(model.now);
    let unix_ms = model.now.unix_ms;
    if let Some(context) = model.served() {
        model.tried_mut(context).smoke_unix_ms = Some(unix_ms);
    }
}
