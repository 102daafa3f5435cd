//! States of the cockpit to draw: the story of two RTX A6000, and pieces to change it with.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use vramp::app::bench::timeline::Reading;
use vramp::app::bench::{BlockedCell, Compared, Run, Timeline};
use vramp::app::history::{History, Mark, MarkKind};
use vramp::app::model::*;
use vramp::app::rig::{Connection, PoolSize, ServiceView, SinceStart};
use vramp::app::task::{Task, TaskKind, TaskState};
use vramp::bench::Live;
use vramp::bench::checks::{Check, CheckKind, Verdict};
use vramp::bench::plan::{Cell, Plan, PlanKind};
use vramp::bench::point::*;
use vramp::clock::Now;
use vramp::engine::{Context, Endpoint, Facts, Health, Kind, Load};
use vramp::gpu::{Card, CardState, GpuProcess, Memory, Snapshot, Tenant};
use vramp::host::vitals::{Room, Vitals};
use vramp::keymap::Keymap;
use vramp::profile::{Launch, Profile, ServiceSpec};
use vramp::report::bench::{RunReport, compare};
use vramp::service::Config;
use vramp::store::{Ending, RunRow};
use vramp::theme::{DEFAULT, Depth, GlyphSet, Theme};
use vramp::ui::{ViewState, draw};

/// Some minutes to one on a day in March, where the tests run: pictures show the same time of day everywhere.
pub fn noon() -> i64 {
    jiff::civil::date(2026, 3, 1)
        .at(12, 51, 7, 0)
        .to_zoned(jiff::tz::TimeZone::system())
        .unwrap()
        .timestamp()
        .as_millisecond()
}
const GIB: f64 = 1_073_741_824.0;

pub fn gib(n: f64) -> u64 {
    (n * GIB) as u64
}

pub fn now() -> Now {
    Now {
        mono_ms: 3_600_000,
        unix_ms: noon(),
    }
}

pub fn theme(name: &str, depth: Depth, set: GlyphSet) -> Theme {
    Theme::load(name, &|_| None, depth, set).unwrap()
}

pub fn default_theme() -> Theme {
    theme(DEFAULT, Depth::Ansi256, GlyphSet::Unicode)
}

pub fn launch() -> Launch {
    Launch {
        argv: [
            "python3",
            "-m",
            "sglang.launch_server",
            "--model-path",
            "/models/Qwen3.6-27B",
            "--context-length",
            "{context}",
            "--tp",
            "2",
            "--port",
            "30000",
        ]
        .map(String::from)
        .to_vec(),
        env: vec![("CUDA_VISIBLE_DEVICES".into(), "0,1".into())],
        cwd: None,
        slots: 1,
    }
}

pub fn profile() -> Profile {
    Profile {
        name: "qwen".into(),
        file: Some("/home/op/.config/vramp/vramp.toml".into()),
        endpoint: Endpoint {
            url: "http://127.0.0.1:30000".into(),
            model: None,
            key: None,
            kind: Some(Kind::Sglang),
        },
        engine: Some(Kind::Sglang),
        service: ServiceSpec::Process {
            launch: launch(),
            log: Some("/var/log/sglang.log".into()),
            start_when_absent: false,
        },
        ladder: vec![32_768, 65_536, 131_072, 262_144],
        production: Some(32_768),
        cards: Vec::new(),
        throughput: Plan::throughput(false),
        long_context: Plan::long_context(false),
        stuck_after_s: 600,
        stop_grace_s: Some(30),
        release_after_s: 60,
        host: vramp::profile::HostSpec::Local,
        confirm_within_s: None,
    }
}

pub fn card(index: u32, used: f64, busy: u32) -> Card {
    Card {
        index,
        uuid: format!("GPU-{index}"),
        name: "RTX A6000".into(),
        state: CardState::Ok,
        memory: vramp::reading::Reading::Value(Memory {
            total: gib(48.0),
            used: gib(used),
            free: gib(48.0 - used - 0.5),
            reserved: gib(0.5),
        }),
        busy_pct: vramp::reading::Reading::Value(busy),
        temp_c: vramp::reading::Reading::Value(71 - index % 40),
        power_mw: vramp::reading::Reading::Value(285_300 - index * 4_000),
        power_limit_mw: vramp::reading::Reading::Value(300_000),
        processes: vramp::reading::Reading::Value(vec![process(SERVER, used - 0.4)]),
        detail: vramp::gpu::Detail::default(),
    }
}

/// The process number of the server.
pub const SERVER: u32 = 4_711;

pub fn process(pid: u32, used: f64) -> GpuProcess {
    GpuProcess {
        pid,
        name: Some("python3".into()),
        used: vramp::reading::Reading::Value(gib(used)),
    }
}

/// What was seen of the server and of its machine.
fn served(model: &mut Model) {
    let room = |used: f64, total: f64| {
        vramp::reading::Reading::Value(Room {
            used: gib(used),
            total: gib(total),
        })
    };
    model.rig.host = vramp::reading::Reading::Value(Vitals {
        cpu: vramp::reading::Reading::Value(0.12),
        memory: room(61.4, 251.6),
        swap: room(0.0, 0.0),
        server: vramp::reading::Reading::Value(gib(21.3)),
        disk: room(1_022.6, 1_835.0),
    });
    model.rig.since_start = SinceStart {
        kv_peak: Some(0.71),
        lowest: Some((1, gib(5.7))),
        pool: Some(PoolSize::Card(gib(9.8))),
    };
}

/// The server's processes are known, and with them its cards.
pub fn known(model: &mut Model) {
    let tenant = Tenant {
        pids: vec![SERVER],
        env: Vec::new(),
    };
    model.rig.owned = vramp::gpu::owned(&model.rig.gpus, &tenant, &[]);
    model.rig.tenant = Some(tenant);
}

pub fn facts(context: u64) -> Facts {
    Facts {
        kind: Kind::Sglang,
        version: vramp::reading::Reading::Value("0.5.11".into()),
        model: vramp::reading::Reading::Value("qwen3.6-27b".into()),
        model_file: None,
        health: Health::Up,
        context: Context {
            configured: vramp::reading::Reading::Value(context),
            effective: vramp::reading::Reading::Value(context),
            model_limit: vramp::reading::Reading::Value(262_144),
            pool_tokens: vramp::reading::Reading::Value(159_744),
            slots: vramp::reading::Reading::unsupported(),
            per_slot: vramp::reading::Reading::unsupported(),
        },
        simulated: false,
        notes: Vec::new(),
    }
}

fn summary(n: u64, p50: f64) -> Summary {
    Summary {
        n,
        mean: Some(p50),
        p50: Some(p50),
        min: Some(p50 * 0.97),
        max: Some(p50 * 1.05),
        ..Summary::default()
    }
}

pub fn point(
    kind: PlanKind,
    input: u64,
    concurrency: u32,
    context: u64,
    rate: f64,
    decode: f64,
    ttft_ms: f64,
) -> Point {
    let requests = (concurrency * 3).max(8);
    let cell = Cell {
        kind,
        input,
        output: if kind == PlanKind::Throughput {
            500
        } else {
            200
        },
        concurrency,
        requests,
        arrivals: Default::default(),
    };
    Point {
        context: Some(context),
        started_unix_ms: noon() - 600_000,
        ended_unix_ms: noon() - 500_000,
        total: requests,
        ok: requests,
        input_tokens: input * u64::from(requests),
        output_tokens: 200 * u64::from(requests),
        tokens_per_chunk: Some(2.9),
        ttft_ms: summary(u64::from(requests), ttft_ms),
        itl_ms: summary(200, 1000.0 / decode),
        tpot_ms: summary(u64::from(requests), 1000.0 / decode),
        output_tok_s: Some(rate),
        decode_tok_s: Some(decode),
        prefill_tok_s: Some(7000.0),
        requests_s: Some(1.0),
        spread_us: 30,
        cached_share: Some(0.0),
        cards: vec![CardUse {
            index: 0,
            used_peak: gib(41.6),
            free_min: gib(6.4),
            busy_mean: Some(80.0),
            joules_per_token: None,
        }],
        ..Point::empty(cell)
    }
}

pub fn throughput_points() -> Vec<Point> {
    [
        (1, 73.5, 73.4, 162.0),
        (2, 137.7, 69.0, 171.0),
        (4, 207.1, 52.0, 240.0),
        (8, 318.0, 40.1, 390.0),
        (16, 430.2, 27.0, 730.0),
        (32, 489.6, 15.4, 1_800.0),
        (64, 504.8, 8.0, 5_900.0),
        (100, 503.9, 5.1, 12_400.0),
    ]
    .into_iter()
    .map(|(c, rate, decode, ttft)| {
        point(PlanKind::Throughput, 1_000, c, 32_768, rate, decode, ttft)
    })
    .collect()
}

pub fn long_points(context: u64) -> Vec<Point> {
    [
        (1_000, 73.6, 160.0),
        (10_000, 73.1, 1_240.0),
        (30_000, 71.8, 3_914.0),
        (60_000, 69.3, 8_310.0),
    ]
    .into_iter()
    .filter(|(input, ..)| input + 200 <= context)
    .map(|(input, decode, ttft)| {
        point(
            PlanKind::LongContext,
            input,
            1,
            context,
            decode,
            decode,
            ttft,
        )
    })
    .collect()
}

fn task(id: u64, title: &str, kind: TaskKind, state: TaskState) -> Task {
    Task {
        id,
        title: title.into(),
        kind,
        state,
        note: None,
    }
}

pub fn tasks() -> Vec<Task> {
    let done = |took_ms| TaskState::Done { took_ms };
    vec![
        task(1, "Attach to the server", TaskKind::Attach, done(2_000)),
        task(2, "Smoke test", TaskKind::Smoke, done(4_000)),
        task(3, "Throughput 1 … 100", TaskKind::Throughput, done(401_000)),
        task(
            4,
            "Raise to 65,536",
            TaskKind::Raise { to: 65_536 },
            done(72_000),
        ),
        task(
            5,
            "Long context 60K",
            TaskKind::LongContext {
                inputs: vec![60_000],
            },
            TaskState::Running {
                since_unix_ms: noon() - 30_000,
                share: Some(615),
                left_ms: Some(48_000),
            },
        ),
        task(
            6,
            "Checks at 65,536",
            TaskKind::Checks { at: Some(65_536) },
            TaskState::Pending,
        ),
        task(
            7,
            "Long context 100K, 120K",
            TaskKind::LongContext {
                inputs: vec![100_000, 120_000],
            },
            TaskState::Blocked {
                why: "needs 100,200 tokens, server serves 65,536".into(),
                raise_to: Some(131_072),
            },
        ),
        task(
            8,
            "Raise to 131,072",
            TaskKind::Raise { to: 131_072 },
            TaskState::Pending,
        ),
        task(
            9,
            "Checks at 131,072",
            TaskKind::Checks { at: Some(131_072) },
            TaskState::Pending,
        ),
        task(
            10,
            "Decide the production value",
            TaskKind::Decide,
            TaskState::Waiting,
        ),
        task(11, "Report", TaskKind::Report, TaskState::Pending),
        task(
            12,
            "night batch starts at 02:00",
            TaskKind::Own,
            TaskState::Pending,
        ),
    ]
}

/// Used GiB of a card `ago` seconds before noon: served, stopped, loading, served.
fn used_at(card: usize, ago: i64) -> f64 {
    let full = 41.6 - 0.1 * card as f64;
    match ago {
        500.. => full,
        470..500 => full * (ago - 470) as f64 / 30.0,
        430..470 => 0.4,
        330..430 => 0.4 + 27.0 * (430 - ago) as f64 / 100.0,
        310..330 => 27.4,
        300..310 => 27.4 + (full - 27.4) * (310 - ago) as f64 / 10.0,
        _ => full + 0.1 * (ago / 40 % 3) as f64 - 0.2,
    }
}

/// History and marks of the last 15 minutes.
pub fn history(model: &mut Model, cards: usize) {
    model.history = History::default();
    for ago in (0..900).rev() {
        let used = (0..cards).map(|card| Some((used_at(card, ago) * 1024.0) as u32));
        model.history.append(noon() / 1000 - ago, used.collect());
    }
    let mark = |ago: i64, kind, context, text: Option<&str>| Mark {
        unix_ms: noon() - ago * 1000,
        kind,
        context,
        text: text.map(String::from),
    };
    model.marks = vec![
        mark(840, MarkKind::Bench, Some(32_768), Some("throughput")),
        mark(500, MarkKind::Stop, Some(32_768), None),
        mark(430, MarkKind::Start, Some(65_536), None),
        mark(295, MarkKind::Ready, Some(65_536), None),
        mark(200, MarkKind::Bench, Some(65_536), Some("long context")),
    ];
}

/// An empty cockpit with a profile, just opened.
pub fn fresh() -> Model {
    let who = Who {
        user: "root".into(),
        host: "kpro5".into(),
    };
    Model::new(
        now(),
        who,
        Settings::default(),
        Some(profile()),
        Restored::default(),
    )
}

/// The middle of the walk: a trial of 65,536 runs and is measured.
pub fn walk() -> Model {
    let mut model = fresh();
    model.rig.connection = Connection::Up { since: now() };
    model.rig.facts = Some(facts(65_536));
    model.rig.service = Some(ServiceView {
        name: "process sglang".into(),
        trial_note: "a trial: a reboot brings 32,768".into(),
        log: Some("/var/log/sglang.log".into()),
        launch: Some(launch()),
        production: None,
        deadline_unix_ms: None,
        no_deadline: Some("nothing outside this program could carry a deadline".into()),
        launch_fixed: None,
    });
    model.rig.config = Some(Config {
        context: 65_536,
        launch: launch(),
    });
    model.rig.smoke_passed = Some(now());
    model.rig.serving_since = Some(Now {
        unix_ms: noon() - 295_000,
        ..now()
    });
    model.rig.load = Load {
        running: vramp::reading::Reading::Value(1),
        waiting: vramp::reading::Reading::Value(0),
        kv_use: vramp::reading::Reading::Value(0.38),
        accept_length: vramp::reading::Reading::Value(2.9),
        ..Load::default()
    };
    model.rig.gpus = Snapshot {
        at: now(),
        cards: vec![card(0, 41.6, 87), card(1, 41.5, 86)],
        source: "NVML 550.54".into(),
        fault: None,
        simulated: false,
    };
    known(&mut model);
    served(&mut model);
    history(&mut model, 2);
    model.tasks.list = tasks();
    model.tasks.selected = 4;
    model.bench.points = throughput_points();
    model.bench.points.extend(long_points(32_768));
    model.bench.blocked = [100_000, 120_000]
        .map(|input| BlockedCell {
            cell: Cell {
                kind: PlanKind::LongContext,
                input,
                output: 200,
                concurrency: 1,
                requests: 8,
                arrivals: Default::default(),
            },
            needs: input + 200,
            raise_to: Some(131_072),
        })
        .to_vec();
    model.config.chosen = Some(131_072);
    model.running = Some(Running {
        activity: Activity::Bench,
        task: Some(5),
        since: now(),
        stopping: false,
    });
    let plan = Plan::long_context(false);
    let cells: Vec<Cell> = plan
        .cells()
        .into_iter()
        .filter(|c| c.input == 60_000)
        .collect();
    let mut run = Run::new(plan, cells, Some(65_536));
    run.live = Live {
        output_tok_s: 69.3,
        in_flight: 1,
        done: 3,
        failed: 0,
        of: 8,
        ttft_ms: Some(8_310.0),
        decode_tok_s: Some(69.3),
        cached_share: Some(0.0),
        client_cpu: 0.02,
        cell_left_ms: Some(48_000),
        run_left_ms: Some(48_000),
    };
    model.bench.run = Some(run);
    timeline(&mut model, 60, |i| Reading {
        rate: 60.0 + 10.0 * (i as f64 * 0.7).sin(),
        ttft_ms: (i > 20).then_some(8_310.0),
        asked: 1,
        running: Some(1),
        waiting: Some(0),
    });
    model.say(
        Tone::Good,
        "65,536 answered its first token after 01:12, context read back 65,536",
    );
    model
}

/// The readings of a run that began so many fifths of a second ago.
pub fn timeline(model: &mut Model, readings: u64, reading: impl Fn(u64) -> Reading) {
    let at = |i: u64| Now {
        mono_ms: now().mono_ms - (readings - i) * 200,
        unix_ms: noon() - (readings - i) as i64 * 200,
    };
    let mut line = Timeline::new(at(0));
    for i in 0..readings {
        line.push(at(i), reading(i));
    }
    model.bench.timeline = Some(line);
}

/// A sweep in its middle, at the request limit of the server: 64 asked, 48 running.
pub fn sweep() -> Model {
    let mut model = walk();
    model.focus = Pane::Bench;
    model.bench.points = throughput_points();
    model.bench.points.truncate(6);
    for point in &mut model.bench.points {
        point.context = Some(65_536);
    }
    let plan = Plan::throughput(false);
    let mut run = Run::new(plan.clone(), plan.cells(), Some(65_536));
    run.index = 6;
    run.live = Live {
        output_tok_s: 504.8,
        in_flight: 64,
        done: 80,
        of: 192,
        ttft_ms: Some(5_900.0),
        run_left_ms: Some(200_000),
        ..Live::default()
    };
    model.bench.run = Some(run);
    model.bench.own.note(now(), 64);
    model.rig.load.running = vramp::reading::Reading::Value(48);
    model.rig.load.waiting = vramp::reading::Reading::Value(16);
    timeline(&mut model, 1_400, |i| {
        let level = i / 200;
        let asked = 1u32 << level;
        let rate = [73.5, 137.7, 207.1, 318.0, 430.2, 489.6, 504.8][level as usize];
        let ttft = [162.0, 171.0, 240.0, 390.0, 730.0, 1_800.0, 5_900.0][level as usize];
        let begins = i % 200 < 10;
        Reading {
            rate: if begins {
                rate * 0.6
            } else {
                rate * (1.0 + 0.02 * (i as f64).sin())
            },
            ttft_ms: (!begins).then_some(ttft),
            asked,
            running: Some(u64::from(asked.min(48))),
            waiting: Some(u64::from(asked.saturating_sub(48))),
        }
    });
    model
}

/// A finished run on record, as the store gives it back.
pub fn run_row(id: i64, name: Option<&str>, points: u64) -> RunRow {
    RunRow {
        id,
        name: name.map(String::from),
        session: Some(1),
        profile: Some("qwen".into()),
        plan: "throughput".into(),
        kind: PlanKind::Throughput,
        url: "http://127.0.0.1:30000".into(),
        engine: Kind::Sglang,
        engine_version: Some("0.5.11".into()),
        model: "qwen3.6-27b".into(),
        context: Some(if id > 10 { 65_536 } else { 32_768 }),
        seed: 1,
        simulated: false,
        started_unix_ms: noon() - 86_400_000 + id * 60_000,
        ended_unix_ms: Some(noon() - 86_000_000 + id * 60_000),
        ending: Some(Ending::Finished),
        points,
        void: u64::from(id == 9),
    }
}

fn records(n: usize, ms: f64, spread: f64) -> Vec<RequestRecord> {
    (0..n)
        .map(|i| {
            let wave = 1.0 + spread * ((i * 37 % 11) as f64 / 5.0 - 1.0);
            RequestRecord {
                ttft_ms: Some(ms * wave),
                e2e_ms: Some(20.0 * ms * wave),
                tpot_ms: Some(ms / 12.0),
                output_tokens: Some(500),
                ..RequestRecord::default()
            }
        })
        .collect()
}

/// Two throughput runs over each other: the second a quarter faster, and with a level that does not count.
pub fn compared() -> Model {
    let mut model = idle();
    model.focus = Pane::Bench;
    let report = |id, name: Option<&str>, by: f64| {
        let mut points = throughput_points();
        for point in &mut points {
            point.output_tok_s = point.output_tok_s.map(|v| v * by);
            point.ttft_ms.p50 = point.ttft_ms.p50.map(|v| v / by);
            point.context = Some(if id > 10 { 65_536 } else { 32_768 });
        }
        RunReport {
            row: run_row(id, name, 8),
            ids: (0..8).map(|i| id * 100 + i).collect(),
            points,
        }
    };
    let a = report(7, Some("before"), 1.0);
    let mut b = report(12, None, 1.25);
    b.points[7].validity = Validity::Void;
    b.points[7].reasons = vec![Reason {
        weighs: Validity::Void,
        text: "12.0 % of the prompt came from the prefix cache".into(),
    }];
    let found = compare(&a, &b, |id| {
        let by = if id >= 1_200 { 1.25 } else { 1.0 };
        Ok::<_, ()>(match id % 100 {
            0 => records(3, 162.0 / by, 0.02),
            1 => records(24, 171.0, 0.3),
            level => records(24, 200.0 * (level as f64) / by, 0.02),
        })
    })
    .unwrap();
    model.bench.compared = Some(Box::new(Compared::new(a, b, found)));
    model
}

/// The walk when nothing runs.
pub fn idle() -> Model {
    let mut model = walk();
    model.running = None;
    model.bench.run = None;
    model.bench.points.extend(long_points(65_536));
    model
}

pub fn tried(context: u64, capacity: f64, free: f64, passed: usize) -> Tried {
    Tried {
        capacity: Some(capacity),
        tightest: Some((0, gib(free))),
        checks: CheckKind::ALL
            .iter()
            .enumerate()
            .map(|(i, kind)| Check {
                kind: *kind,
                verdict: if i < passed {
                    Verdict::Passed("as expected".into())
                } else {
                    Verdict::NotRun("left out".into())
                },
                took_ms: 1_000,
            })
            .collect(),
        ..Tried::new(context)
    }
}

/// A trial of 131,072 is ready to be judged.
pub fn judged() -> Model {
    let mut model = idle();
    model.rig.facts = Some(facts(131_072));
    model.rig.config = Some(Config {
        context: 131_072,
        launch: launch(),
    });
    model.bench.blocked.clear();
    model.bench.points.push(point(
        PlanKind::LongContext,
        100_000,
        1,
        131_072,
        66.0,
        66.0,
        15_000.0,
    ));
    model.bench.points.push(point(
        PlanKind::LongContext,
        120_000,
        1,
        131_072,
        64.9,
        64.9,
        17_900.0,
    ));
    for one in [
        tried(32_768, 4.9, 6.5, 6),
        tried(65_536, 2.4, 6.4, 6),
        tried(131_072, 1.2, 6.3, 5),
    ] {
        model.tried.insert(one.context, one);
    }
    model
}

/// Draws a model and gives the cells.
pub fn cells(model: &Model, theme: &Theme, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut view = ViewState::default();
    let keymap = Keymap::default();
    terminal
        .draw(|frame| draw(model, &mut view, theme, &keymap, frame))
        .unwrap();
    terminal.backend().buffer().clone()
}

/// The rows of a buffer as text.
pub fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    buffer
        .content()
        .chunks(width)
        .map(|row| {
            let mut line = String::new();
            let mut skip = 0;
            for cell in row {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                line.push_str(cell.symbol());
                skip = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
            }
            line.trim_end().to_string() + "\n"
        })
        .collect()
}

/// The screen as text in the default theme.
pub fn screen(model: &Model, width: u16, height: u16) -> String {
    text(&cells(model, &default_theme(), width, height))
}
