//! A named action in the place where the operator stands.

use super::super::dialog::{Dialog, Entry, EntryKind};
use super::super::effect::Effect;
use super::super::history::MarkKind;
use super::super::model::{Model, Pane, Tone};
use super::super::origin;
use super::super::window::{Record, Window, last_starts};
use super::lists::{Motion, go};
use super::{config, dialogs, mark, runs, save_tasks, tasks};
use crate::app::config::Edit;
use crate::confirm::Pending;
use crate::keymap::Action;

/// Carries out what a key asks for.
pub fn perform(model: &mut Model, action: Action) -> Vec<Effect> {
    if action == Action::QuitNow {
        return quit_now(model);
    }
    if action == Action::Suspend {
        return vec![Effect::Suspend];
    }
    if !model.dialogs.is_empty() {
        return dialogs::perform(model, action);
    }
    if model.config.editing.is_some() {
        match action {
            Action::ConfigApply => config::apply(model),
            Action::Cancel | Action::Submit | Action::Back => config::leave(model),
            _ => {}
        }
        return Vec::new();
    }
    at_rest(model, action)
}

fn at_rest(model: &mut Model, action: Action) -> Vec<Effect> {
    if model.profile.is_none() && !matches!(action, Action::Help | Action::Quit | Action::Back) {
        model.say(
            Tone::Plain,
            "there is no server to work on: quit, and begin with one of these commands",
        );
        return Vec::new();
    }
    match action {
        Action::FocusTasks => model.focus = Pane::Tasks,
        Action::FocusGpus => model.focus = Pane::Gpus,
        Action::FocusBenchmark => model.focus = Pane::Bench,
        Action::FocusConfig => model.focus = Pane::Config,
        Action::NextPane => cycle(model, 1),
        Action::PreviousPane => cycle(model, 3),
        Action::Zoom => model.zoomed = !model.zoomed,
        Action::MoveUp => go(model, Motion::Lines(-1)),
        Action::MoveDown => go(model, Motion::Lines(1)),
        Action::PageUp => go(model, Motion::Pages(-1)),
        Action::PageDown => go(model, Motion::Pages(1)),
        Action::MoveTop => go(model, Motion::Top),
        Action::MoveBottom => go(model, Motion::Bottom),
        Action::MoveLeft if model.focus == Pane::Config => config::turn(model, false),
        Action::MoveRight if model.focus == Pane::Config => config::turn(model, true),
        Action::MoveLeft if model.focus == Pane::Gpus => {
            see(model, |window, record| window.move_cursor(false, record));
        }
        Action::MoveRight if model.focus == Pane::Gpus => {
            see(model, |window, record| window.move_cursor(true, record));
        }
        Action::Act => return act(model),
        Action::RunBenchmark => return tasks::run_benchmark(model),
        Action::Stop => stop(model),
        Action::SetContext => {
            model.focus = Pane::Config;
            config::enter_context(model);
        }
        Action::Log => model.dialogs.push(Dialog::Log { back: 0 }),
        Action::Freeze => {
            model.frozen = if model.frozen.is_some() {
                None
            } else {
                Some(model.now)
            };
        }
        Action::Copy => return copy(model),
        Action::Origin => {
            let lines = origin::lines(model);
            model.dialogs.push(Dialog::Origin { lines });
        }
        Action::Search => dialogs::search(model),
        Action::SearchNext => dialogs::search_again(model, true),
        Action::SearchPrevious => dialogs::search_again(model, false),
        Action::Commands => model.dialogs.push(Dialog::Commands {
            query: Edit::default(),
            selected: 0,
        }),
        Action::Help => model.dialogs.push(Dialog::Help {
            query: Edit::default(),
            scroll: 0,
        }),
        Action::Back => back(model),
        Action::Quit => quit(model),
        Action::Mark => return vec![mark(model, MarkKind::Own, model.running_context(), None)],
        Action::WindowShorter if model.focus == Pane::Bench => model.bench.narrow(true),
        Action::WindowLonger if model.focus == Pane::Bench => model.bench.narrow(false),
        Action::WindowShorter => see(model, |window, record| window.zoom(false, record)),
        Action::WindowLonger => see(model, |window, record| window.zoom(true, record)),
        Action::WindowEarlier => see(model, |window, record| window.scroll(false, record)),
        Action::WindowLater => see(model, |window, record| window.scroll(true, record)),
        Action::OverlayStarts => overlay(model),
        Action::ConfigEdit => config::edit(model),
        Action::ConfigDiff => config::diff(model),
        Action::ConfigApply => config::apply(model),
        Action::ConfigDiscard => config::discard(model),
        Action::ChartView => {
            model.focus = Pane::Bench;
            model.bench.view = Some(model.bench.after(model.bench.shown()));
        }
        Action::CompareRuns => return runs::open(model),
        Action::MeasureFirst => return tasks::measure_here(model),
        Action::Keep | Action::Adjust | Action::Later => super::question::open(model),
        Action::RollBack => super::question::roll_back(model),
        other => return on_list(model, other),
    }
    Vec::new()
}

/// What the operator does to the task list. Each change is stored at once.
fn on_list(model: &mut Model, action: Action) -> Vec<Effect> {
    if let Some(why) = model.settings.read_only.clone() {
        model.say(Tone::Warn, why);
        return Vec::new();
    }
    let changed = match action {
        Action::TaskAdd => {
            let entry = Entry {
                kind: EntryKind::AddTask,
                edit: Edit::default(),
                error: None,
            };
            model.dialogs.push(Dialog::Entry(entry));
            false
        }
        Action::TaskEdit => {
            if let Some(task) = model.tasks.selected() {
                let entry = Entry {
                    kind: EntryKind::EditTask(task.id),
                    edit: Edit::at_end(task.title.clone()),
                    error: None,
                };
                model.dialogs.push(Dialog::Entry(entry));
            }
            false
        }
        Action::TaskDelete => {
            let title = model
                .tasks
                .selected()
                .map(|t| t.title.clone())
                .unwrap_or_default();
            let done = model.tasks.delete();
            if done {
                model.say(Tone::Plain, format!("deleted \"{title}\" · u undoes it"));
            }
            done
        }
        Action::TaskSkip => model.tasks.skip(),
        Action::TaskUndo => model.tasks.undo(),
        Action::TaskUp => model.tasks.shift(false),
        Action::TaskDown => model.tasks.shift(true),
        Action::TaskToggle => {
            let done = model.tasks.toggle();
            if !done && model.tasks.selected().is_some() {
                model.say(
                    Tone::Plain,
                    "a task of the run is moved by the run: Enter runs it, s skips it",
                );
            }
            done
        }
        _ => false,
    };
    if changed {
        super::reassess(model);
        return vec![save_tasks(model)];
    }
    Vec::new()
}

fn act(model: &mut Model) -> Vec<Effect> {
    match model.focus {
        Pane::Tasks => return tasks::act(model),
        Pane::Config => config::enter_context(model),
        Pane::Bench => {
            let lines = origin::lines(model);
            model.dialogs.push(Dialog::Origin { lines });
        }
        Pane::Gpus => model.zoomed = !model.zoomed,
    }
    Vec::new()
}

fn cycle(model: &mut Model, by: usize) {
    let at = model.focus.number() - 1;
    if let Some(pane) = Pane::ALL.get((at + by) % Pane::ALL.len()) {
        model.focus = *pane;
    }
}

fn back(model: &mut Model) {
    if model.focus == Pane::Bench && model.bench.compared.take().is_some() {
        model.bench.view = None;
    } else if model.focus == Pane::Gpus && model.window.back() {
        // What was chosen last on the chart is taken back first.
    } else if model.zoomed {
        model.zoomed = false;
    } else if model.frozen.is_some() {
        model.frozen = None;
    } else {
        model.message = None;
    }
}

fn stop(model: &mut Model) {
    if model.running.is_some() {
        model.dialogs.push(Dialog::Stop(Pending::new(())));
    } else {
        model.say(Tone::Plain, "nothing runs");
    }
}

fn quit(model: &mut Model) {
    if model.running.is_some() {
        model.dialogs.push(Dialog::Quit(Pending::new(())));
    } else {
        model.quit = true;
    }
}

/// Ctrl-C: asks once while something runs, and leaves at the second.
fn quit_now(model: &mut Model) -> Vec<Effect> {
    let asked = matches!(model.dialogs.last(), Some(Dialog::Quit(_)));
    if model.running.is_some() && !asked {
        model.dialogs.push(Dialog::Quit(Pending::new(())));
    } else {
        model.quit = true;
    }
    Vec::new()
}

/// What the operator sees of the memory history.
fn see(model: &mut Model, change: impl FnOnce(&mut Window, Record)) {
    let record = model.record();
    change(&mut model.window, record);
}

/// This start over the last one, or back.
fn overlay(model: &mut Model) {
    if last_starts(&model.marks).is_some() {
        model.window.overlaid = !model.window.overlaid;
    } else {
        model.say(
            Tone::Plain,
            "there are not two starts on record to lay over each other",
        );
    }
}

fn copy(model: &mut Model) -> Vec<Effect> {
    match origin::value(model) {
        Some(text) => vec![Effect::Copy(text)],
        None => {
            model.say(Tone::Plain, "there is nothing to copy here");
            Vec::new()
        }
    }
}
