//! The config pane: turn the context, edit the launch, apply.

use super::super::config::Edit;
use super::super::dialog::{Dialog, Entry, EntryKind};
use super::super::diff;
use super::super::model::{Model, Tone};
use super::restart;
use crate::profile::{Launch, TextError};
use crate::ramp::Purpose;
use crate::units::{parse_context, thousands};

/// One step up or down the ladder from what is chosen.
pub fn turn(model: &mut Model, up: bool) {
    let steps = model.config.steps(model.running_context());
    let chosen = model.config.chosen.or(model.running_context()).unwrap_or(0);
    let next = if up {
        steps.iter().find(|s| **s > chosen)
    } else {
        steps.iter().rev().find(|s| **s < chosen)
    };
    if let Some(next) = next {
        model.config.chosen = Some(*next);
    }
}

/// Opens the field for a free context.
pub fn enter_context(model: &mut Model) {
    model.dialogs.push(Dialog::Entry(Entry {
        kind: EntryKind::Context,
        edit: Edit::default(),
        error: None,
    }));
}

/// Takes the text as a context and asks for the restart; a wrong one stays in the field with what is wrong.
pub fn submit_context(model: &mut Model, mut entry: Entry) {
    match parse_context(&entry.edit.text) {
        Ok(context) => {
            model.config.chosen = Some(context);
            if model.running_context() == Some(context) {
                model.say(
                    Tone::Plain,
                    format!(
                        "the server already runs with a context of {}",
                        thousands(context)
                    ),
                );
            } else {
                restart::ask(model, Purpose::Change, context, None);
            }
        }
        Err(error) => {
            entry.error = Some(error.to_string());
            model.dialogs.push(Dialog::Entry(entry));
        }
    }
}

/// Gives the keys to the text area.
pub fn edit(model: &mut Model) {
    let fixed = model.rig.service.as_ref();
    let fixed = fixed.and_then(|service| service.launch_fixed.clone());
    if let Some(why) = model.settings.read_only.clone().or(fixed) {
        model.say(Tone::Warn, why);
        return;
    }
    if model.config.launch_text.is_empty() {
        model.say(
            Tone::Warn,
            "this server is only attached: there is no launch text to edit",
        );
        return;
    }
    let text = model
        .config
        .edited
        .clone()
        .unwrap_or_else(|| model.config.launch_text.clone());
    model.config.editing = Some(Edit {
        text,
        cursor: (0, 0),
    });
}

/// The text area changed: it is checked at once.
pub fn edited(model: &mut Model, edit: Edit) {
    model.config.error = fault(model, &edit.text);
    model.config.editing = Some(edit);
}

/// What is wrong with a launch text: its form, or what it says.
fn fault(model: &Model, text: &str) -> Option<TextError> {
    let (argv, env) = match crate::profile::parse_launch_text(text) {
        Ok(parsed) => parsed,
        Err(error) => return Some(error),
    };
    let base = model.launch()?.clone();
    let launch = Launch { argv, env, ..base };
    crate::profile::check_launch(&launch)
        .err()
        .map(|message| TextError {
            line: 1,
            column: 1,
            message,
        })
}

/// Leaves the text area; what was typed stays as an edit that is not applied.
pub fn leave(model: &mut Model) {
    if let Some(edit) = model.config.editing.take() {
        let changed = edit.text != model.config.launch_text;
        if !changed {
            model.config.error = None;
        }
        model.config.edited = changed.then_some(edit.text);
    }
}

/// Throws away what was typed into the launch text.
pub fn discard(model: &mut Model) {
    let edited = model.config.edited.take().is_some();
    model.config.error = None;
    model.say(
        Tone::Plain,
        if edited {
            "the edits of the launch text are discarded: it is as in the profile"
        } else {
            "the launch text has no edits to discard"
        },
    );
}

/// What would change.
pub fn diff(model: &mut Model) {
    let new = model
        .config
        .editing
        .as_ref()
        .map(|e| e.text.clone())
        .or_else(|| model.config.edited.clone())
        .unwrap_or_else(|| model.config.launch_text.clone());
    let lines = diff::texts(&model.config.launch_text, &new);
    if lines
        .iter()
        .all(|l| matches!(l, super::super::dialog::DiffLine::Same(_)))
    {
        model.say(
            Tone::Plain,
            "the launch text is as in the profile; the context fills its places when it is applied",
        );
        return;
    }
    model.dialogs.push(Dialog::Diff { lines, scroll: 0 });
}

/// Asks for the restart with what is chosen and edited.
pub fn apply(model: &mut Model) {
    leave(model);
    match model.config.chosen.or(model.running_context()) {
        Some(context) => restart::ask(model, Purpose::Change, context, None),
        None => model.say(Tone::Warn, "choose a context first: ‹ › or c"),
    }
}
