//! The deadline of a trial: a key gives it, renews it or takes it away; when it has passed, the production value comes back without us,
//! and the cockpit finds it.

use super::super::deadline::{next, words};
use super::super::dialog::Dialog;
use super::super::effect::{Effect, Notice, Save};
use super::super::forecast;
use super::super::model::{Activity, Model, Tone};
use super::server;
use crate::ramp::Purpose;
use crate::units::thousands;

/// How often the server is looked for while it comes back.
const LOOK_MS: u64 = 3_000;
/// It is not waited for longer than this.
const PATIENCE_MS: u64 = 30 * 60_000;

/// One second passed.
pub fn tick(model: &mut Model) -> Vec<Effect> {
    let restarting = matches!(
        model.running.as_ref().map(|r| r.activity),
        Some(Activity::Restart)
    );
    let mut effects = Vec::new();
    if model.deadline_left_ms() == Some(0) && !restarting {
        passed(model, &mut effects);
    }
    let Some(since) = model.rig.coming_back else {
        return effects;
    };
    let waited = model.now.since(since);
    if restarting || waited > PATIENCE_MS {
        model.rig.coming_back = None;
    } else if waited / LOOK_MS != waited.saturating_sub(1_000) / LOOK_MS {
        effects.push(Effect::Attach);
    }
    effects
}

/// Why the trial that is asked for, or runs, can have no deadline.
fn refusal(model: &Model) -> Option<String> {
    let service = model.rig.service.as_ref();
    if let Some(why) = service.and_then(|service| service.no_deadline.as_ref()) {
        return Some(why.clone());
    }
    let none = model.production().is_none();
    none.then(|| "no production value is on record that could come back".to_string())
}

/// What the key brings now in the topmost dialog; `None` where it brings nothing.
pub fn offered(model: &Model) -> Option<Option<u64>> {
    if refusal(model).is_some() {
        return None;
    }
    let own = model.profile.as_ref()?.confirm_within_s;
    match model.dialog()? {
        Dialog::Restart(dialog) => {
            let plan = dialog.pending.action();
            let trial = plan.purpose == Purpose::Change && plan.production != Some(plan.to.context);
            trial.then(|| next(plan.deadline_s, own))
        }
        Dialog::Question(_) => {
            let armed = model.deadline_left_ms().is_some();
            Some(next(model.rig.deadline_s.filter(|_| armed), own))
        }
        _ => None,
    }
}

/// The operator wants another deadline.
pub fn change(model: &mut Model) -> Vec<Effect> {
    let about = matches!(
        model.dialog(),
        Some(Dialog::Restart(_) | Dialog::Question(_))
    );
    if let Some(why) = refusal(model).filter(|_| about) {
        model.say(Tone::Warn, why);
        return Vec::new();
    }
    let Some(seconds) = offered(model) else {
        return Vec::new();
    };
    if let Some(Dialog::Restart(mut dialog)) =
        model.dialogs.pop_if(|d| matches!(d, Dialog::Restart(_)))
    {
        dialog.pending.amend(|plan| plan.deadline_s = seconds);
        dialog.warnings = forecast::warnings(model, dialog.pending.action());
        model.dialogs.push(Dialog::Restart(dialog));
        return Vec::new();
    }
    if model.rig.deadline_asked {
        return Vec::new();
    }
    model.rig.deadline_asked = true;
    vec![Effect::Deadline(seconds)]
}

/// It is set, or why not.
pub fn set(model: &mut Model, result: Result<(Option<u64>, Option<i64>), String>) -> Vec<Effect> {
    model.rig.deadline_asked = false;
    match result {
        Ok((seconds, at)) => {
            model.rig.deadline_s = seconds;
            if let Some(service) = &mut model.rig.service {
                service.deadline_unix_ms = at;
            }
            let text = format!("the trial has {} now", words(seconds));
            model.say(Tone::Good, text.clone());
            vec![Effect::Save(Save::Event { text })]
        }
        Err(why) => {
            model.say(Tone::Bad, format!("the deadline is as it was: {why}"));
            Vec::new()
        }
    }
}

fn passed(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(service) = &mut model.rig.service {
        service.deadline_unix_ms = None;
    }
    model.rig.deadline_s = None;
    model.rig.coming_back = Some(model.now);
    model.rig.config = None;
    model.rig.smoke_passed = None;
    model.question_waits = false;
    model
        .dialogs
        .retain(|dialog| !matches!(dialog, Dialog::Question(_)));
    server::settle_decision(model);
    let value = model.production().map_or("?".to_string(), thousands);
    let text = format!(
        "the trial was not kept in time: the production value {value} comes back by itself"
    );
    model.say(Tone::Warn, text.clone());
    effects.push(Effect::Save(Save::Event { text: text.clone() }));
    effects.push(Effect::Notify(Notice(text)));
}

/// The server was found: whether it is the production value that comes back.
pub fn found(model: &mut Model) {
    if model.rig.coming_back.is_none() || model.on_trial() {
        return;
    }
    model.rig.coming_back = None;
    let value = model.running_context().map_or("?".to_string(), thousands);
    model.say(
        Tone::Good,
        format!("the trial was not kept in time, and the production value {value} is back"),
    );
}
