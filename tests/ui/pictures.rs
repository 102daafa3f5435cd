//! Every pane and dialog at the three designed sizes.

use crate::rig::*;
use vramp::app::bench::View;
use vramp::app::config::Edit;
use vramp::app::dialog::*;
use vramp::app::forecast::warnings;
use vramp::app::history::{History, Mark, MarkKind};
use vramp::app::model::{Activity, Model, Pane, RestartView, Running, Tone};
use vramp::app::question::keep_plan;
use vramp::bench::plan::PlanKind;
use vramp::bench::point::{Failure, FailureKind, Reason, TokensSource, Validity};
use vramp::clock::Now;
use vramp::confirm::Pending;
use vramp::engine::start::Progress;
use vramp::engine::{EngineError, Phase};
use vramp::gpu::{CardState, Ecc, Pcie, Snapshot, Throttle, Xid};
use vramp::ramp::*;
use vramp::reading::{Absent, Reading};
use vramp::service::{Config, ProcessId};

pub const SIZES: [(u16, u16); 3] = [(160, 48), (120, 36), (80, 24)];

fn config(context: u64) -> Config {
    Config {
        context,
        launch: launch(),
    }
}

fn plan(purpose: Purpose, to: u64) -> RestartPlan {
    RestartPlan {
        purpose,
        from: Some(config(65_536)),
        to: config(to),
        on_failure: Some(Target {
            kind: TargetKind::LastGood,
            config: config(65_536),
        }),
        production: Some(32_768),
        deadline_s: None,
    }
}

fn with(mut model: Model, dialog: Dialog) -> Model {
    model.dialogs.push(dialog);
    model
}

fn focused(mut model: Model, pane: Pane) -> Model {
    model.focus = pane;
    model
}

pub fn question() -> Model {
    let model = judged();
    let plan = keep_plan(&model).unwrap();
    with(model, Dialog::Question(Pending::new(plan)))
}

pub fn restart_asked() -> Model {
    let mut model = idle();
    model.rig.load.running = Reading::Value(3);
    let dialog = RestartDialog {
        pending: Pending::new(plan(Purpose::Change, 131_072)),
        task: None,
        forecast: vec![
            "memory: about as now, the KV pool is taken at start (estimate, ± 0.3 GiB a card)".into(),
            "capacity: 2.4 x → 1.2 x full-length requests (estimate, from the present pool of 159,744 tokens)".into(),
        ],
        warnings: vec![
            "a context of 131,072 fits 1.2 requests at once".into(),
            "if it fails, 65,536 (last good) comes back by itself".into(),
        ],
        diff: vec![
            DiffLine::Same("python3 \\".into()),
            DiffLine::Removed("  --context-length 65536 \\".into()),
            DiffLine::Added("  --context-length 131072 \\".into()),
        ],
        drain: Some(Drain {
            since: Now {
                mono_ms: now().mono_ms - 42_000,
                ..now()
            },
            quiet_since: None,
        }),
    };
    with(model, Dialog::Restart(Box::new(dialog)))
}

/// A unit, whose trials may have a deadline.
fn of_unit(mut model: Model) -> Model {
    if let Some(service) = &mut model.rig.service {
        service.name = "llm.service".into();
        service.no_deadline = None;
    }
    model
}

pub fn question_with_deadline() -> Model {
    let mut model = of_unit(question());
    model.rig.deadline_s = Some(600);
    if let Some(service) = &mut model.rig.service {
        service.deadline_unix_ms = Some(model.now.unix_ms + 412_000);
    }
    model
}

pub fn restart_with_deadline() -> Model {
    let mut model = of_unit(restart_asked());
    model.rig.load.running = Reading::Value(0);
    if let Some(Dialog::Restart(mut dialog)) = model.dialogs.pop() {
        dialog.drain = None;
        dialog.pending.amend(|plan| plan.deadline_s = Some(600));
        dialog.warnings = warnings(&model, dialog.pending.action());
        model.dialogs.push(Dialog::Restart(dialog));
    }
    model
}

fn zoomed(mut model: Model, pane: Pane) -> Model {
    model.zoomed = true;
    focused(model, pane)
}

fn restarting() -> Model {
    let mut model = focused(idle(), Pane::Gpus);
    model.running = Some(Running {
        activity: Activity::Restart,
        task: Some(8),
        since: now(),
        stopping: false,
    });
    let mut view = RestartView::new(&plan(Purpose::Change, 131_072), now());
    view.step = Step::Watch;
    let progress = Progress {
        percent: Some(40),
        parts: Some((6, 15)),
    };
    view.phase = Some((Phase::LoadingWeights, progress));
    model.restart = Some(view);
    model.log.push_back(
        "Loading safetensors checkpoint shards:  40% Completed | 6/15 [00:12<00:18]".into(),
    );
    model
}

fn recovery() -> Model {
    let intent = Intent {
        version: 1,
        plan: plan(Purpose::Change, 131_072),
        leg: Leg::Forward,
        step: Step::Watch,
        since_unix_ms: noon() - 300_000,
        by: "root@kpro5".into(),
        failure: None,
        simulated: false,
    };
    let recovery = Recovery {
        go_on: Pending::new((intent.clone(), WayOut::GoOn)),
        roll_back: Pending::new((intent, WayOut::RollBack)),
    };
    with(fresh(), Dialog::Recovery(Box::new(recovery)))
}

/// Two cards that do not let go: a left-over and a container on the one, nobody listed on the other.
fn occupied() -> Model {
    let left_over = LeftOver {
        id: ProcessId {
            pid: 4711,
            start_ticks: 1,
            boot_id: String::new(),
        },
        name: "python3".into(),
    };
    let holder = |pid, name: &str, mib: u64| Holder {
        pid,
        name: Some(name.into()),
        container: None,
        bytes: Some(mib << 20),
        left_over: false,
    };
    let held = vec![
        HeldCard {
            card: 0,
            above_bytes: Some(41_000 << 20),
            holders: vec![
                Holder {
                    left_over: true,
                    ..holder(4711, "python3", 36_000)
                },
                Holder {
                    container: Some(ContainerName {
                        id: "3f2a1b0c9d8e".into(),
                        name: Some("embeddings".into()),
                    }),
                    ..holder(905, "tei-server", 5_000)
                },
            ],
        },
        HeldCard {
            card: 1,
            above_bytes: Some(36_000 << 20),
            holders: vec![],
        },
    ];
    occupied_by(Occupied {
        waited_s: 60,
        grace_s: 10,
        held,
        left_overs: vec![left_over],
    })
}

/// Eight cards, each held by a process that is none of ours.
fn occupied_by_others() -> Model {
    let held = (0..8).map(|card| HeldCard {
        card,
        above_bytes: Some(20_000 << 20),
        holders: vec![Holder {
            pid: 900 + card,
            name: Some("trainer".into()),
            container: None,
            bytes: Some(20_000 << 20),
            left_over: false,
        }],
    });
    occupied_by(Occupied {
        waited_s: 60,
        grace_s: 10,
        held: held.collect(),
        left_overs: vec![],
    })
}

fn occupied_by(occupied: Occupied) -> Model {
    let mut model = restarting();
    if let Some(view) = &mut model.restart {
        view.step = Step::WaitCards;
        view.phase = None;
    }
    let left_overs = occupied.left_overs.clone();
    let dialog = CardsDialog {
        occupied,
        wait_on: Pending::new(CardsChoice::WaitOn),
        end: (!left_overs.is_empty()).then(|| Pending::new(CardsChoice::End(left_overs))),
        give_up: Pending::new(CardsChoice::GiveUp),
    };
    with(model, Dialog::Cards(Box::new(dialog)))
}

fn entry(kind: EntryKind, text: &str, error: Option<&str>) -> Model {
    let entry = Entry {
        kind,
        edit: Edit::at_end(text),
        error: error.map(String::from),
    };
    with(focused(idle(), Pane::Config), Dialog::Entry(entry))
}

fn log() -> Model {
    let mut model = walk();
    for i in 0..80 {
        model.log.push_back(format!("[2026-03-01 12:{:02}:{:02}] Decode batch. #running-req: 1, gen throughput (token/s): 69.{}", i / 60, i % 60, i % 10));
    }
    model.search = Some("throughput".into());
    with(model, Dialog::Log { back: 3 })
}

fn editing() -> Model {
    let mut model = focused(idle(), Pane::Config);
    model.config.editing = Some(Edit {
        text: model.config.launch_text.clone(),
        cursor: (4, 9),
    });
    model
}

/// The operator has turned to another context, and the model is known.
pub fn forecast() -> Model {
    let mut model = focused(idle(), Pane::Config);
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/kv/configs/qwen3.6-27b.json"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let geometry = vramp::memory::config::parse(&text, Some("Qwen3.6-27B")).unwrap();
    model.rig.geometry = Some(Ok(Box::new(geometry)));
    let mut config = config(65_536);
    let more = [
        "--max-running-requests",
        "16",
        "--speculative-num-draft-tokens",
        "4",
    ];
    config.launch.argv.extend(more.map(String::from));
    if let Some(service) = &mut model.rig.service {
        service.launch = Some(config.launch.clone());
    }
    model.rig.config = Some(config);
    model.config.chosen = Some(131_072);
    model
}

/// Many cards, the fourth and fifth somebody else's, with one lost, one that cannot be read, and some in trouble.
pub fn cards(count: u32) -> Model {
    let mut model = focused(idle(), Pane::Gpus);
    model.rig.gpus.cards = (0..count)
        .map(|i| card(i, 41.6 - f64::from(i) * 2.3, 80 - i))
        .collect();
    history(&mut model, count as usize);
    for card in &mut model.rig.gpus.cards {
        let detail = &mut card.detail;
        detail.sm_mhz = Reading::Value(1_755 - card.index * 15);
        detail.throttle = Reading::Value(match card.index {
            1 => vec![Throttle::PowerCap],
            2 => vec![Throttle::Thermal, Throttle::ApplicationClocks],
            _ => Vec::new(),
        });
        detail.pcie = Reading::Value(Pcie {
            tx_bytes_s: Reading::Value(1_200_000_000),
            rx_bytes_s: Reading::Value(400_000_000),
            ..Pcie::default()
        });
        if matches!(card.index, 3 | 4) {
            card.processes = Reading::Value(vec![process(99, 20.0)]);
        }
        if card.index == 7 {
            detail.ecc = Reading::Value(Ecc {
                corrected: 12,
                uncorrected: 2,
            });
        }
    }
    if let Some(card) = model.rig.gpus.cards.get_mut(5) {
        card.state = CardState::Lost {
            since_unix_ms: noon() - 60_000,
        };
        card.memory = Reading::Absent(Absent::Lost);
        card.detail.xid = Reading::Value(Some(Xid {
            code: 79,
            at_unix_ms: noon() - 60_000,
        }));
    }
    if let Some(card) = model.rig.gpus.cards.get_mut(6) {
        card.memory = Reading::failed("Insufficient Permissions");
        card.busy_pct = Reading::unsupported();
    }
    known(&mut model);
    model
}

/// A machine that tells little, on the screen of a server that is not run from here.
fn poor_host() -> Model {
    let mut model = focused(idle(), Pane::Gpus);
    if let Reading::Value(seen) = &mut model.rig.host {
        seen.cpu = Reading::default();
        seen.server = Reading::failed("its processes are not known");
        seen.swap = Reading::failed("/proc/meminfo does not tell");
        if let Reading::Value(memory) = &mut seen.memory {
            memory.used = memory.total / 100 * 96;
        }
    }
    model
}

/// A cursor in the middle of the start, on the chart of so many cards.
fn cursor(count: u32) -> Model {
    let mut model = match count {
        2 => focused(idle(), Pane::Gpus),
        many => cards(many),
    };
    model.window.cursor = Some(noon() / 1000 - 395);
    model
}

/// Five minutes that end a while ago.
fn scrolled() -> Model {
    let mut model = focused(idle(), Pane::Gpus);
    model.window.length_s = Some(300);
    model.window.end = Some(noon() / 1000 - 270);
    model
}

/// The start of 65,536 over the one of 32,768 before it, which took longer.
fn two_starts() -> Model {
    let mut model = focused(idle(), Pane::Gpus);
    model.history = History::default();
    let loads = |since: i64, took: i64| 0.4 + 41.2 * (since.min(took) as f64 / took as f64);
    for ago in (0..1_200).rev() {
        let used = match ago {
            1_100.. => 0.4,
            500..1_100 => loads(1_100 - ago, 140),
            430..500 => 0.4,
            _ => loads(430 - ago, 110),
        };
        let mib = Some((used * 1024.0) as u32);
        model.history.append(noon() / 1000 - ago, vec![mib, mib]);
    }
    let mark = |ago: i64, kind, context| Mark {
        unix_ms: noon() - ago * 1000,
        kind,
        context: Some(context),
        text: None,
    };
    model.marks = vec![
        mark(1_100, MarkKind::Start, 32_768),
        mark(940, MarkKind::Ready, 32_768),
        mark(500, MarkKind::Stop, 32_768),
        mark(430, MarkKind::Start, 65_536),
        mark(305, MarkKind::Ready, 65_536),
    ];
    model.window.overlaid = true;
    model
}

fn no_cards() -> Model {
    let mut model = focused(idle(), Pane::Gpus);
    model.rig.gpus = Snapshot {
        at: now(),
        fault: Some("no NVIDIA driver: libnvidia-ml.so.1 is not installed".into()),
        ..Snapshot::default()
    };
    model
}

/// Points in doubt, void, counted by chunks, with failures; a run that failed to start.
fn doubts() -> Model {
    let mut model = focused(idle(), Pane::Bench);
    let points = &mut model.bench.points;
    let n = points.len();
    let reason = |weighs, text: &str| Reason {
        weighs,
        text: text.into(),
    };
    points[n - 1].validity = Validity::Void;
    points[n - 1].reasons = vec![reason(
        Validity::Void,
        "12.0 % of the prompt came from the prefix cache",
    )];
    points[n - 2].validity = Validity::Suspect;
    points[n - 2].reasons = vec![reason(
        Validity::Suspect,
        "2 requests of others were on the server",
    )];
    points[n - 3].tokens_source = TokensSource::Chunks;
    model.bench.fault = Some("http://127.0.0.1:30000 answers 500: out of memory".into());
    model
}

fn failing() -> Model {
    let mut model = focused(walk(), Pane::Bench);
    let run = model.bench.run.as_mut().unwrap();
    run.live.failed = 2;
    run.push_failure(Failure {
        kind: FailureKind::Status(503),
        message: "503: the server is overloaded, try again later".into(),
    });
    model
}

pub fn throughput_selected() -> Model {
    let mut model = focused(idle(), Pane::Bench);
    model
        .bench
        .points
        .retain(|p| p.cell.kind == PlanKind::Throughput);
    model.bench.blocked.clear();
    model.bench.scroll = 2;
    model
}

fn latency() -> Model {
    let mut model = throughput_selected();
    model.bench.view = Some(View::Latency);
    model.bench.points[4].validity = Validity::Suspect;
    model
}

/// The same lengths and levels at two contexts, and a quick sweep among full ones.
fn contexts() -> Model {
    let mut model = focused(idle(), Pane::Bench);
    let mut quick = throughput_points();
    for point in &mut quick {
        point.cell.output = 100;
        point.output_tok_s = point.output_tok_s.map(|v| v * 0.8);
    }
    model.bench.points.extend(quick);
    let mut again = throughput_points();
    for point in &mut again {
        point.context = Some(65_536);
        point.output_tok_s = point.output_tok_s.map(|v| v * 1.1);
    }
    model.bench.points.extend(again);
    model
}

fn compared_latency() -> Model {
    let mut model = compared();
    model.bench.view = Some(View::Latency);
    if let Some(compared) = &mut model.bench.compared {
        compared.selected = 9;
    }
    model
}

fn runs() -> Model {
    let rows = (1..=12)
        .rev()
        .map(|id| run_row(id, (id == 7).then_some("before"), 8));
    let dialog = RunsDialog {
        rows: Some(rows.collect()),
        selected: 4,
        first: Some(7),
        ..RunsDialog::default()
    };
    with(idle(), Dialog::Runs(dialog))
}

fn down() -> Model {
    let mut model = fresh();
    model.rig.connection = vramp::app::rig::Connection::Down {
        since: now(),
        error: EngineError::Refused {
            url: "http://127.0.0.1:30000".into(),
        },
    };
    let why = "nothing answers at http://127.0.0.1:30000: connection refused. Is the server started, and is the port right?";
    model.tasks.list[0].state = vramp::app::task::TaskState::Failed {
        took_ms: 12,
        why: why.into(),
    };
    model.say(Tone::Bad, why);
    model
}

fn first_run() -> Model {
    let mut model = Model::new(
        now(),
        Default::default(),
        Default::default(),
        None,
        Default::default(),
    );
    model.first_run = Some("No profile: /home/op/.config/vramp/vramp.toml does not exist.".into());
    model
}

fn wide_names() -> Model {
    let mut model = idle();
    model.rig.facts.as_mut().unwrap().model =
        Reading::Value("通义千问大模型-二十七亿参数-指令微调版本".into());
    for card in &mut model.rig.gpus.cards {
        card.name = "显卡 \u{1b}[31mRTX\u{1b}[0m 一万亿".into();
    }
    model.tasks.list[1].title =
        "检查模型的回答是否正确并且不重复，长文本也要检查一遍，再写一份报告".into();
    model.tasks.list[2].title = "a\u{1b}]0;title\u{7}b\u{9b}2Jc".into();
    model
}

fn simulated() -> Model {
    let mut model = walk();
    model.settings.demo = true;
    model.settings.read_only = Some("read-only: op@other works on this service".into());
    model.question_waits = true;
    model.frozen = Some(now());
    model
}

/// The states that are drawn, by name.
pub fn states() -> Vec<(&'static str, Model)> {
    let lines = || {
        vec![
            "long context: 60,000 in, 200 out, concurrency 1, at a context of 65,536".to_string(),
            "tokens: 480,000 in, 1,600 out, from the server's usage".into(),
        ]
    };
    let diff = vec![
        DiffLine::Same("python3 \\".into()),
        DiffLine::Removed("  --tp 2 \\".into()),
        DiffLine::Added("  --tp 4 \\".into()),
    ];
    vec![
        ("walk", walk()),
        ("walk-gpus", focused(walk(), Pane::Gpus)),
        ("walk-bench", focused(walk(), Pane::Bench)),
        ("walk-config", focused(walk(), Pane::Config)),
        ("zoom-tasks", zoomed(walk(), Pane::Tasks)),
        ("zoom-gpus", zoomed(walk(), Pane::Gpus)),
        ("zoom-bench", zoomed(walk(), Pane::Bench)),
        ("zoom-config", zoomed(idle(), Pane::Config)),
        ("fresh", fresh()),
        ("idle", idle()),
        ("down", down()),
        ("first-run", first_run()),
        ("simulated", simulated()),
        ("restarting", restarting()),
        ("throughput", throughput_selected()),
        ("live", sweep()),
        ("live-zoom", zoomed(sweep(), Pane::Bench)),
        ("latency", latency()),
        ("contexts", contexts()),
        ("compare", compared()),
        ("compare-latency", compared_latency()),
        ("runs", runs()),
        ("doubts", doubts()),
        ("failing", failing()),
        ("editing", editing()),
        ("forecast", forecast()),
        ("cards-0", no_cards()),
        ("cards-1", cards(1)),
        ("cards-8", cards(8)),
        ("cards-16", cards(16)),
        ("poor-host", poor_host()),
        ("cursor", cursor(2)),
        ("cursor-8", cursor(8)),
        ("scrolled", scrolled()),
        ("two-starts", two_starts()),
        ("wide-names", wide_names()),
        ("question", question()),
        ("restart", restart_asked()),
        ("question-deadline", question_with_deadline()),
        ("restart-deadline", restart_with_deadline()),
        ("recovery", recovery()),
        ("occupied", occupied()),
        ("occupied-by-others", occupied_by_others()),
        ("stop", with(walk(), Dialog::Stop(Pending::new(())))),
        ("quit", with(walk(), Dialog::Quit(Pending::new(())))),
        ("context", entry(EntryKind::Context, "64K", None)),
        (
            "context-wrong",
            entry(
                EntryKind::Context,
                "64x",
                Some(
                    "cannot read \"64x\" as a length in tokens: it is not a whole number; write digits, or digits with K or M, for example 65536, 64K or 1M",
                ),
            ),
        ),
        (
            "task-new",
            entry(EntryKind::AddTask, "ask the night shift", None),
        ),
        (
            "help",
            with(
                walk(),
                Dialog::Help {
                    query: Edit::default(),
                    scroll: 0,
                },
            ),
        ),
        (
            "commands",
            with(
                walk(),
                Dialog::Commands {
                    query: Edit::at_end("task"),
                    selected: 2,
                },
            ),
        ),
        ("log", log()),
        ("origin", with(idle(), Dialog::Origin { lines: lines() })),
        (
            "diff",
            with(
                idle(),
                Dialog::Diff {
                    lines: diff,
                    scroll: 0,
                },
            ),
        ),
    ]
}

#[test]
fn every_state_looks_as_before() {
    for (name, model) in states() {
        for (width, height) in SIZES {
            insta::assert_snapshot!(
                format!("{name}-{width}x{height}"),
                screen(&model, width, height)
            );
        }
    }
}

#[test]
fn ascii_and_no_colour_say_the_same() {
    use vramp::theme::{Depth, GlyphSet};
    let theme = theme("mono", Depth::None, GlyphSet::Ascii);
    for (name, model) in [
        ("walk", walk()),
        ("question", question()),
        ("cards-8", cards(8)),
        ("two-starts", two_starts()),
    ] {
        insta::assert_snapshot!(
            format!("ascii-{name}-120x36"),
            text(&cells(&model, &theme, 120, 36))
        );
    }
}
