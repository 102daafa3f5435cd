//! Two finished runs, chosen from the record and laid over each other.

use super::super::bench::Compared;
use super::super::dialog::{Dialog, RunsDialog};
use super::super::effect::Effect;
use super::super::model::{Model, Pane, Tone};
use crate::store::RunRow;

/// Opens the list; its rows come from the record.
pub fn open(model: &mut Model) -> Vec<Effect> {
    model.dialogs.push(Dialog::Runs(RunsDialog::default()));
    vec![Effect::ListRuns]
}

/// The record was read. Only runs that have ended and measured something can be compared.
pub fn listed(model: &mut Model, result: Result<Vec<RunRow>, String>) {
    let at = model
        .dialogs
        .iter()
        .position(|dialog| matches!(dialog, Dialog::Runs(_)));
    let Some(at) = at else {
        return;
    };
    match result {
        Ok(rows) => {
            let over = |row: &RunRow| row.ending.is_some() && row.points > 0;
            let rows: Vec<RunRow> = rows.into_iter().filter(over).collect();
            if let Some(Dialog::Runs(dialog)) = model.dialogs.get_mut(at) {
                dialog.rows = Some(rows);
            }
        }
        Err(why) => {
            model.dialogs.remove(at);
            model.say(Tone::Bad, why);
        }
    }
}

/// Enter: the first run is what is compared with, the second is judged.
pub fn choose(model: &mut Model, mut dialog: RunsDialog) -> Vec<Effect> {
    let chosen = dialog.found().get(dialog.selected).map(|row| row.id);
    match (dialog.first, chosen) {
        (Some(a), Some(b)) => return vec![Effect::CompareRuns { a, b }],
        (None, Some(first)) => {
            dialog.first = Some(first);
            dialog.query = Default::default();
            dialog.selected = 0;
        }
        (_, None) => {}
    }
    model.dialogs.push(Dialog::Runs(dialog));
    Vec::new()
}

/// Esc: one choice back, or out.
pub fn back(model: &mut Model, mut dialog: RunsDialog) -> Vec<Effect> {
    if dialog.first.take().is_some() {
        dialog.selected = 0;
        model.dialogs.push(Dialog::Runs(dialog));
    }
    Vec::new()
}

/// The comparison comes to the front.
pub fn compared(model: &mut Model, result: Result<Box<Compared>, String>) {
    match result {
        Ok(compared) => {
            model.focus = Pane::Bench;
            model.bench.view = None;
            model.bench.hidden = 0;
            model.bench.compared = Some(compared);
        }
        Err(why) => model.say(Tone::Bad, why),
    }
}
