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

/// Of a unit that can carry a deadline, with its production value.
fn unit(deadline_unix_ms: Option<i64>) -> ServiceView {
    ServiceView {
        production: Some(32_768),
        deadline_unix_ms,
        ..view()
    }
}

fn planned(play: &Play) -> Option<u64> {
    let Some(Dialog::Restart(dialog)) = play.model.dialog() else {
        panic!("the restart is asked for")
    };
    dialog.pending.action().deadline_s
}

#[test]
fn a_key_gives_the_restart_a_deadline_and_the_answer_is_to_what_was_read() {
    let mut play = Play::attached(32_768);
    play.msg(Msg::Service(unit(None)));
    play.select(raise(65_536)).key(Action::Act);
    assert_eq!(planned(&play), None);
    let mut seen = Vec::new();
    for _ in 0..4 {
        play.key(Action::Deadline);
        seen.push(planned(&play));
    }
    assert_eq!(seen, [Some(600), Some(1800), None, Some(600)]);
    let Some(Dialog::Restart(dialog)) = play.model.dialog() else {
        panic!("it is still asked for")
    };
    let told = |text: &&String| text.contains("kept within 10:00, 32,768 comes back");
    assert!(dialog.warnings.iter().any(|text| told(&text)));
    // A yes for the dialog of before does not count.
    play.msg(Msg::Do(Action::Yes));
    assert!(play.effects.is_empty(), "{:?}", play.effects);
    play.key(Action::Yes);
    let [Effect::Restart(confirmed)] = play.effects.as_slice() else {
        panic!("{:?}", play.effects)
    };
    assert_eq!(confirmed.action().deadline_s, Some(600));
    assert_eq!(play.model.rig.deadline_s, Some(600));
}

#[test]
fn a_key_in_the_question_renews_the_deadline_and_takes_it_away() {
    let mut play = Play::attached(32_768);
    play.msg(Msg::Service(unit(None)));
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .ready(65_536);
    let at = play.now.unix_ms;
    for (asked, until) in [
        (Some(600), Some(at + 600_000)),
        (Some(1800), Some(at + 1_800_000)),
        (None, None),
        (Some(600), Some(at + 600_000)),
    ] {
        play.key(Action::Deadline);
        assert_eq!(play.effects, [Effect::Deadline(asked)]);
        play.key(Action::Deadline);
        assert!(play.effects.is_empty(), "one at a time");
        play.msg(Msg::Deadline(Ok((asked, until))));
        assert_eq!(play.model.deadline_left_ms().is_some(), asked.is_some());
        assert!(matches!(play.model.dialog(), Some(Dialog::Question(_))));
    }
    assert_eq!(play.said(), "the trial has deadline 10 min now");
    play.key(Action::Deadline);
    play.msg(Msg::Deadline(Err("it has passed".into())));
    assert!(play.said().contains("as it was: it has passed"));
    assert!(play.model.deadline_left_ms().is_some());
    // One that somebody else armed is renewed first.
    play.model.rig.deadline_s = None;
    play.key(Action::Deadline);
    assert_eq!(play.effects, [Effect::Deadline(Some(600))]);
}

#[test]
fn a_deadline_that_nothing_could_carry_is_refused_with_the_reason() {
    let mut play = Play::attached(32_768);
    let mut process = unit(None);
    process.no_deadline = Some("nothing outside could bring it back".into());
    play.msg(Msg::Service(process));
    play.select(raise(65_536)).key(Action::Act);
    play.key(Action::Deadline);
    assert_eq!(planned(&play), None);
    assert!(play.said().contains("nothing outside"), "{}", play.said());
    play.key(Action::Yes).ready(65_536).key(Action::Deadline);
    assert!(play.effects.is_empty(), "{:?}", play.effects);
    assert!(matches!(play.model.dialog(), Some(Dialog::Question(_))));
    assert!(play.said().contains("nothing outside"), "{}", play.said());
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
