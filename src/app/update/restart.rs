//! The restart: what is asked for, what it reports, what became of it.

use super::super::config;
use super::super::dialog::{Dialog, DiffLine, Drain, Recovery, RestartDialog};
use super::super::effect::{Effect, Notice, Save};
use super::super::forecast;
use super::super::history::MarkKind;
use super::super::model::{Activity, Model, RestartView, Tone, TriedOutcome};
use super::super::question;
use super::super::rig::Connection;
use super::super::task::TaskKind;
use super::{End, begin, end, mark, reassess, save_rig, save_tried, server};
use crate::confirm::{Confirmed, Pending};
use crate::profile::Launch;
use crate::ramp::{
    Event, Intent, Leg, Outcome, Purpose, RestartPlan, StartFailure, Step, Target, TargetKind,
    WayOut,
};
use crate::service::Config;
use crate::units::{mm_ss, thousands};

/// The context that a first start brings.
pub fn start_context(model: &Model) -> Option<u64> {
    model
        .production()
        .or_else(|| model.config.ladder.first().copied())
}

/// The launch that a change brings: as edited, if the operator edited it.
fn launch(model: &Model) -> Option<Launch> {
    // A change goes on from what runs: an edit that is on trial stays in.
    let running = model
        .rig
        .config
        .as_ref()
        .filter(|_| model.rig.edited_launch)
        .map(|c| c.launch.clone());
    let base = match running {
        Some(launch) => launch,
        None => config::launch(model.profile.as_ref()?)?.clone(),
    };
    let Some(edited) = &model.config.edited else {
        return Some(base);
    };
    let (argv, env) = crate::profile::parse_launch_text(edited).ok()?;
    Some(Launch { argv, env, ..base })
}

/// The plan of a restart, with all its ways out. `None` where vramp cannot start this server.
pub fn plan(model: &Model, purpose: Purpose, context: u64) -> Option<RestartPlan> {
    let launch = match purpose {
        Purpose::Change => launch(model)?,
        Purpose::Start | Purpose::RollBack => config::launch(model.profile.as_ref()?)?.clone(),
    };
    let from = model.rig.config.clone();
    let to = Config { context, launch };
    let on_failure = match (&model.rig.last_good, &from) {
        (Some(good), _) if *good != to => Some(Target {
            kind: TargetKind::LastGood,
            config: good.clone(),
        }),
        (_, Some(from)) if *from != to => Some(Target {
            kind: TargetKind::Previous,
            config: from.clone(),
        }),
        _ => None,
    };
    Some(RestartPlan {
        purpose,
        from,
        to,
        on_failure,
        production: model.production(),
    })
}

/// Asks for a restart at `context`, or says why it cannot be.
pub fn ask(model: &mut Model, purpose: Purpose, context: u64, task: Option<u64>) {
    if let Some(why) = &model.settings.read_only {
        let why = why.clone();
        model.say(
            Tone::Warn,
            format!("{why}: nothing can be restarted from here"),
        );
        return;
    }
    if let Some(running) = &model.running {
        let text = format!("a {} runs; x stops it", running.activity.words());
        model.say(Tone::Warn, text);
        return;
    }
    if model.rig.service.is_none() {
        model.say(
            Tone::Warn,
            "this server is only attached: put how it is run into a profile ([profile.NAME.process]) and vramp can restart it",
        );
        return;
    }
    if model.rig.up() && model.rig.config.is_none() {
        model.say(
            Tone::Warn,
            "vramp did not start this server and does not stop it. Stop it yourself, then Enter on the first task starts it here",
        );
        return;
    }
    if let Some(error) = &model.config.error
        && purpose == Purpose::Change
    {
        let text = format!("the launch text has a fault: {error}");
        model.say(Tone::Bad, text);
        return;
    }
    let purpose = if model.rig.config.is_none() {
        Purpose::Start
    } else {
        purpose
    };
    let Some(plan) = plan(model, purpose, context) else {
        return;
    };
    if plan.from.as_ref() == Some(&plan.to) && model.rig.up() {
        let text = format!(
            "the server already runs with a context of {}",
            thousands(context)
        );
        model.say(Tone::Plain, text);
        return;
    }
    let dialog = RestartDialog {
        forecast: forecast::lines(model, context),
        warnings: forecast::warnings(model, &plan),
        diff: diff(plan.from.as_ref(), &plan.to),
        pending: Pending::new(plan),
        task,
        drain: None,
    };
    model.dialogs.push(Dialog::Restart(Box::new(dialog)));
}

/// The launch that runs against the one that will, filled in, line by line.
pub fn diff(from: Option<&Config>, to: &Config) -> Vec<DiffLine> {
    let text = |config: &Config| {
        crate::service::render(config)
            .map(|filled| {
                crate::profile::launch_text(&Launch {
                    argv: filled.argv,
                    env: filled.env,
                    ..config.launch.clone()
                })
            })
            .unwrap_or_else(|error| error)
    };
    diff_text(&from.map(text).unwrap_or_default(), &text(to))
}

/// Two texts, line by line.
pub fn diff_text(old: &str, new: &str) -> Vec<DiffLine> {
    similar::TextDiff::from_lines(old, new)
        .iter_all_changes()
        .map(|change| {
            let line = change.value().trim_end_matches('\n').to_string();
            match change.tag() {
                similar::ChangeTag::Equal => DiffLine::Same(line),
                similar::ChangeTag::Delete => DiffLine::Removed(line),
                similar::ChangeTag::Insert => DiffLine::Added(line),
            }
        })
        .collect()
}

/// The operator waits for other people's requests to end.
pub fn drain(model: &mut Model) {
    let now = model.now;
    if let Some(Dialog::Restart(dialog)) = model.dialogs.last_mut() {
        dialog.drain.get_or_insert(Drain {
            since: now,
            quiet_since: None,
        });
    }
    watch_drain(model);
}

/// Looks whether others still use the server.
pub fn watch_drain(model: &mut Model) {
    let (now, foreign) = (model.now, model.foreign());
    if let Some(Dialog::Restart(dialog)) = model.dialogs.last_mut()
        && let Some(drain) = &mut dialog.drain
    {
        drain.quiet_since = match foreign {
            Some(0) => drain.quiet_since.or(Some(now)),
            _ => None,
        };
    }
}

/// The operator said yes.
pub fn confirmed(
    model: &mut Model,
    confirmed: Confirmed<RestartPlan>,
    task: Option<u64>,
) -> Vec<Effect> {
    let plan = confirmed.action().clone();
    let task = task.or_else(|| task_for(model, &plan));
    take_over(model, &plan, task);
    vec![Effect::Restart(confirmed)]
}

fn task_for(model: &Model, plan: &RestartPlan) -> Option<u64> {
    let wanted = match plan.purpose {
        Purpose::Start => TaskKind::Attach,
        _ => TaskKind::Raise {
            to: plan.to.context,
        },
    };
    model.tasks.find(|t| t.kind == wanted).map(|t| t.id)
}

/// A restart begins.
pub fn take_over(model: &mut Model, plan: &RestartPlan, task: Option<u64>) {
    begin(model, Activity::Restart, task);
    model.restart = Some(RestartView::new(plan, model.now));
    model.question_waits = false;
    model.question_after = false;
}

/// What the restart reports.
pub fn event(model: &mut Model, event: Event) -> Vec<Effect> {
    match event {
        Event::Step { leg, step, context } => step_begins(model, leg, step, context),
        Event::CardsHeld(held) => {
            if let Some(view) = &mut model.restart {
                view.held = held;
            }
            Vec::new()
        }
        Event::Phase { phase, percent } => {
            if let Some(view) = &mut model.restart {
                view.phase = Some(phase);
                view.percent = percent;
            }
            Vec::new()
        }
        Event::Log(line) => {
            super::log(model, vec![line]);
            Vec::new()
        }
        Event::Ended(outcome) => ended(model, outcome),
    }
}

fn step_begins(model: &mut Model, leg: Leg, step: Step, context: u64) -> Vec<Effect> {
    let served = model
        .served()
        .or(model.restart.as_ref().and_then(|v| v.from));
    let turned = model
        .restart
        .as_ref()
        .is_some_and(|v| v.leg == Leg::Forward && leg == Leg::Back);
    if turned {
        let asked = model.restart.as_ref().map_or(0, |v| v.asked.context);
        let text = format!(
            "{} failed: going back to {}",
            thousands(asked),
            thousands(context)
        );
        if let Some(task) = model
            .running
            .as_ref()
            .and_then(|r| r.task)
            .and_then(|id| model.tasks.get_mut(id))
        {
            task.note = Some(text.clone());
        }
        model.say(Tone::Warn, text);
    }
    if let Some(view) = &mut model.restart {
        view.leg = leg;
        view.step = step;
        view.to = context;
        view.phase = None;
        view.percent = None;
        view.held.clear();
    }
    match step {
        Step::Stop => {
            model.rig.connection = Connection::Restarting;
            model.rig.smoke_passed = None;
            // A first start has nothing to stop.
            let first = model
                .restart
                .as_ref()
                .is_some_and(|v| v.from.is_none() && leg == Leg::Forward);
            if first {
                Vec::new()
            } else {
                vec![mark(model, MarkKind::Stop, served, None)]
            }
        }
        Step::Start => {
            model.rig.connection = Connection::Restarting;
            vec![mark(model, MarkKind::Start, Some(context), None)]
        }
        _ => Vec::new(),
    }
}

fn ended(model: &mut Model, outcome: Outcome) -> Vec<Effect> {
    model.rig.load = crate::engine::Load::default();
    match outcome {
        Outcome::Ready { facts, took_ms } => ready(model, *facts, took_ms),
        Outcome::Refused { failure } => refused(model, failure_words(&failure)),
        Outcome::RolledBack { failure, to, facts } => rolled_back(model, &failure, to, *facts),
        Outcome::Halted { failure, back } => halted(model, &failure, back.as_ref()),
    }
}

fn ready(model: &mut Model, facts: crate::engine::Facts, took_ms: u64) -> Vec<Effect> {
    let Some(view) = model.restart.clone() else {
        return Vec::new();
    };
    let edited = model.config.edited.is_some() && view.purpose == Purpose::Change;
    serve(model, view.asked.clone(), facts);
    if edited {
        // What was edited is in service now, as a trial.
        model.config.launch_text = crate::profile::launch_text(&view.asked.launch);
        model.config.edited = None;
    }
    model.rig.edited_launch =
        view.purpose == Purpose::Change && (edited || model.rig.edited_launch);
    let context = view.asked.context;
    let served = model.served().unwrap_or(context);
    if let Some(profile) = &mut model.profile
        && profile.production.is_none()
        && view.purpose == Purpose::Start
    {
        // Nothing was ever confirmed: what was started first is what a later start brings, and so no trial.
        profile.production = Some(context);
    }
    super::note_tightest(model);
    {
        let tried = model.tried_mut(served);
        tried.outcome = TriedOutcome::Served;
        tried.start_ms = Some(took_ms);
    }
    let text = format!(
        "{} answered its first token after {}, context read back {}",
        thousands(context),
        mm_ss(took_ms),
        thousands(served)
    );
    model.say(Tone::Good, text.clone());
    finish_view(model, format!("ready after {}", mm_ss(took_ms)));
    let mut effects = vec![
        mark(model, MarkKind::Ready, Some(context), None),
        save_tried(model, served),
        end(
            model,
            End::Done(Some(format!(
                "ready after {}, {} read back",
                mm_ss(took_ms),
                thousands(served)
            ))),
        ),
        Effect::Save(Save::Event { text }),
        Effect::Notify(Notice(format!("server ready at {}", thousands(context)))),
    ];
    effects.push(Effect::Watch);
    effects.extend(save_rig(model));
    if view.purpose == Purpose::Change && model.on_trial() {
        server::wait_for_decision(model);
        question::arrive(model);
        effects.push(super::save_tasks(model));
    }
    effects
}

/// `config` is in service and proven.
fn serve(model: &mut Model, config: Config, facts: crate::engine::Facts) {
    model.rig.connection = Connection::Up { since: model.now };
    model.rig.serving_since = Some(model.now);
    model.rig.startable = false;
    model.rig.unfinished = false;
    model.config.chosen = Some(config.context);
    model.rig.config = Some(config);
    server::take_facts(model, facts);
    server::passed_smoke(model);
    server::settle_decision(model);
    reassess(model);
}

fn finish_view(model: &mut Model, words: String) {
    if let Some(view) = &mut model.restart {
        view.ended = Some(words);
        view.held.clear();
    }
}

/// Nothing was stopped.
pub fn refused(model: &mut Model, why: String) -> Vec<Effect> {
    finish_view(model, format!("refused: {why}"));
    model.say(Tone::Bad, format!("not restarted: {why}"));
    if matches!(model.rig.connection, Connection::Restarting) {
        model.rig.connection = Connection::None;
    }
    vec![end(model, End::Failed(why)), Effect::Attach]
}

fn rolled_back(
    model: &mut Model,
    failure: &StartFailure,
    to: Target,
    facts: crate::engine::Facts,
) -> Vec<Effect> {
    let asked = model.restart.as_ref().map_or(0, |v| v.asked.context);
    if model.restart.as_ref().is_some_and(|v| v.interrupted) {
        return brought_back(model, asked, to, facts);
    }
    let why = failure_words(failure);
    failed_value(model, asked, &why);
    let back = to.config.context;
    serve(model, to.config, facts);
    model.config.chosen = failure.suggests.filter(|s| *s > 0).or(Some(back));
    let text = format!(
        "{} failed, {} ({}) is back in service, proven with a token: {why}",
        thousands(asked),
        thousands(back),
        to.kind.words()
    );
    model.say(Tone::Bad, text.clone());
    finish_view(model, format!("failed, {} is back", thousands(back)));
    let mut effects = vec![
        mark(model, MarkKind::Failed, Some(asked), None),
        mark(model, MarkKind::Ready, Some(back), None),
        save_tried(model, asked),
        save_tried(model, back),
        Effect::Save(Save::Event { text }),
        Effect::Notify(Notice(format!(
            "{} failed, {} is back in service",
            thousands(asked),
            thousands(back)
        ))),
    ];
    effects.push(Effect::Watch);
    effects.push(end(
        model,
        End::Failed(format!("{} is back in service: {why}", thousands(back))),
    ));
    effects
}

/// The operator brought the earlier value back from an interrupted restart: nothing failed.
fn brought_back(
    model: &mut Model,
    asked: u64,
    to: Target,
    facts: crate::engine::Facts,
) -> Vec<Effect> {
    let back = to.config.context;
    serve(model, to.config, facts);
    let text = format!(
        "{} ({}) is back in service, proven with a token; the restart at {} was interrupted",
        thousands(back),
        to.kind.words(),
        thousands(asked)
    );
    model.say(Tone::Good, text.clone());
    finish_view(model, format!("interrupted, {} is back", thousands(back)));
    vec![
        mark(model, MarkKind::Ready, Some(back), None),
        save_tried(model, back),
        Effect::Watch,
        Effect::Save(Save::Event { text }),
        end(
            model,
            End::Open(Some(format!(
                "interrupted; {} was brought back",
                thousands(back)
            ))),
        ),
    ]
}

fn halted(model: &mut Model, failure: &StartFailure, back: Option<&StartFailure>) -> Vec<Effect> {
    let asked = model.restart.as_ref().map_or(0, |v| v.asked.context);
    let why = failure_words(failure);
    failed_value(model, asked, &why);
    let back_words = match back {
        Some(back) => format!("the way back failed too: {}", failure_words(back)),
        None => "there was nothing to go back to".to_string(),
    };
    let text = format!(
        "{} failed: {why} · {back_words} · nothing more happens without you",
        thousands(asked)
    );
    model.say(Tone::Bad, text.clone());
    finish_view(model, "failed, no server in service".to_string());
    model.rig.config = None;
    model.rig.facts = None;
    model.rig.startable = true;
    model.rig.connection = Connection::None;
    vec![
        mark(model, MarkKind::Failed, Some(asked), None),
        save_tried(model, asked),
        Effect::Save(Save::Event { text: text.clone() }),
        Effect::Notify(Notice(text)),
        end(model, End::Failed(format!("{why}; {back_words}"))),
        Effect::Attach,
    ]
}

fn failed_value(model: &mut Model, context: u64, why: &str) {
    model.tried_mut(context).outcome = TriedOutcome::Failed(why.to_string());
}

/// A failed start in one line: what, the decisive line, what to do.
pub fn failure_words(failure: &StartFailure) -> String {
    let mut words = failure.cause.clone();
    if let Some(line) = &failure.line
        && !words.contains(line.as_str())
    {
        words.push_str(&format!(" — {line}"));
    }
    if let Some(advice) = &failure.advice {
        words.push_str(&format!(" · {advice}"));
    }
    if let Some(suggests) = failure.suggests {
        words.push_str(&format!(" · try {}", thousands(suggests)));
    }
    words
}

/// An unfinished restart was found.
pub fn found(model: &mut Model, intent: Intent) {
    model.say(
        Tone::Warn,
        format!(
            "an unfinished restart was found, at the step \"{}\"",
            intent.step.words()
        ),
    );
    model.rig.unfinished = true;
    let recovery = Recovery {
        go_on: Pending::new((intent.clone(), WayOut::GoOn)),
        roll_back: Pending::new((intent, WayOut::RollBack)),
    };
    model.dialogs.retain(|d| !matches!(d, Dialog::Recovery(_)));
    model.dialogs.push(Dialog::Recovery(Box::new(recovery)));
}

/// The operator chose a way out of an unfinished restart.
pub fn recover(model: &mut Model, confirmed: Confirmed<(Intent, WayOut)>) -> Vec<Effect> {
    let plan = confirmed.action().0.plan.clone();
    let task = task_for(model, &plan);
    let interrupted =
        confirmed.action().1 == WayOut::RollBack && confirmed.action().0.failure.is_none();
    take_over(model, &plan, task);
    if let Some(view) = &mut model.restart {
        view.interrupted = interrupted;
    }
    vec![Effect::Recover(confirmed)]
}
