//! Cards that stay occupied while a restart waits for them: the question, and what the operator answers.

use super::super::dialog::{CardsDialog, Dialog};
use super::super::effect::{Effect, Notice, Save};
use super::super::model::{Model, Tone};
use crate::confirm::{Answer, Pending};
use crate::keymap::Action;
use crate::ramp::{CardsChoice, LeftOver, Occupied};

/// The cards were not free in time.
pub fn occupied(model: &mut Model, occupied: Occupied) -> Vec<Effect> {
    let Some(view) = &mut model.restart else {
        return Vec::new();
    };
    let text = format!(
        "the cards were not free within {} s: nothing is started, and you are asked what to do",
        occupied.waited_s
    );
    view.occupied = Some(occupied);
    model.say(Tone::Warn, text.clone());
    vec![
        Effect::Save(Save::Event { text: text.clone() }),
        Effect::Notify(Notice(text)),
    ]
}

/// Nothing is asked any more: the restart has gone on.
pub fn withdraw(model: &mut Model) {
    if let Some(view) = &mut model.restart {
        view.occupied = None;
    }
    model.dialogs.retain(|d| !matches!(d, Dialog::Cards(_)));
}

/// Puts the question on screen, unless a text or another dialog has the keys: then it comes up after it.
pub fn bring_up(model: &mut Model) {
    let busy = !model.dialogs.is_empty() || model.config.editing.is_some();
    let waits = model.restart.as_ref().and_then(|v| v.occupied.as_ref());
    let Some(occupied) = waits.filter(|_| !busy).cloned() else {
        return;
    };
    let left_overs = occupied.left_overs.clone();
    let dialog = CardsDialog {
        occupied,
        wait_on: Pending::new(CardsChoice::WaitOn),
        end: (!left_overs.is_empty()).then(|| Pending::new(CardsChoice::End(left_overs))),
        give_up: Pending::new(CardsChoice::GiveUp),
    };
    model.dialogs.push(Dialog::Cards(Box::new(dialog)));
}

/// The operator chose. A key without a choice behind it leaves the question where it is.
pub fn answer(model: &mut Model, dialog: CardsDialog, action: Action) -> Vec<Effect> {
    let chosen = match action {
        Action::WaitOn => Some(dialog.wait_on),
        Action::EndLeftOver => dialog.end,
        Action::GiveUp => Some(dialog.give_up),
        _ => None,
    };
    let Some(Answer::Confirmed(confirmed)) = chosen.map(|pending| pending.answer(model.now)) else {
        return Vec::new();
    };
    if let Some(view) = &mut model.restart {
        view.occupied = None;
    }
    let text = match confirmed.action() {
        CardsChoice::WaitOn => "waiting on for the cards".to_string(),
        CardsChoice::End(left_overs) => {
            let named: Vec<String> = left_overs.iter().map(LeftOver::words).collect();
            format!(
                "ending {}: SIGTERM, then SIGKILL after {} s",
                named.join(", "),
                dialog.occupied.grace_s
            )
        }
        CardsChoice::GiveUp => "given up, because the cards are not free".to_string(),
    };
    model.say(Tone::Warn, text.clone());
    vec![Effect::Cards(confirmed), Effect::Save(Save::Event { text })]
}
