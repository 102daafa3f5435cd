//! The server: found, lost, of others.

use super::*;
use crate::app::dialog::Dialog;
use crate::app::effect::Effect;
use crate::app::keys;
use crate::app::model::{Pane, Settings};
use crate::app::msg::Msg;
use crate::app::rig::Connection;
use crate::app::task::{TaskKind, TaskState};
use crate::engine::{EngineError, Probe};
use crate::gpu::{Card, CardState, GpuProcess, Memory, Snapshot, Tenant};
use crate::keymap::Action;
use crate::profile::ServiceSpec;
use crate::ramp::{Event, Outcome, Purpose};
use crate::reading::Absent;

#[test]
fn a_loop_fails_the_smoke_test() {
    let mut play = Play::attached(32_768);
    play.select(|k| *k == TaskKind::Smoke).key(Action::Act);
    let probe = Probe {
        text: "lambda ".repeat(40),
        output_tokens: 40,
        finish_reason: None,
        ms: 200,
    };
    play.msg(Msg::Smoke(Ok(probe)));
    assert!(
        matches!(
            play.state(|k| *k == TaskKind::Smoke),
            TaskState::Failed { .. }
        ),
        "{}",
        play.said()
    );
    assert!(play.model.rig.smoke_passed.is_none());
}

#[test]
fn a_server_of_somebody_else_is_not_restarted() {
    let mut play = Play::new();
    play.msg(Msg::Started).msg(attached(32_768, false));
    play.select(raise(65_536)).key(Action::Act);
    assert!(
        play.model.dialogs.is_empty() && play.said().contains("did not start"),
        "{}",
        play.said()
    );
}

#[test]
fn a_second_cockpit_is_read_only_and_says_who_holds_the_service() {
    let mut play = Play::new();
    play.msg(Msg::Started)
        .msg(Msg::Locked("eva@kpro5, pid 77".into()))
        .msg(attached(32_768, true));
    assert!(
        play.model
            .tasks
            .list
            .iter()
            .all(|t| t.state != TaskState::Waiting)
    );
    play.select(raise(65_536)).key(Action::Act);
    assert!(
        play.model.dialogs.is_empty() && play.said().contains("eva@kpro5, pid 77"),
        "{}",
        play.said()
    );
    play.model.focus = Pane::Config;
    play.msg(Msg::Do(Action::MoveRight))
        .msg(Msg::Do(Action::ConfigApply));
    assert!(play.model.dialogs.is_empty() && play.effects.is_empty());
    // What does nothing there is not offered, and says so if it is tried.
    for (pane, not) in [
        (Pane::Config, Action::ConfigEdit),
        (Pane::Config, Action::ConfigApply),
        (Pane::Tasks, Action::TaskAdd),
        (Pane::Tasks, Action::TaskSkip),
    ] {
        play.model.focus = pane;
        let offered = keys::possible(&play.model);
        assert!(offered.iter().all(|(action, _)| *action != not), "{not}");
        let tasks = play.model.tasks.list.clone();
        play.model.message = None;
        play.msg(Msg::Do(not));
        assert!(play.said().contains("eva@kpro5"), "{not}: {}", play.said());
        assert!(play.model.dialogs.is_empty() && play.model.config.editing.is_none());
        assert_eq!(play.model.tasks.list, tasks);
    }
}

#[test]
fn an_absent_server_is_started_by_the_demo_and_offered_otherwise() {
    let refused = || EngineError::Refused {
        url: "http://127.0.0.1:30000".into(),
    };
    let mut play = Play::new();
    play.msg(Msg::Started).msg(Msg::Absent {
        service: Some(view()),
        error: refused(),
        exit: None,
    });
    let [Effect::StartAbsent(plan)] = play.effects.as_slice() else {
        panic!("{:?}", play.effects)
    };
    assert_eq!(
        (plan.purpose, plan.to.context, plan.from.clone()),
        (Purpose::Start, 32_768, None)
    );
    play.ready(32_768);
    assert!(
        !play.model.on_trial() && play.model.dialogs.is_empty(),
        "a first start is no trial"
    );
    assert!(matches!(
        play.state(|k| *k == TaskKind::Attach),
        TaskState::Done { .. }
    ));

    let mut by_hand = profile();
    if let ServiceSpec::Process {
        start_when_absent, ..
    } = &mut by_hand.service
    {
        *start_when_absent = false;
    }
    let mut play = Play::with(Settings::default(), Some(by_hand));
    play.msg(Msg::Started).msg(Msg::Absent {
        service: Some(view()),
        error: refused(),
        exit: None,
    });
    assert!(
        play.model.running.is_none() && play.said().contains("32,768"),
        "{}",
        play.said()
    );
    play.select(|k| *k == TaskKind::Attach).key(Action::Act);
    assert!(matches!(play.model.dialog(), Some(Dialog::Restart(_))));
}

#[test]
fn a_lost_server_is_said_once_and_a_restart_is_no_loss() {
    let refused = || EngineError::Refused {
        url: "http://127.0.0.1:30000".into(),
    };
    let mut play = Play::attached(32_768);
    play.msg(Msg::Unreachable(refused()));
    assert!(matches!(play.model.rig.connection, Connection::Down { .. }));
    play.msg(Msg::Facts(Box::new(facts(32_768))));
    assert!(play.model.rig.up());
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .restart_steps(65_536);
    play.msg(Msg::Unreachable(refused()));
    assert_eq!(play.model.rig.connection, Connection::Restarting);
}

#[test]
fn a_slow_answer_under_our_own_load_is_no_loss() {
    let mut play = Play::attached(32_768);
    play.select(|k| *k == TaskKind::Throughput).key(Action::Act);
    let url = "http://127.0.0.1:30000".to_string();
    play.msg(Msg::Unreachable(EngineError::Timeout {
        url: url.clone(),
        after_s: 5,
    }));
    assert!(play.model.rig.up());
    play.msg(Msg::Unreachable(EngineError::Refused { url }));
    assert!(!play.model.rig.up(), "a refused connection is one");
}

#[test]
fn a_start_by_itself_is_tried_once() {
    let refused = || EngineError::Refused {
        url: "http://127.0.0.1:30000".into(),
    };
    let mut play = Play::new();
    play.msg(Msg::Started).msg(Msg::Absent {
        service: Some(view()),
        error: refused(),
        exit: None,
    });
    assert!(matches!(play.effects.as_slice(), [Effect::StartAbsent(_)]));
    play.ramp(Event::Ended(Outcome::Halted {
        failure: failure(None),
        back: None,
    }));
    play.msg(Msg::Absent {
        service: Some(view()),
        error: refused(),
        exit: None,
    });
    assert!(
        !play
            .effects
            .iter()
            .any(|e| matches!(e, Effect::StartAbsent(_))),
        "a failing start is no storm"
    );
    assert!(play.model.running.is_none());
}

#[test]
fn the_cards_are_those_that_its_processes_hold_and_stay_so_while_it_is_down() {
    let mut play = Play::attached(32_768);
    let card = |index: u32, pid: u32| {
        let why = Absent::Unsupported;
        let mut card = Card::bare(index, String::new(), "H100".into(), CardState::Ok, &why);
        card.memory = Reading::Value(Memory {
            total: 80 << 30,
            used: 40 << 30,
            free: (40 - u64::from(index)) << 30,
            reserved: 0,
        });
        card.processes = Reading::Value(vec![GpuProcess {
            pid,
            name: Some("python3".into()),
            used: Reading::Value(30 << 30),
        }]);
        card
    };
    let seen = |pid| Snapshot {
        cards: vec![card(0, pid), card(1, 99)],
        ..Snapshot::default()
    };
    let tenant = Tenant {
        pids: vec![7],
        env: Vec::new(),
    };
    play.msg(Msg::Gpus(seen(7))).msg(Msg::Tenant(tenant));
    assert_eq!(play.model.cards(), [0], "card 1 is somebody else's");
    let held = play.model.rig.held(&play.model.rig.gpus.cards[0]).unwrap();
    assert_eq!((held.server, held.others), (30 << 30, 10 << 30));
    play.msg(Msg::Ramp(Event::Step {
        leg: Leg::Forward,
        step: Step::Start,
        context: 65_536,
    }));
    play.msg(Msg::Gpus(seen(8)));
    assert_eq!(play.model.cards(), [0]);
    let first = &play.model.rig.gpus.cards[0];
    assert_eq!(
        play.model.rig.held(first),
        None,
        "the new one is not known yet"
    );
}
