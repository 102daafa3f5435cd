//! The core as lists of messages.

use super::super::dialog::Dialog;
use super::super::effect::{Effect, Save};
use super::super::evidence;
use super::super::history::MarkKind;
use super::super::model::{Model, Pane, Restored, Settings, Tone, TriedOutcome, Who};
use super::super::msg::{Attached, Msg};
use super::super::rig::{Connection, ServiceView};
use super::super::task::{TaskKind, TaskState};
use super::super::{config::Edit, keys};
use super::update;
use crate::bench::plan::{Cell, PlanKind};
use crate::bench::point::{ClientHealth, Point, ServerSide, Summary, TokensSource, Validity};
use crate::bench::{self, Live};
use crate::clock::Now;
use crate::engine::{self, EngineError, Facts, Health, Kind, Load, Probe};
use crate::keymap::{Action, Context};
use crate::profile::{Launch, Profile, ServiceSpec};
use crate::ramp::{
    Event, Intent, Leg, Outcome, Purpose, StartFailure, Step, Target, TargetKind, WayOut,
};
use crate::reading::Reading;
use crate::service::Config;
use std::path::Path;

/// Plays messages to a cockpit, half a second apart.
struct Play {
    model: Model,
    now: Now,
    effects: Vec<Effect>,
}

fn who() -> Who {
    Who {
        user: "op".into(),
        host: "kpro5".into(),
    }
}

fn profile() -> Profile {
    let file = Path::new("/tmp/demo/vramp.toml");
    let text = crate::profile::demo_text(Path::new("/bin/vramp"), Path::new("/tmp/demo"), 30_000);
    crate::profile::parse(file, &text, Some("demo"))
        .expect("the demo's profile reads")
        .expect("it is there")
        .profile
}

fn launch(profile: &Profile) -> Launch {
    match &profile.service {
        ServiceSpec::Process { launch, .. } => launch.clone(),
        _ => panic!("the demo starts its server"),
    }
}

fn config(context: u64) -> Config {
    Config {
        context,
        launch: launch(&profile()),
    }
}

fn facts(context: u64) -> Facts {
    Facts {
        kind: Kind::Sglang,
        version: Reading::Value("0.5.11".into()),
        model: Reading::Value("qwen3.6-27b".into()),
        health: Health::Up,
        context: engine::Context {
            configured: Reading::Value(context),
            effective: Reading::Value(context),
            model_limit: Reading::Value(262_144),
            pool_tokens: Reading::Value(159_744),
            ..Default::default()
        },
        simulated: true,
        notes: Vec::new(),
    }
}

fn view() -> ServiceView {
    ServiceView {
        name: "process vramp".into(),
        trial_note: "a reboot brings nothing back".into(),
        log: None,
        launch: Some(launch(&profile())),
        production: None,
        deadline_unix_ms: None,
        launch_fixed: None,
    }
}

fn attached(context: u64, ours: bool) -> Msg {
    Msg::Attached(Box::new(Attached {
        facts: facts(context),
        service: Some(view()),
        config: ours.then(|| config(context)),
        last_good: None,
    }))
}

fn point(cell: Cell, context: u64, decode: f64) -> Point {
    let ms = |p50: f64| Summary {
        n: 1,
        p50: Some(p50),
        ..Default::default()
    };
    Point {
        cell,
        context: Some(context),
        started_unix_ms: 0,
        ended_unix_ms: 1,
        total: cell.requests,
        ok: cell.requests,
        failed: 0,
        failures: Vec::new(),
        input_tokens: cell.input,
        output_tokens: cell.output,
        tokens_source: TokensSource::Usage,
        tokens_per_chunk: None,
        ttft_ms: ms(cell.input as f64 / 7.0),
        client_queue_ms: Summary::default(),
        queue_ms: Summary::default(),
        prefill_ms: Summary::default(),
        first_answer_ms: Summary::default(),
        itl_ms: Summary::default(),
        itl_estimated: false,
        chunk_gap_ms: Summary::default(),
        stalls: 0,
        tpot_ms: ms(1000.0 / decode),
        e2e_ms: Summary::default(),
        output_tok_s: Some(decode),
        decode_tok_s: Some(decode),
        prefill_tok_s: None,
        requests_s: None,
        slo: Default::default(),
        goodput: None,
        slo_share: None,
        steady_s: None,
        spread_us: 30,
        repeat: false,
        cached_share: Some(0.0),
        validity: Validity::Valid,
        reasons: Vec::new(),
        client: ClientHealth::default(),
        server_side: ServerSide::default(),
        cards: Vec::new(),
        requests: Vec::new(),
        partial: false,
        simulated: true,
    }
}

impl Play {
    fn new() -> Self {
        Play::with(
            Settings {
                demo: true,
                ..Default::default()
            },
            Some(profile()),
        )
    }

    fn with(settings: Settings, profile: Option<Profile>) -> Self {
        let now = Now {
            mono_ms: 0,
            unix_ms: 1_700_000_000_000,
        };
        Play {
            model: Model::new(now, who(), settings, profile, Restored::default()),
            now,
            effects: Vec::new(),
        }
    }

    fn attached(context: u64) -> Self {
        let mut play = Play::new();
        play.msg(Msg::Started).msg(attached(context, true));
        play
    }

    fn wait(&mut self, ms: u64) -> &mut Self {
        self.now.mono_ms += ms;
        self.now.unix_ms += ms as i64;
        self
    }

    fn msg(&mut self, msg: Msg) -> &mut Self {
        self.wait(500);
        self.effects = update(&mut self.model, self.now, msg);
        self
    }

    /// A key that counts: the dialog was drawn and has been there long enough.
    fn key(&mut self, action: Action) -> &mut Self {
        self.msg(Msg::Drawn);
        self.msg(Msg::Do(action))
    }

    fn select(&mut self, wanted: impl Fn(&TaskKind) -> bool) -> &mut Self {
        self.model.focus = Pane::Tasks;
        self.model.tasks.selected = self
            .model
            .tasks
            .list
            .iter()
            .position(|t| wanted(&t.kind))
            .expect("the task is there");
        self
    }

    fn state(&self, wanted: impl Fn(&TaskKind) -> bool) -> &TaskState {
        &self
            .model
            .tasks
            .find(|t| wanted(&t.kind))
            .expect("the task is there")
            .state
    }

    fn said(&self) -> &str {
        self.model.message.as_ref().map_or("", |m| m.text.as_str())
    }

    fn ramp(&mut self, event: Event) -> &mut Self {
        self.msg(Msg::Ramp(event))
    }

    fn restart_steps(&mut self, context: u64) -> &mut Self {
        for step in [
            Step::Validate,
            Step::Stop,
            Step::WaitCards,
            Step::Start,
            Step::Watch,
            Step::Prove,
        ] {
            self.ramp(Event::Step {
                leg: Leg::Forward,
                step,
                context,
            });
        }
        self
    }

    fn ready(&mut self, context: u64) -> &mut Self {
        self.restart_steps(context);
        self.ramp(Event::Ended(Outcome::Ready {
            facts: Box::new(facts(context)),
            took_ms: 72_000,
        }))
    }
}

fn is_long(input: u64) -> impl Fn(&TaskKind) -> bool {
    move |kind| matches!(kind, TaskKind::LongContext { inputs } if inputs.contains(&input))
}

fn raise(to: u64) -> impl Fn(&TaskKind) -> bool {
    move |kind| *kind == TaskKind::Raise { to }
}

fn failure(suggests: Option<u64>) -> StartFailure {
    StartFailure {
        step: Step::Watch,
        phase: None,
        cause: "out of memory".into(),
        line: Some("CUDA out of memory".into()),
        advice: None,
        suggests,
    }
}

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
        "the profile cannot be written: permission denied".into(),
    )));
    assert_eq!(play.model.production(), Some(32_768));
    assert!(play.model.on_trial() && play.model.question_waits && play.model.decisions.is_empty());
    assert!(play.said().contains("permission denied"), "{}", play.said());
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
fn a_run_fills_the_pane_and_the_evidence() {
    let mut play = Play::attached(32_768);
    play.select(is_long(1_000)).key(Action::Act);
    let Some(Effect::StartBench { cells, .. }) = play.effects.last() else {
        panic!("{:?}", play.effects)
    };
    let inputs: Vec<u64> = cells.iter().map(|c| c.input).collect();
    assert_eq!(inputs, [1_000, 10_000, 30_000]);
    let cells = cells.clone();
    for (index, (cell, decode)) in cells.iter().zip([73.6, 73.1, 71.8]).enumerate() {
        play.msg(Msg::Bench(bench::Event::CellStarted {
            index,
            of: 3,
            cell: *cell,
        }));
        play.msg(Msg::Bench(bench::Event::Live(Live {
            done: 1,
            of: 8,
            in_flight: 1,
            ..Default::default()
        })));
        play.msg(Msg::Bench(bench::Event::CellDone(Box::new(point(
            *cell, 32_768, decode,
        )))));
        assert!(matches!(
            play.effects.as_slice(),
            [Effect::Save(Save::Point(_))]
        ));
    }
    play.msg(Msg::Tick);
    assert!(
        matches!(play.state(is_long(1_000)), TaskState::Running { share: Some(s), .. } if *s > 600)
    );
    play.msg(Msg::Bench(bench::Event::Finished { stopped: false }));
    assert!(matches!(play.state(is_long(1_000)), TaskState::Done { .. }));
    let evidence = evidence::evidence(&play.model);
    assert_eq!(evidence.len(), 1);
    assert_eq!(evidence[0].longest.map(|(input, _)| input), Some(30_000));
    assert!((evidence[0].vs_short.expect("compared") - (71.8 / 73.6 - 1.0) * 100.0).abs() < 1e-9);
}

#[test]
fn each_context_measures_its_own_baseline() {
    let mut play = Play::attached(65_536);
    play.select(is_long(60_000)).key(Action::Act);
    let Some(Effect::StartBench { cells, .. }) = play.effects.last() else {
        panic!("{:?}", play.effects)
    };
    let inputs: Vec<u64> = cells.iter().map(|c| c.input).collect();
    assert_eq!(inputs, [1_000, 60_000]);
}

#[test]
fn stopping_keeps_what_was_measured() {
    let mut play = Play::attached(32_768);
    play.select(|k| *k == TaskKind::Throughput).key(Action::Act);
    play.key(Action::Stop);
    assert!(matches!(play.model.dialog(), Some(Dialog::Stop(_))));
    play.key(Action::Yes);
    assert_eq!(play.effects, [Effect::StopBench]);
    let cell = Cell {
        kind: PlanKind::Throughput,
        input: 1000,
        output: 500,
        concurrency: 1,
        requests: 8,
        arrivals: Default::default(),
    };
    play.msg(Msg::Bench(bench::Event::CellDone(Box::new(point(
        cell, 32_768, 73.5,
    )))));
    play.msg(Msg::Bench(bench::Event::Finished { stopped: true }));
    assert_eq!(
        play.state(|k| *k == TaskKind::Throughput),
        &TaskState::Pending
    );
    assert_eq!(play.model.bench.points.len(), 1);
    assert!(play.model.running.is_none());
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
fn an_unfinished_restart_offers_both_ways_out() {
    let intent = |play: &Play| Intent {
        version: 1,
        plan: super::restart::plan(&play.model, Purpose::Change, 65_536).expect("a plan"),
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
    let plan = super::restart::plan(&play.model, Purpose::Start, 32_768).expect("a plan");
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
    play.ready(65_536).msg(shot(early, 2));
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
    let plan = super::restart::plan(&play.model, Purpose::Change, 65_536).expect("a plan");
    assert_eq!(
        plan.on_failure.map(|t| (t.kind, t.config.context)),
        Some((TargetKind::Previous, 32_768))
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
fn an_interrupted_restart_that_is_rolled_back_has_not_failed() {
    let mut play = Play::attached(32_768);
    let plan = super::restart::plan(&play.model, Purpose::Change, 65_536).expect("a plan");
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
