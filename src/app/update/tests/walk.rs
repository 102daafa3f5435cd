//! The task list, and what holds everywhere.

use super::*;
use crate::app::config::Edit;
use crate::app::dialog::Dialog;
use crate::app::effect::{Effect, Save};
use crate::app::keys;
use crate::app::msg::Msg;
use crate::app::task::{TaskKind, TaskState};
use crate::keymap::Action;

#[test]
fn the_walk_is_laid_out_over_the_ladder() {
    let play = Play::new();
    let titles: Vec<&str> = play
        .model
        .tasks
        .list
        .iter()
        .map(|t| t.title.as_str())
        .collect();
    assert_eq!(
        titles,
        [
            "Attach to the server",
            "Smoke test",
            "Throughput 1 … 100",
            "Long context 1K, 10K, 30K",
            "Checks at 32,768",
            "Raise to 65,536",
            "Long context 60K",
            "Checks at 65,536",
            "Raise to 131,072",
            "Long context 100K, 120K",
            "Checks at 131,072",
            "Decide the production value",
            "Report",
        ]
    );
}

#[test]
fn attaching_blocks_what_the_served_context_cannot_hold() {
    let mut play = Play::new();
    play.msg(Msg::Started);
    assert_eq!(play.effects, [Effect::Attach]);
    play.msg(attached(32_768, true));
    assert!(matches!(
        play.state(|k| *k == TaskKind::Attach),
        TaskState::Done { .. }
    ));
    assert_eq!(play.state(is_long(1_000)), &TaskState::Pending);
    let TaskState::Blocked { why, raise_to } = play.state(is_long(60_000)) else {
        panic!("60K must be blocked")
    };
    assert_eq!(why, "needs 60,200 tokens, server serves 32,768");
    assert_eq!(*raise_to, Some(65_536));
    assert_eq!(play.model.bench.blocked.len(), 3);
    assert_eq!(
        play.model.tasks.selected().map(|t| t.kind.clone()),
        Some(TaskKind::Smoke),
        "the selection goes on"
    );
}

#[test]
fn the_operators_own_tasks() {
    let mut play = Play::attached(32_768);
    let n = play.model.tasks.list.len();
    play.select(|k| *k == TaskKind::Smoke)
        .msg(Msg::Do(Action::TaskAdd));
    play.msg(Msg::Edited(Edit::at_end("night batch")))
        .msg(Msg::Do(Action::Submit));
    assert_eq!(play.model.tasks.list.len(), n + 1);
    assert_eq!(
        play.model
            .tasks
            .selected()
            .map(|t| t.title.clone())
            .as_deref(),
        Some("night batch")
    );
    assert!(matches!(
        play.effects.as_slice(),
        [Effect::Save(Save::Tasks(_))]
    ));
    play.msg(Msg::Do(Action::TaskToggle));
    assert!(matches!(
        play.state(|k| *k == TaskKind::Own),
        TaskState::Done { .. }
    ));
    play.msg(Msg::Do(Action::TaskDown))
        .msg(Msg::Do(Action::TaskDelete));
    assert_eq!(play.model.tasks.list.len(), n);
    for _ in 0..4 {
        play.msg(Msg::Do(Action::TaskUndo));
    }
    assert_eq!(play.model.tasks.list.len(), n);
    play.select(|k| *k == TaskKind::Smoke)
        .msg(Msg::Do(Action::TaskToggle));
    assert_eq!(
        play.state(|k| *k == TaskKind::Smoke),
        &TaskState::Pending,
        "a task of the run is moved by the run"
    );
    play.msg(Msg::Do(Action::TaskSkip));
    assert_eq!(play.state(|k| *k == TaskKind::Smoke), &TaskState::Skipped);
}

#[test]
fn quitting_asks_while_something_runs() {
    let mut play = Play::attached(32_768);
    play.select(|k| *k == TaskKind::Throughput)
        .key(Action::Act)
        .key(Action::Quit);
    assert!(!play.model.quit && matches!(play.model.dialog(), Some(Dialog::Quit(_))));
    play.key(Action::No);
    assert!(!play.model.quit && play.model.dialogs.is_empty());
    play.key(Action::Quit).key(Action::Yes);
    assert!(play.model.quit);
    let mut play = Play::attached(32_768);
    play.msg(Msg::Do(Action::Quit));
    assert!(play.model.quit);
}

#[test]
fn one_thing_at_a_time() {
    let mut play = Play::attached(32_768);
    play.select(|k| *k == TaskKind::Throughput).key(Action::Act);
    play.select(raise(65_536)).key(Action::Act);
    assert!(play.effects.is_empty() && play.model.dialogs.is_empty());
    assert!(play.said().contains("x stops it"), "{}", play.said());
}

#[test]
fn the_same_messages_make_the_same_cockpit() {
    let run = || {
        let mut play = Play::attached(32_768);
        play.select(raise(65_536))
            .key(Action::Act)
            .key(Action::Yes)
            .ready(65_536)
            .key(Action::Later);
        play.key(Action::Zoom)
            .key(Action::NextPane)
            .key(Action::WindowLonger)
            .key(Action::Freeze);
        play.model
    };
    assert_eq!(run(), run());
}

#[test]
fn what_was_said_leaves_in_time_and_what_went_wrong_stays() {
    let mut play = Play::attached(32_768);
    play.model.message = None;
    play.msg(Msg::Copied("copied".into()));
    play.wait(50_000).msg(Msg::Tick);
    assert_eq!(play.said(), "copied");
    play.wait(10_000).msg(Msg::Tick);
    assert_eq!(play.said(), "");
    play.msg(Msg::StoreFailed("the disk is full".into()));
    play.wait(600_000).msg(Msg::Tick);
    assert_eq!(play.said(), "the disk is full");
    play.select(|k| *k == TaskKind::Throughput).key(Action::Act);
    assert_eq!(play.said(), "", "something new begins");
}

#[test]
fn without_a_profile_only_help_and_quit_do_something() {
    let mut play = Play::with(Settings::default(), None);
    play.key(Action::SetContext).key(Action::RunBenchmark);
    assert!(play.model.dialogs.is_empty() && play.effects.is_empty());
    assert!(play.said().contains("quit"), "{}", play.said());
    let offered: Vec<Action> = keys::possible(&play.model).iter().map(|o| o.0).collect();
    assert_eq!(offered, [Action::Help, Action::Quit]);
}
