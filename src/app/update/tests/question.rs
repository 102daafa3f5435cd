//! The question, its evidence, and the record.

use super::*;
use crate::app::dialog::Dialog;
use crate::app::effect::{Effect, Save};
use crate::app::history::MarkKind;
use crate::app::model::Pane;
use crate::app::msg::Msg;
use crate::app::task::{TaskKind, TaskState};
use crate::app::{evidence, keys};
use crate::clock::Now;
use crate::engine::EngineError;
use crate::keymap::{Action, Context};
use crate::ramp::TargetKind;
use crate::reading::Reading;

#[test]
fn a_blocked_task_leads_to_the_raise_and_the_question_to_the_record() {
    let mut play = Play::attached(32_768);
    play.select(is_long(60_000)).key(Action::Act);
    let Some(Dialog::Restart(dialog)) = play.model.dialog() else {
        panic!("the raise is asked for")
    };
    assert_eq!(dialog.pending.action().to.context, 65_536);
    assert!(
        dialog
            .diff
            .iter()
            .any(|line| format!("{line:?}").contains("--context-length 65536"))
    );
    play.key(Action::Yes);
    let [Effect::Restart(confirmed)] = play.effects.as_slice() else {
        panic!("{:?}", play.effects)
    };
    assert_eq!(
        confirmed
            .action()
            .on_failure
            .as_ref()
            .map(|t| (t.kind, t.config.context)),
        Some((TargetKind::Previous, 32_768))
    );
    play.ready(65_536);
    assert!(matches!(play.state(raise(65_536)), TaskState::Done { .. }));
    assert_eq!(
        play.state(is_long(60_000)),
        &TaskState::Pending,
        "it fits now"
    );
    assert!(play.model.on_trial());
    assert_eq!(play.state(|k| *k == TaskKind::Decide), &TaskState::Waiting);
    let kinds: Vec<MarkKind> = play.model.marks.iter().map(|m| m.kind).collect();
    assert_eq!(kinds, [MarkKind::Stop, MarkKind::Start, MarkKind::Ready]);
    assert_eq!(play.model.marks[0].context, Some(32_768));

    assert!(
        matches!(play.model.dialog(), Some(Dialog::Question(_))),
        "it comes up by itself"
    );
    play.key(Action::Keep);
    let [Effect::Keep(keep)] = play.effects.as_slice() else {
        panic!("{:?}", play.effects)
    };
    assert_eq!(
        (keep.action().config.context, keep.action().previous),
        (65_536, Some(32_768))
    );
    assert!(play.model.on_trial(), "not kept before it is written");
    play.msg(Msg::Kept(Ok("written to vramp.toml".into())));
    assert_eq!(play.model.production(), Some(65_536));
    assert!(!play.model.on_trial());
    let decided = play.model.decisions.last().expect("on record");
    assert_eq!(
        (decided.value, decided.previous, decided.simulated),
        (65_536, Some(32_768), true)
    );
    assert_eq!(decided.who, who());
    assert!(
        play.effects
            .iter()
            .any(|e| matches!(e, Effect::Save(Save::Decision(_))))
    );
}

#[test]
fn a_value_that_could_not_be_written_is_not_kept() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .ready(65_536)
        .key(Action::Keep);
    play.msg(Msg::Kept(Err(
        "is not kept: the profile cannot be written: permission denied".into(),
    )));
    assert_eq!(play.model.production(), Some(32_768));
    assert!(play.model.on_trial() && play.model.question_waits && play.model.decisions.is_empty());
    assert!(
        play.said()
            .starts_with("65,536 is not kept: the profile cannot be written: permission denied"),
        "{}",
        play.said()
    );
}

#[test]
fn keys_from_before_the_dialog_and_enter_never_confirm() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536)).msg(Msg::Do(Action::Act));
    play.msg(Msg::Do(Action::Yes));
    assert!(
        play.effects.is_empty() && play.model.dialog().is_some(),
        "never drawn, so never answered"
    );
    play.msg(Msg::Drawn);
    play.now.mono_ms -= 300;
    play.msg(Msg::Do(Action::Yes));
    assert!(
        play.effects.is_empty() && play.model.running.is_none(),
        "200 ms after the first frame it is deaf"
    );
    play.wait(200).msg(Msg::Do(Action::Act));
    assert!(
        play.effects.is_empty() && play.model.dialog().is_some(),
        "Enter answers nothing"
    );
    play.msg(Msg::Do(Action::Yes));
    assert!(matches!(play.effects.as_slice(), [Effect::Restart(_)]));
}

#[test]
fn the_question_waits_while_a_text_has_the_keys() {
    let mut play = Play::attached(32_768);
    play.select(raise(65_536)).key(Action::Act).key(Action::Yes);
    play.model.focus = Pane::Config;
    play.msg(Msg::Do(Action::ConfigEdit));
    assert_eq!(keys::context(&play.model), Context::Text);
    play.ready(65_536);
    assert!(play.model.dialogs.is_empty() && play.model.question_waits);
    play.msg(Msg::Do(Action::Cancel));
    play.select(|k| *k == TaskKind::Decide).key(Action::Act);
    assert!(matches!(play.model.dialog(), Some(Dialog::Question(_))));
    play.key(Action::Later);
    assert!(play.model.question_waits && play.model.dialogs.is_empty());
}

#[test]
fn what_a_card_held_before_the_server_served_is_no_evidence() {
    let shot = |at: Now, free: u64| {
        let memory = crate::gpu::Memory {
            total: 48,
            used: 48 - free,
            free,
            reserved: 0,
        };
        let card = crate::gpu::Card {
            index: 0,
            uuid: String::new(),
            name: "RTX A6000".into(),
            state: crate::gpu::CardState::Ok,
            memory: Reading::Value(memory),
            busy_pct: Reading::unsupported(),
            temp_c: Reading::unsupported(),
            power_mw: Reading::unsupported(),
            power_limit_mw: Reading::unsupported(),
            processes: Reading::unsupported(),
            detail: crate::gpu::Detail::default(),
        };
        Msg::Gpus(crate::gpu::Snapshot {
            at,
            cards: vec![card],
            ..Default::default()
        })
    };
    let mut play = Play::attached(32_768);
    play.select(raise(65_536)).key(Action::Act).key(Action::Yes);
    let early = play.now;
    play.ready(65_536)
        .msg(Msg::Tenant(crate::gpu::Tenant::default()))
        .msg(shot(early, 2));
    let tightest = |play: &Play| {
        evidence::evidence(&play.model)
            .iter()
            .find(|e| e.context == 65_536)
            .and_then(|e| e.tightest)
    };
    assert_eq!(tightest(&play), None, "it was loading then");
    let now = play.now;
    play.msg(shot(now, 7));
    assert_eq!(tightest(&play), Some((0, 7)));
    play.key(Action::Keep)
        .msg(Msg::Kept(Ok("written to vramp.toml".into())));
    let kept = &play.model.decisions.last().expect("decided").evidence;
    assert!(
        kept.iter()
            .any(|e| e.context == 65_536 && e.tightest == Some((0, 7))),
        "as it stood at the keypress"
    );
}

#[test]
fn nothing_unproven_or_gone_can_be_kept() {
    // Found at the start, not proven since.
    let mut play = Play::attached(32_768);
    play.model.rig.config = Some(config(65_536));
    play.msg(Msg::Facts(Box::new(facts(65_536))));
    play.select(|k| *k == TaskKind::Decide).key(Action::Act);
    assert!(
        play.model.dialogs.is_empty() && play.said().contains("not proven"),
        "{}",
        play.said()
    );

    // The server dies while the question stands there.
    let mut play = Play::attached(32_768);
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .ready(65_536);
    assert!(matches!(play.model.dialog(), Some(Dialog::Question(_))));
    play.msg(Msg::Unreachable(EngineError::Refused {
        url: "http://127.0.0.1:30000".into(),
    }));
    assert!(play.model.dialogs.is_empty() && play.model.question_waits);
    play.select(|k| *k == TaskKind::Decide)
        .key(Action::Act)
        .key(Action::Keep);
    assert!(
        !play.effects.iter().any(|e| matches!(e, Effect::Keep(_))),
        "{}",
        play.said()
    );

    // An unfinished restart lies on disk.
    let mut play = Play::attached(32_768);
    play.select(raise(65_536))
        .key(Action::Act)
        .key(Action::Yes)
        .ready(65_536)
        .key(Action::Later);
    play.model.rig.unfinished = true;
    play.select(|k| *k == TaskKind::Decide).key(Action::Act);
    assert!(
        play.model.dialogs.is_empty() && play.said().contains("unfinished restart"),
        "{}",
        play.said()
    );
}
