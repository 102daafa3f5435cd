//! The context and the launch text.

use super::*;
use crate::app::config::Edit;
use crate::app::dialog::Dialog;
use crate::app::effect::Effect;
use crate::app::keys;
use crate::app::model::Pane;
use crate::app::msg::Msg;
use crate::keymap::Action;

#[test]
fn a_typed_context_is_understood_or_stays_with_its_fault() {
    let mut play = Play::attached(32_768);
    play.msg(Msg::Do(Action::SetContext))
        .msg(Msg::Edited(Edit::at_end("lots")))
        .msg(Msg::Do(Action::Submit));
    let Some(Dialog::Entry(entry)) = play.model.dialog() else {
        panic!("the field stays")
    };
    assert!(entry.error.as_ref().is_some_and(|e| e.contains("lots")) && entry.edit.text == "lots");
    play.msg(Msg::Edited(Edit::at_end("128k")))
        .msg(Msg::Do(Action::Submit));
    let Some(Dialog::Restart(dialog)) = play.model.dialog() else {
        panic!("asks for the restart")
    };
    assert_eq!(dialog.pending.action().to.context, 131_072);
}

#[test]
fn an_edited_launch_is_checked_and_goes_into_the_plan() {
    let mut play = Play::attached(32_768);
    play.model.focus = Pane::Config;
    play.msg(Msg::Do(Action::ConfigEdit))
        .msg(Msg::Edited(Edit::at_end("serve 'open")));
    assert!(play.model.config.error.is_some());
    play.msg(Msg::Do(Action::ConfigApply));
    assert!(
        play.model.dialogs.is_empty() && play.said().contains("fault"),
        "{}",
        play.said()
    );
    play.msg(Msg::Do(Action::ConfigEdit));
    let text = format!(
        "{} \\\n  --seed 7\n",
        play.model.config.launch_text.trim_end()
    );
    play.msg(Msg::Edited(Edit::at_end(text)))
        .msg(Msg::Do(Action::ConfigApply));
    let Some(Dialog::Restart(dialog)) = play.model.dialog() else {
        panic!("asks: {}", play.said())
    };
    assert!(
        dialog
            .pending
            .action()
            .to
            .launch
            .argv
            .ends_with(&["--seed".to_string(), "7".to_string()])
    );
}

#[test]
fn a_launch_that_lost_its_context_is_said_at_once() {
    let mut play = Play::attached(32_768);
    play.model.focus = Pane::Config;
    play.msg(Msg::Do(Action::ConfigEdit))
        .msg(Msg::Edited(Edit::at_end("serve --context-length 4096")));
    assert!(
        play.model
            .config
            .error
            .as_ref()
            .is_some_and(|e| e.message.contains("{context}")),
        "{:?}",
        play.model.config.error
    );
}

#[test]
fn a_launch_edited_by_hand_is_not_written_over() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .ready(65_536);
    if let Some(launch) = play
        .model
        .rig
        .service
        .as_mut()
        .and_then(|s| s.launch.as_mut())
    {
        launch.argv.push("--added-by-hand".into());
    }
    play.key(Action::Keep);
    let [Effect::Keep(keep)] = play.effects.as_slice() else {
        panic!("{:?}", play.effects)
    };
    assert!(!keep.action().launch_changed);
}

#[test]
fn a_changed_launch_at_the_same_context_is_a_trial_and_can_be_kept() {
    let mut play = Play::attached(32_768);
    play.model.focus = Pane::Config;
    play.msg(Msg::Do(Action::ConfigEdit));
    let text = format!(
        "{} \\\n  --seed 7\n",
        play.model.config.launch_text.trim_end()
    );
    play.msg(Msg::Edited(Edit::at_end(text)))
        .msg(Msg::Do(Action::ConfigApply))
        .key(Action::Yes);
    play.ready(32_768);
    assert!(
        play.model.on_trial(),
        "a reboot would bring the launch without the flag"
    );
    play.key(Action::Keep);
    let [Effect::Keep(keep)] = play.effects.as_slice() else {
        panic!("{:?} {}", play.effects, play.said())
    };
    assert!(keep.action().launch_changed);
    play.msg(Msg::Kept(Ok("written to vramp.toml".into())));
    assert!(!play.model.on_trial());
}

#[test]
fn edits_of_the_launch_can_be_thrown_away() {
    let mut play = Play::attached(32_768);
    play.model.focus = Pane::Config;
    let offered = |play: &Play| {
        let all = keys::possible(&play.model);
        all.iter().any(|(a, _)| *a == Action::ConfigDiscard)
    };
    assert!(!offered(&play));
    play.msg(Msg::Do(Action::ConfigEdit))
        .msg(Msg::Edited(Edit::at_end("serve 'open")))
        .msg(Msg::Do(Action::Cancel));
    assert!(play.model.config.edited.is_some() && offered(&play));
    play.msg(Msg::Do(Action::ConfigDiscard));
    assert!(play.model.config.edited.is_none() && play.model.config.error.is_none());
}
