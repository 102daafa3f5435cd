//! The restart: what it reports while it goes on, and what became of it.

use super::super::dialog::Dialog;
use super::super::effect::{Effect, Notice, Save};
use super::super::history::MarkKind;
use super::super::model::{Activity, Model, Tone, TriedOutcome};
use super::super::question;
use super::super::rig::Connection;
use super::super::task::TaskKind;
use super::pool;
use super::{End, begin, bench, cards, end, mark, reassess, save_rig, save_tried, server};
use crate::engine::Phase;
use crate::ramp::{Event, Leg, Outcome, Purpose, StartFailure, Step, Target};
use crate::service::Config;
use crate::units::{mm_ss, thousands};

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
        Event::CardsOccupied(occupied) => cards::occupied(model, occupied),
        Event::Phase { phase, progress } => {
            let Some(view) = &mut model.restart else {
                return Vec::new();
            };
            let last = view.phase.replace((phase, progress));
            view.still = None;
            // It begins with the mark of the start itself.
            if phase == Phase::Starting || last.is_some_and(|(last, _)| last == phase) {
                return Vec::new();
            }
            let (context, words) = (view.to, phase.words().to_string());
            vec![super::mark(
                model,
                MarkKind::Phase,
                Some(context),
                Some(words),
            )]
        }
        Event::Still(words) => {
            if let Some(words) = &words {
                model.say(Tone::Warn, words.clone());
            }
            if let Some(view) = &mut model.restart {
                view.still = words;
            }
            Vec::new()
        }
        Event::Measured(measured) => {
            if let Some(view) = &mut model.restart {
                view.measured = Some(measured);
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
    cards::withdraw(model);
    let mut effects = crashed(model, leg);
    effects.extend(take_step(model, leg, step, context));
    effects
}

/// A restart that is over takes a step back: what it left crashed in its first minute, and this began by itself.
fn crashed(model: &mut Model, leg: Leg) -> Vec<Effect> {
    let over = model.restart.as_ref().is_some_and(|v| v.ended.is_some());
    if !over || leg != Leg::Back {
        return Vec::new();
    }
    let mut effects = bench::cut_off(model, "the server crashed");
    let asked = model.restart.as_ref().map_or(0, |v| v.asked.context);
    let task = model
        .tasks
        .find(|t| t.kind == TaskKind::Raise { to: asked });
    let task = task.map(|t| t.id);
    begin(model, Activity::Restart, task);
    model.question_waits = false;
    model.question_after = false;
    let about_it = |d: &Dialog| matches!(d, Dialog::Question(_) | Dialog::Restart(_));
    model.dialogs.retain(|d| !about_it(d));
    if let Some(view) = &mut model.restart {
        view.ended = None;
        view.since = model.now;
    }
    effects.push(Effect::LookAway);
    effects
}

fn take_step(model: &mut Model, leg: Leg, step: Step, context: u64) -> Vec<Effect> {
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
        view.still = None;
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
    cards::withdraw(model);
    model.rig.load = crate::engine::Load::default();
    match outcome {
        Outcome::Ready { facts, took_ms } => ready(model, *facts, took_ms),
        Outcome::Refused { failure } => refused(model, failure.words()),
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
    model.rig.serves_anew(model.now);
    model.rig.startable = false;
    model.rig.unfinished = false;
    model.config.chosen = Some(config.context);
    model.rig.config = Some(config);
    server::take_facts(model, facts);
    // It is saved with all that is known of this start.
    let _ = pool::note(model);
    let measured = model.restart.as_mut().and_then(|view| view.measured.take());
    if let (Some(measured), Some(served)) = (measured, model.served()) {
        model.tried_mut(served).measured = Some(measured);
        pool::count_whole_requests(model);
    }
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
    let why = failure.words();
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
    let why = failure.words();
    failed_value(model, asked, &why);
    let back_words = match back {
        Some(back) => format!("the way back failed too: {}", back.words()),
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
