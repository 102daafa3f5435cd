//! The deadline of a trial: when it has passed, the production value comes back without us, and the cockpit finds it.

use super::super::dialog::Dialog;
use super::super::effect::{Effect, Notice, Save};
use super::super::model::{Activity, Model, Tone};
use super::server;
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

fn passed(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(service) = &mut model.rig.service {
        service.deadline_unix_ms = None;
    }
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
