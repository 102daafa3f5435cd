//! The deadline of a trial, and a service that says more than its profile.

use super::*;
use crate::app::dialog::Dialog;

#[test]
fn a_deadline_that_passes_takes_the_trial_off_the_screen_and_finds_what_comes_back() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .ready(65_536);
    assert!(matches!(play.model.dialog(), Some(Dialog::Question(_))));
    let mut with_deadline = view();
    with_deadline.production = Some(32_768);
    with_deadline.deadline_unix_ms = Some(play.now.unix_ms + 2_000);
    play.msg(Msg::Service(with_deadline)).msg(Msg::Tick);
    assert!(
        play.model
            .deadline_left_ms()
            .is_some_and(|left| left < 2_000)
    );
    assert!(matches!(play.model.dialog(), Some(Dialog::Question(_))));
    for _ in 0..4 {
        play.msg(Msg::Tick);
    }
    assert!(play.model.dialogs.is_empty() && !play.model.question_waits);
    assert_eq!(play.model.deadline_left_ms(), None);
    let mut looked = false;
    for _ in 0..20 {
        play.msg(Msg::Tick);
        looked |= play.effects.contains(&Effect::Attach);
    }
    assert!(looked, "the server is looked for");
    play.msg(attached(32_768, true));
    assert!(play.said().contains("32,768 is back"), "{}", play.said());
    assert!(!play.model.on_trial() && play.model.rig.coming_back.is_none());
}

#[test]
fn the_walk_begins_at_what_the_service_brings() {
    let mut of_unit = profile();
    of_unit.production = None;
    of_unit.ladder = vec![8_192, 32_768, 65_536];
    let mut play = Play::with(Settings::default(), Some(of_unit));
    let raises = |play: &Play| -> Vec<TaskKind> {
        let kinds = play.model.tasks.list.iter().map(|t| t.kind.clone());
        kinds
            .filter(|kind| matches!(kind, TaskKind::Raise { .. }))
            .collect()
    };
    assert_eq!(raises(&play).len(), 2);
    let mut said = view();
    said.production = Some(32_768);
    play.msg(Msg::Started).msg(Msg::Service(said));
    assert_eq!(raises(&play), [TaskKind::Raise { to: 65_536 }]);
    assert!(matches!(
        play.state(|k| *k == TaskKind::Attach),
        TaskState::Running { .. }
    ));
}

#[test]
fn a_launch_that_stands_elsewhere_is_not_edited_here() {
    let mut play = Play::attached(32_768);
    let mut fixed = view();
    fixed.launch_fixed = Some("it stands in qwen.service".into());
    play.msg(Msg::Service(fixed));
    play.model.focus = Pane::Config;
    play.msg(Msg::Do(Action::ConfigEdit));
    assert!(play.model.config.editing.is_none());
    assert!(play.said().contains("qwen.service"), "{}", play.said());
}
