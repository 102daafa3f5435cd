//! Where the operator's keys go, and what is possible there now.

use super::config::Edit;
use super::dialog::{Dialog, EntryKind};
use super::model::{Model, Pane};
use super::update::possible_act;
use super::window::last_starts;
use crate::keymap::{Action, Context};

/// The place in which a key is read.
pub fn context(model: &Model) -> Context {
    match model.dialog() {
        Some(Dialog::Question(_)) => Context::Question,
        Some(Dialog::Recovery(_)) => Context::Recovery,
        Some(Dialog::Cards(_)) => Context::Cards,
        Some(Dialog::Restart(_) | Dialog::Stop(_) | Dialog::Quit(_)) => Context::Confirm,
        Some(Dialog::Entry(_)) => Context::Text,
        Some(Dialog::Commands { .. } | Dialog::Runs(_)) => Context::List,
        Some(Dialog::Log { .. }) => Context::Log,
        Some(Dialog::Help { .. } | Dialog::Origin { .. } | Dialog::Diff { .. }) => Context::Help,
        None if model.config.editing.is_some() => Context::Text,
        None => match model.focus {
            Pane::Tasks => Context::Tasks,
            Pane::Gpus => Context::Gpus,
            Pane::Bench => Context::Benchmark,
            Pane::Config => Context::Config,
        },
    }
}

/// The text that has the keys.
pub fn edit(model: &Model) -> Option<&Edit> {
    match model.dialog() {
        Some(dialog) => dialog.edit(),
        None => model.config.editing.as_ref(),
    }
}

/// A text that has the keys: Enter and arrows are its own where it has many lines.
pub fn text_is_multiline(model: &Model) -> bool {
    model.dialogs.is_empty() && model.config.editing.is_some()
}

/// An action that is possible now, and two or three words for the footer.
pub type Offer = (Action, String);

/// What the footer offers, the most important first.
pub fn possible(model: &Model) -> Vec<Offer> {
    let mut offers = Vec::new();
    let mut offer = |action: Action, words: &str| offers.push((action, words.to_string()));
    match model.dialog() {
        Some(Dialog::Help { .. } | Dialog::Origin { .. } | Dialog::Diff { .. }) => {
            offer(Action::Back, "close")
        }
        Some(Dialog::Log { .. }) => {
            offer(Action::Search, "search");
            offer(Action::LogFollow, "end");
            offer(Action::Copy, "copy");
            offer(Action::Back, "close");
        }
        Some(Dialog::Commands { .. }) => {
            offer(Action::Act, "run");
            offer(Action::Back, "close");
        }
        Some(Dialog::Runs(_)) => {
            offer(Action::Act, "choose");
            offer(Action::Back, "close");
        }
        Some(Dialog::Entry(entry)) => {
            offer(
                Action::Submit,
                if entry.kind == EntryKind::Search {
                    "find"
                } else {
                    "take"
                },
            );
            offer(Action::Cancel, "leave");
        }
        Some(_) => {}
        None if model.config.editing.is_some() => {
            offer(Action::ConfigApply, "apply");
            offer(Action::Cancel, "leave the text");
        }
        None => at_rest(model, &mut offer),
    }
    offers
}

fn at_rest(model: &Model, offer: &mut dyn FnMut(Action, &str)) {
    let idle = model.running.is_none();
    if model.profile.is_none() {
        // There is nothing to work on.
        offer(Action::Help, "help");
        offer(Action::Quit, "quit");
        return;
    }
    if model.focus == Pane::Tasks
        && let Some(words) = possible_act(model)
    {
        offer(Action::Act, &words);
    }
    if !idle {
        offer(Action::Stop, "stop");
    }
    if model.question_waits && idle {
        offer(Action::Keep, "the question");
    }
    if idle && model.rig.up() {
        offer(Action::RunBenchmark, "run");
    }
    if idle && model.can_restart() && (model.rig.up() || model.rig.startable) {
        offer(Action::SetContext, "context");
    }
    match model.focus {
        // A second cockpit keeps nothing.
        Pane::Tasks if model.settings.read_only.is_some() => {}
        Pane::Tasks => {
            offer(Action::TaskAdd, "add");
            offer(Action::TaskSkip, "skip");
        }
        Pane::Gpus => {
            offer(Action::Mark, "mark");
            offer(Action::WindowShorter, "shorter");
            offer(Action::WindowLonger, "longer");
            offer(Action::WindowEarlier, "earlier");
            if model.window.end.is_some() {
                offer(Action::WindowLater, "later");
            }
            offer(Action::MoveLeft, "read");
            if last_starts(&model.marks).is_some() {
                let words = match model.window.overlaid {
                    true => "all time",
                    false => "two starts",
                };
                offer(Action::OverlayStarts, words);
            }
        }
        Pane::Bench => {
            if model.bench.views().len() > 1 {
                let next = model.bench.after(model.bench.shown());
                offer(Action::ChartView, next.words());
            }
            offer(Action::CompareRuns, "compare");
            offer(Action::WindowShorter, "less");
            offer(Action::WindowLonger, "more");
            offer(Action::Origin, "where from");
            offer(Action::Copy, "copy");
        }
        Pane::Config if !model.can_restart() => {}
        Pane::Config => {
            if !model.config.launch_text.is_empty() {
                offer(Action::ConfigEdit, "edit");
            }
            if model.config.edited.is_some() {
                offer(Action::ConfigDiff, "diff");
                offer(Action::ConfigDiscard, "discard edits");
            }
            offer(Action::ConfigApply, "apply");
        }
    }
    offer(Action::Log, "log");
    offer(Action::Zoom, if model.zoomed { "unzoom" } else { "zoom" });
    offer(Action::Commands, "commands");
    offer(Action::Help, "help");
    offer(Action::Quit, "quit");
}
