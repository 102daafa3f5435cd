//! Restarts: their ends, their ways back, and those found unfinished.

use super::super::restart::plan as restart_plan;
use super::*;
use crate::app::dialog::Dialog;
use crate::app::effect::Effect;
use crate::app::model::Activity;
use crate::app::model::{Tone, TriedOutcome};
use crate::app::msg::{Attached, Msg};
use crate::app::task::{TaskKind, TaskState};
use crate::app::{evidence, keys};
use crate::engine::start::Progress;
use crate::engine::{EngineError, Load, Phase, Probe};
use crate::keymap::{Action, Context};
use crate::ramp::{Event, Intent, Leg, Outcome, Purpose, Step, Target, TargetKind, WayOut};
use crate::reading::Reading;

#[test]
fn how_far_a_start_is_and_that_it_stands_still_is_shown() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536)).key(Action::Act).key(Action::Yes);
    play.ramp(Event::Step {
        leg: Leg::Forward,
        step: Step::Watch,
        context: 65_536,
    });
    let view = |play: &Play| play.model.restart.clone().expect("it goes on");
    assert_eq!(view(&play).words(), "watch the start");
    let phase = |phase, percent, parts| Event::Phase {
        phase,
        progress: Progress { percent, parts },
    };
    play.ramp(phase(Phase::LoadingWeights, Some(71), Some((12, 17))));
    assert_eq!(view(&play).words(), "loading weights 12/17 shards");
    play.ramp(Event::Still(Some("no progress for 60 s".into())));
    assert!(view(&play).still.is_some());
    assert_eq!(play.said(), "no progress for 60 s");
    play.ramp(Event::Still(None));
    assert_eq!(view(&play).still, None);
    play.ramp(Event::Still(Some("no progress for 60 s".into())));
    play.ramp(phase(Phase::CapturingGraphs, Some(34), Some((9, 26))));
    assert_eq!(view(&play).words(), "capturing graphs 34 %");
    assert_eq!(view(&play).still, None);
    play.ramp(phase(Phase::WarmingUp, None, None));
    play.ramp(phase(Phase::WarmingUp, None, None));
    assert_eq!(view(&play).words(), "warming up");
    let phases: Vec<_> = play
        .model
        .marks
        .iter()
        .filter(|mark| mark.kind == crate::app::history::MarkKind::Phase)
        .map(|mark| (mark.text.as_deref().unwrap_or_default(), mark.context))
        .collect();
    let of = |words| (words, Some(65_536));
    assert_eq!(
        phases,
        [
            of("loading weights"),
            of("capturing graphs"),
            of("warming up")
        ],
        "each once"
    );
}

#[test]
fn a_failed_start_says_why_and_what_is_back() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .restart_steps(65_536);
    play.ramp(Event::Step {
        leg: Leg::Back,
        step: Step::Start,
        context: 32_768,
    });
    play.ramp(Event::Ended(Outcome::RolledBack {
        failure: failure(Some(49_152)),
        to: Target {
            kind: TargetKind::Previous,
            config: config(32_768),
        },
        facts: Box::new(facts(32_768)),
    }));
    assert!(
        play.said()
            .contains("65,536 failed, 32,768 (previous) is back in service")
            && play.said().contains("out of memory"),
        "{}",
        play.said()
    );
    assert_eq!(play.model.message.as_ref().map(|m| m.tone), Some(Tone::Bad));
    assert!(
        matches!(play.state(raise(65_536)), TaskState::Failed { why, .. } if why.contains("32,768 is back"))
    );
    assert_eq!(
        play.model.config.chosen,
        Some(49_152),
        "the engine's own suggestion is the next step"
    );
    assert!(!play.model.on_trial() && play.model.rig.up() && play.model.dialogs.is_empty());
    assert!(matches!(
        &play.model.tried[&65_536].outcome,
        TriedOutcome::Failed(_)
    ));
    let evidence = evidence::evidence(&play.model);
    assert!(
        evidence
            .iter()
            .any(|e| e.context == 65_536 && e.failed.is_some())
    );
    play.select(raise(65_536)).key(Action::Act);
    let Some(Dialog::Restart(dialog)) = play.model.dialog() else {
        panic!("it may be tried again")
    };
    assert!(dialog.warnings.iter().any(|w| w.contains("failed before")));
}

#[test]
fn a_halt_says_that_nothing_serves() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .restart_steps(65_536);
    play.ramp(Event::Ended(Outcome::Halted {
        failure: failure(None),
        back: Some(failure(None)),
    }));
    assert!(
        play.said().contains("the way back failed too")
            && play.said().contains("nothing more happens without you")
    );
    assert!(play.model.rig.config.is_none() && !play.model.rig.up());
}

#[test]
fn last_good_needs_the_smoke_test_and_a_minute() {
    let mut play = Play::attached(32_768);
    play.wait(120_000).msg(Msg::Tick);
    assert!(
        play.effects.is_empty(),
        "served for long, but never smoke-tested"
    );
    play.select(|k| *k == TaskKind::Smoke).key(Action::Act);
    assert_eq!(play.effects, [Effect::Smoke]);
    let probe = Probe {
        text: "Paris is the capital of France.".into(),
        output_tokens: 8,
        finish_reason: None,
        ms: 200,
    };
    play.msg(Msg::Smoke(Ok(probe)));
    play.wait(50_000).msg(Msg::Tick);
    assert!(play.effects.is_empty(), "not a minute yet");
    play.wait(10_000).msg(Msg::Tick);
    assert_eq!(play.effects, [Effect::LastGood(config(32_768))]);
    play.select(raise(65_536)).key(Action::Act).key(Action::Yes);
    let [Effect::Restart(confirmed)] = play.effects.as_slice() else {
        panic!("{:?}", play.effects)
    };
    assert_eq!(
        confirmed.action().on_failure.as_ref().map(|t| t.kind),
        Some(TargetKind::LastGood)
    );
}

#[test]
fn a_last_good_of_another_launch_is_no_way_back() {
    let mut play = Play::new();
    let mut other = config(131_072);
    other.launch.argv.push("--port=9".into());
    play.msg(Msg::Started).msg(Msg::Attached(Box::new(Attached {
        facts: facts(32_768),
        service: Some(view()),
        config: Some(config(32_768)),
        last_good: Some(other),
    })));
    let plan = restart_plan(&play.model, Purpose::Change, 65_536).expect("a plan");
    assert_eq!(
        plan.on_failure.map(|t| (t.kind, t.config.context)),
        Some((TargetKind::Previous, 32_768))
    );
}

#[test]
fn foreign_load_is_drained_for_a_stated_time() {
    let busy = |n| Load {
        running: Reading::Value(n),
        waiting: Reading::Value(0),
        ..Default::default()
    };
    let mut play = Play::attached(32_768);
    play.msg(Msg::Load(busy(2)));
    assert_eq!(play.model.foreign(), Some(2));
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Drain);
    let drain = |play: &Play| match play.model.dialog() {
        Some(Dialog::Restart(dialog)) => dialog.drain.expect("draining"),
        other => panic!("{other:?}"),
    };
    play.wait(20_000).msg(Msg::Tick);
    assert!(!drain(&play).over(play.now));
    play.msg(Msg::Load(busy(0))).msg(Msg::Tick);
    play.wait(9_000).msg(Msg::Tick);
    assert!(
        !drain(&play).over(play.now),
        "a stated time of quiet is needed"
    );
    play.wait(1_000).msg(Msg::Tick);
    assert!(drain(&play).over(play.now));
    play.msg(Msg::Load(Load::default())).msg(Msg::Tick);
    assert!(
        !drain(&play).over(play.now),
        "what cannot be known is not quiet"
    );
}

#[test]
fn an_unfinished_restart_offers_both_ways_out() {
    let intent = |play: &Play| Intent {
        version: 1,
        plan: restart_plan(&play.model, Purpose::Change, 65_536).expect("a plan"),
        leg: Leg::Forward,
        step: Step::WaitCards,
        since_unix_ms: 0,
        by: "op@kpro5".into(),
        failure: None,
        simulated: true,
    };
    for (key, way) in [
        (Action::GoOn, WayOut::GoOn),
        (Action::BringBack, WayOut::RollBack),
    ] {
        let mut play = Play::attached(32_768);
        let found = intent(&play);
        play.msg(Msg::Found(Box::new(found)));
        assert_eq!(keys::context(&play.model), Context::Recovery);
        play.key(key);
        let [Effect::Recover(confirmed)] = play.effects.as_slice() else {
            panic!("{:?}", play.effects)
        };
        assert_eq!(confirmed.action().1, way);
    }
    let mut play = Play::attached(32_768);
    let found = intent(&play);
    play.msg(Msg::Found(Box::new(found))).key(Action::Back);
    assert!(play.effects.is_empty() && play.model.dialogs.is_empty());
}

#[test]
fn the_demo_does_not_start_over_an_unfinished_restart() {
    let mut play = Play::new();
    let plan = restart_plan(&play.model, Purpose::Start, 32_768).expect("a plan");
    let intent = Intent {
        version: 1,
        plan,
        leg: Leg::Forward,
        step: Step::Start,
        since_unix_ms: 0,
        by: "op@kpro5".into(),
        failure: None,
        simulated: true,
    };
    let error = EngineError::Refused {
        url: "http://127.0.0.1:30000".into(),
    };
    play.msg(Msg::Started).msg(Msg::Found(Box::new(intent)));
    play.msg(Msg::Absent {
        service: Some(view()),
        error,
        exit: None,
    });
    assert!(
        !play
            .effects
            .iter()
            .any(|e| matches!(e, Effect::StartAbsent(_))),
        "{:?}",
        play.effects
    );
    assert!(matches!(play.model.dialog(), Some(Dialog::Recovery(_))));
}

#[test]
fn a_crash_in_the_first_minute_is_a_restart_that_failed() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .ready(65_536);
    play.key(Action::Later);
    play.select(is_long(1_000)).key(Action::Act);
    assert_eq!(
        play.model.running.as_ref().map(|r| r.activity),
        Some(Activity::Bench)
    );
    play.ramp(Event::Step {
        leg: Leg::Back,
        step: Step::Stop,
        context: 32_768,
    });
    for wanted in [Effect::StopBench, Effect::LookAway] {
        assert!(play.effects.contains(&wanted), "{:?}", play.effects);
    }
    assert!(
        play.said().contains("going back to 32,768"),
        "{}",
        play.said()
    );
    // What the benchmark still says changes nothing of the restart.
    play.msg(Msg::Bench(crate::bench::Event::Finished { stopped: true }));
    assert_eq!(
        play.model.running.as_ref().map(|r| r.activity),
        Some(Activity::Restart)
    );
    play.ramp(Event::Ended(Outcome::RolledBack {
        failure: failure(None),
        to: Target {
            kind: TargetKind::Previous,
            config: config(32_768),
        },
        facts: Box::new(facts(32_768)),
    }));
    assert!(
        play.said()
            .contains("65,536 failed, 32,768 (previous) is back"),
        "{}",
        play.said()
    );
    assert!(matches!(
        play.state(raise(65_536)),
        TaskState::Failed { .. }
    ));
    assert!(!play.model.question_waits && !play.model.on_trial());
}

#[test]
fn an_interrupted_restart_that_is_rolled_back_has_not_failed() {
    let mut play = Play::attached(32_768);
    let plan = restart_plan(&play.model, Purpose::Change, 65_536).expect("a plan");
    let intent = Intent {
        version: 1,
        plan,
        leg: Leg::Forward,
        step: Step::Prove,
        since_unix_ms: 0,
        by: "op@kpro5".into(),
        failure: None,
        simulated: true,
    };
    play.msg(Msg::Found(Box::new(intent)))
        .key(Action::BringBack);
    play.ramp(Event::Ended(Outcome::RolledBack {
        failure: failure(None),
        to: Target {
            kind: TargetKind::Previous,
            config: config(32_768),
        },
        facts: Box::new(facts(32_768)),
    }));
    assert!(
        !play.said().contains("failed") && play.said().contains("32,768"),
        "{}",
        play.said()
    );
    assert_eq!(play.state(raise(65_536)), &TaskState::Pending);
    assert!(!play.model.rig.unfinished);
    assert!(
        play.model
            .tried
            .get(&65_536)
            .is_none_or(|t| t.outcome == TriedOutcome::Served)
    );
}
