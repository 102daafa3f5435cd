//! Cards that stay occupied in a restart.

use super::*;
use crate::app::dialog::Dialog;
use crate::app::keys;
use crate::app::question::keep_plan;
use crate::keymap::Context;
use crate::ramp::{CardsChoice, HeldCard, Holder, LeftOver, Occupied};
use crate::service::ProcessId;

fn left_over() -> LeftOver {
    LeftOver {
        id: ProcessId {
            pid: 4242,
            start_ticks: 99,
            boot_id: "boot".into(),
        },
        name: "python3".into(),
    }
}

/// A card that a process holds: the stopped server's own, or somebody else's.
fn occupied(ours: bool) -> Occupied {
    Occupied {
        waited_s: 60,
        grace_s: 10,
        held: vec![HeldCard {
            card: 0,
            above_bytes: Some(4 << 30),
            holders: vec![Holder {
                pid: 4242,
                name: Some("python3".into()),
                container: None,
                bytes: Some(4 << 30),
                left_over: ours,
            }],
        }],
        left_overs: ours.then(left_over).into_iter().collect(),
    }
}

/// A restart that waits for the cards.
fn waiting() -> Play {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536)).key(Action::Act).key(Action::Yes);
    for step in [Step::Validate, Step::Stop, Step::WaitCards] {
        play.ramp(Event::Step {
            leg: Leg::Forward,
            step,
            context: 65_536,
        });
    }
    play
}

fn asked(ours: bool) -> Play {
    let mut play = waiting();
    play.ramp(Event::CardsOccupied(occupied(ours)));
    assert!(
        play.said().contains("not free within 60 s"),
        "{}",
        play.said()
    );
    assert_eq!(keys::context(&play.model), Context::Cards);
    play
}

fn chosen(play: &Play) -> Option<&CardsChoice> {
    play.effects.iter().find_map(|effect| match effect {
        Effect::Cards(confirmed) => Some(confirmed.action()),
        _ => None,
    })
}

fn asks(play: &Play) -> bool {
    matches!(play.model.dialog(), Some(Dialog::Cards(_)))
}

#[test]
fn each_way_on_has_its_own_key() {
    for (action, choice, said) in [
        (Action::WaitOn, CardsChoice::WaitOn, "waiting on"),
        (
            Action::EndLeftOver,
            CardsChoice::End(vec![left_over()]),
            "ending python3 (pid 4242): SIGTERM, then SIGKILL after 10 s",
        ),
        (Action::GiveUp, CardsChoice::GiveUp, "given up"),
    ] {
        let mut play = asked(true);
        play.key(action);
        assert_eq!(chosen(&play), Some(&choice));
        assert!(play.said().contains(said), "{}", play.said());
        assert!(!asks(&play));
        // Nothing else is asked before the wait is over again.
        play.msg(Msg::Tick);
        assert!(!asks(&play));
        play.ramp(Event::CardsOccupied(occupied(true)));
        assert!(asks(&play));
    }
}

#[test]
fn a_foreign_holder_cannot_be_ended() {
    let mut play = asked(false);
    play.key(Action::EndLeftOver);
    assert_eq!(chosen(&play), None);
    assert!(asks(&play), "the question stays");
    play.key(Action::WaitOn);
    assert_eq!(chosen(&play), Some(&CardsChoice::WaitOn));
}

#[test]
fn a_key_that_was_pressed_before_the_question_does_not_answer_it() {
    let mut play = asked(true);
    play.msg(Msg::Drawn);
    play.wait(0);
    play.now.mono_ms -= 300;
    play.msg(Msg::Do(Action::EndLeftOver));
    assert_eq!(chosen(&play), None);
    assert!(asks(&play));
    // Neither does a way out that is none of its own.
    play.key(Action::Back);
    assert_eq!(chosen(&play), None);
    assert!(asks(&play));
}

#[test]
fn the_question_goes_when_the_restart_goes_on() {
    let mut play = asked(true);
    play.ramp(Event::Step {
        leg: Leg::Forward,
        step: Step::Start,
        context: 65_536,
    });
    assert!(play.model.dialogs.is_empty());
    let mut play = asked(true);
    play.ramp(Event::Ended(Outcome::Halted {
        failure: failure(None),
        back: None,
    }));
    assert!(play.model.dialogs.is_empty());
}

#[test]
fn a_text_and_another_dialog_keep_the_keys() {
    let mut play = waiting();
    play.model.focus = Pane::Tasks;
    play.key(Action::TaskAdd);
    play.ramp(Event::CardsOccupied(occupied(true)));
    assert_eq!(keys::context(&play.model), Context::Text);
    play.key(Action::Cancel);
    assert!(asks(&play), "it comes up after it");
    // The question of a trial is another thing and waits its turn.
    assert!(keep_plan(&play.model).is_err());
}
