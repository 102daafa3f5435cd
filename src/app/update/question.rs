//! Keeping, adjusting, rolling back.

use super::super::dialog::Dialog;
use super::super::effect::{Effect, Save};
use super::super::evidence::evidence;
use super::super::history::MarkKind;
use super::super::model::{Model, Tone};
use super::super::question::{Decided, Served, keep_plan};
use super::super::task::{TaskKind, TaskState};
use super::{mark, save_tasks};
use crate::confirm::{Answer, Confirmed, Pending};
use crate::ramp::Purpose;
use crate::units::thousands;

use super::super::question::KeepPlan;

/// Opens the question, if a trial runs.
pub fn open(model: &mut Model) {
    if model
        .dialogs
        .iter()
        .any(|d| matches!(d, Dialog::Question(_)))
    {
        return;
    }
    match keep_plan(model) {
        Ok(plan) => {
            model.question_waits = false;
            model.dialogs.push(Dialog::Question(Pending::new(plan)));
        }
        Err(why) => model.say(Tone::Plain, why),
    }
}

/// The operator keeps the trial.
pub fn keep(model: &mut Model, pending: Pending<KeepPlan>) -> Vec<Effect> {
    match pending.answer(model.now) {
        Answer::TooEarly(pending) => {
            model.dialogs.push(Dialog::Question(pending));
            Vec::new()
        }
        Answer::Confirmed(confirmed) => {
            // The world may have changed while the question stood there.
            let now = keep_plan(model).map(|plan| plan.config);
            if now.as_ref() != Ok(&confirmed.action().config) {
                let why = now.err().unwrap_or_else(|| {
                    "the running configuration is another one by now".to_string()
                });
                model.question_waits = model.on_trial();
                model.say(Tone::Bad, format!("not kept: {why}"));
                return Vec::new();
            }
            model.pending_keep = Some(confirmed.action().clone());
            vec![write(confirmed)]
        }
    }
}

fn write(confirmed: Confirmed<KeepPlan>) -> Effect {
    Effect::Keep(confirmed)
}

/// The value is written, or why not.
pub fn kept(model: &mut Model, result: Result<String, String>) -> Vec<Effect> {
    let Some(plan) = model.pending_keep.take() else {
        return Vec::new();
    };
    let value = plan.config.context;
    let how = match result {
        Ok(how) => how,
        Err(why) => {
            model.question_waits = true;
            model.say(Tone::Bad, format!("{} {why}", thousands(value)));
            return Vec::new();
        }
    };
    // As it stands now, and before the value counts as confirmed.
    let evidence = evidence(model);
    if let Some(profile) = &mut model.profile {
        profile.production = Some(value);
    }
    if let Some(service) = &mut model.rig.service {
        service.production = Some(value);
        service.deadline_unix_ms = None;
        if plan.launch_changed {
            model.config.launch_text = crate::profile::launch_text(&plan.config.launch);
            model.config.edited = None;
        }
        service.launch = Some(plan.config.launch.clone());
    }
    let profile = model.profile.as_ref();
    let name = profile.map_or("", |profile| profile.name.as_str());
    let served = Served {
        unix_ms: model.now.unix_ms,
        facts: model.rig.facts.as_ref(),
        simulated: model.simulated(),
        evidence,
    };
    let decided = Decided::new(&plan, &model.who, name, &served);
    model.decisions.push(decided.clone());
    model.question_waits = false;
    let took_ms = 0;
    if let Some(id) = model
        .tasks
        .find(|t| t.kind == TaskKind::Decide)
        .map(|t| t.id)
    {
        if let Some(task) = model.tasks.get_mut(id) {
            task.state = TaskState::Done { took_ms };
            task.note = Some(format!("{} kept", thousands(value)));
        }
        model.tasks.advance(id);
    }
    let text = decided.words(&how);
    model.say(Tone::Good, text.clone());
    vec![
        Effect::Save(Save::Decision(Box::new(decided))),
        mark(model, MarkKind::Decision, Some(value), None),
        save_tasks(model),
        Effect::Save(Save::Event { text }),
    ]
}

/// Back to the production value: with a confirmation of its own.
pub fn roll_back(model: &mut Model) {
    match model.production() {
        Some(value) => super::restart::ask(model, Purpose::RollBack, value, None),
        None => model.say(
            Tone::Warn,
            "no production value is on record: set a context with c instead",
        ),
    }
}
