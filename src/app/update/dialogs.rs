//! Keys while a dialog is open, and the texts that are typed into one.

use super::super::config::Edit;
use super::super::dialog::{Dialog, Entry, EntryKind, RunsDialog};
use super::super::effect::Effect;
use super::super::model::{Model, Pane, Tone};
use super::lists::{Motion, go};
use super::{actions, cards, config, deadline, question, restart, runs, save_tasks, tasks};
use crate::confirm::Answer;
use crate::keymap::Action;

/// The text that has the keys changed.
pub fn edited(model: &mut Model, edit: Edit) {
    match model.dialogs.last_mut() {
        Some(dialog) => {
            if let Dialog::Commands { selected, .. } | Dialog::Runs(RunsDialog { selected, .. }) =
                dialog
            {
                *selected = 0;
            }
            if let Dialog::Entry(entry) = dialog {
                entry.error = None;
            }
            if let Some(field) = dialog.edit_mut() {
                *field = edit;
            }
        }
        None if model.config.editing.is_some() => config::edited(model, edit),
        None => {}
    }
}

/// Actions whose name or words contain `query`, in order.
pub fn matching(query: &str) -> Vec<Action> {
    let query = query.trim().to_lowercase();
    Action::ALL
        .iter()
        .copied()
        .filter(|a| {
            a.offered() && (a.name().contains(&query) || a.words().to_lowercase().contains(&query))
        })
        .collect()
}

/// Carries out an action in the topmost dialog.
pub fn perform(model: &mut Model, action: Action) -> Vec<Effect> {
    let listens = model.dialogs.last().is_none_or(|d| d.listens(model.now));
    if !listens {
        // What was typed for the screen before never answers a question.
        return Vec::new();
    }
    match action {
        Action::MoveUp => go(model, Motion::Lines(-1)),
        Action::MoveDown => go(model, Motion::Lines(1)),
        Action::PageUp => go(model, Motion::Pages(-1)),
        Action::PageDown => go(model, Motion::Pages(1)),
        Action::MoveTop => go(model, Motion::Top),
        Action::MoveBottom => go(model, Motion::Bottom),
        Action::Quit => {
            if let Some(
                Dialog::Log { .. }
                | Dialog::Help { .. }
                | Dialog::Origin { .. }
                | Dialog::Diff { .. },
            ) = model.dialogs.last()
            {
                model.dialogs.pop();
            } else {
                return Vec::new();
            }
        }
        Action::Help => model.dialogs.push(Dialog::Help {
            query: Edit::default(),
            scroll: 0,
        }),
        Action::Copy => {
            if let Some(Dialog::Origin { lines }) = model.dialogs.last() {
                return vec![Effect::Copy(lines.join("\n"))];
            }
            if let Some(Dialog::Log { .. }) = model.dialogs.last() {
                let text: Vec<&str> = model.log.iter().map(String::as_str).collect();
                return vec![Effect::Copy(text.join("\n"))];
            }
        }
        Action::Search => search(model),
        Action::SearchNext => search_again(model, true),
        Action::SearchPrevious => search_again(model, false),
        Action::LogFollow => {
            if let Some(Dialog::Log { back }) = model.dialogs.last_mut() {
                *back = 0;
            }
        }
        Action::Drain => restart::drain(model),
        Action::Deadline => return deadline::change(model),
        other => return answer(model, other),
    }
    Vec::new()
}

fn answer(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(dialog) = model.dialogs.pop() else {
        return Vec::new();
    };
    match (dialog, action) {
        (Dialog::Restart(dialog), Action::Yes) => {
            let task = dialog.task;
            match dialog.pending.answer(model.now) {
                Answer::Confirmed(confirmed) => restart::confirmed(model, confirmed, task),
                Answer::TooEarly(_) => Vec::new(),
            }
        }
        (Dialog::Question(pending), Action::Keep) => question::keep(model, pending),
        (Dialog::Question(_), Action::Adjust) => {
            model.question_waits = true;
            model.focus = Pane::Config;
            config::enter_context(model);
            Vec::new()
        }
        (Dialog::Question(_), Action::RollBack) => {
            model.question_waits = true;
            question::roll_back(model);
            Vec::new()
        }
        (Dialog::Question(_), Action::MeasureFirst) => {
            model.question_waits = true;
            let effects = tasks::measure_here(model);
            model.question_after = !effects.is_empty();
            effects
        }
        (Dialog::Question(_), Action::Later | Action::Back | Action::No) => {
            model.question_waits = true;
            model.say(
                Tone::Plain,
                "the question waits: Enter on \"Decide the production value\" brings it back",
            );
            Vec::new()
        }
        (Dialog::Recovery(recovery), Action::GoOn) => match recovery.go_on.answer(model.now) {
            Answer::Confirmed(confirmed) => restart::recover(model, confirmed),
            Answer::TooEarly(_) => Vec::new(),
        },
        (Dialog::Recovery(recovery), Action::BringBack) => {
            match recovery.roll_back.answer(model.now) {
                Answer::Confirmed(confirmed) => restart::recover(model, confirmed),
                Answer::TooEarly(_) => Vec::new(),
            }
        }
        (Dialog::Recovery(_), Action::Back | Action::No) => {
            model.say(Tone::Warn, "the unfinished restart stays as it is; it is shown again at the next start, or by Enter on the first task");
            Vec::new()
        }
        (
            Dialog::Cards(dialog),
            action @ (Action::WaitOn | Action::EndLeftOver | Action::GiveUp),
        ) => cards::answer(model, *dialog, action),
        (Dialog::Stop(pending), Action::Yes) => match pending.answer(model.now) {
            Answer::Confirmed(_) => tasks::stop(model),
            Answer::TooEarly(_) => Vec::new(),
        },
        (Dialog::Quit(pending), Action::Yes) => {
            if let Answer::Confirmed(_) = pending.answer(model.now) {
                model.quit = true;
            }
            Vec::new()
        }
        (Dialog::Entry(entry), Action::Submit) => submit(model, entry),
        (Dialog::Commands { query, selected }, Action::Act | Action::Submit) => {
            match matching(&query.text).get(selected) {
                Some(chosen) => actions::perform(model, *chosen),
                None => Vec::new(),
            }
        }
        (Dialog::Runs(dialog), Action::Act | Action::Submit) => runs::choose(model, dialog),
        (Dialog::Runs(dialog), Action::Back) => runs::back(model, dialog),
        (_, Action::Back | Action::No | Action::Cancel | Action::Later) => Vec::new(),
        (dialog, _) => {
            model.dialogs.push(dialog);
            Vec::new()
        }
    }
}

fn submit(model: &mut Model, mut entry: Entry) -> Vec<Effect> {
    let text = entry.edit.text.trim().to_string();
    match entry.kind {
        EntryKind::Context => {
            config::submit_context(model, entry);
            return Vec::new();
        }
        EntryKind::Search => {
            if let Some(Dialog::Help { query, scroll }) = model.dialogs.last_mut() {
                // In the help, searching shows only what matches.
                *query = Edit::at_end(text);
                *scroll = 0;
            } else {
                model.search = (!text.is_empty()).then_some(text);
                search_again(model, true);
            }
            return Vec::new();
        }
        EntryKind::AddTask | EntryKind::EditTask(_) if text.is_empty() => {
            entry.error = Some("a task needs a title; Esc leaves the field".into());
            model.dialogs.push(Dialog::Entry(entry));
            return Vec::new();
        }
        EntryKind::AddTask => model.tasks.add(text),
        EntryKind::EditTask(id) => model.tasks.rename(id, text),
    }
    vec![save_tasks(model)]
}

/// Opens the field for words to look for.
pub fn search(model: &mut Model) {
    let edit = Edit::at_end(model.search.clone().unwrap_or_default());
    model.dialogs.push(Dialog::Entry(Entry {
        kind: EntryKind::Search,
        edit,
        error: None,
    }));
}

/// Goes to the next match: down the task list, or up the log, which is read from its end.
pub fn search_again(model: &mut Model, next: bool) {
    let Some(wanted) = model.search.clone() else {
        return;
    };
    let wanted = wanted.to_lowercase();
    if let Some(Dialog::Log { back }) = model.dialogs.last_mut() {
        let lines: Vec<usize> = model
            .log
            .iter()
            .rev()
            .enumerate()
            .filter(|(_, l)| l.to_lowercase().contains(&wanted))
            .map(|(i, _)| i)
            .collect();
        let found = if next {
            lines.iter().find(|i| **i > *back).or(lines.first())
        } else {
            lines.iter().rev().find(|i| **i < *back).or(lines.last())
        };
        match found {
            Some(at) => *back = *at,
            None => model.say(Tone::Plain, format!("\"{wanted}\" is not in the log")),
        }
        return;
    }
    let n = model.tasks.list.len();
    let from = model.tasks.selected;
    let order = (1..=n).map(|k| {
        if next {
            (from + k) % n.max(1)
        } else {
            (from + n - k % n.max(1)) % n.max(1)
        }
    });
    let mut order = order;
    let found = order.find(|i| {
        model
            .tasks
            .list
            .get(*i)
            .is_some_and(|t| t.title.to_lowercase().contains(&wanted))
    });
    match found {
        Some(at) => {
            model.focus = Pane::Tasks;
            model.tasks.selected = at;
        }
        None => model.say(Tone::Plain, format!("no task says \"{wanted}\"")),
    }
}
