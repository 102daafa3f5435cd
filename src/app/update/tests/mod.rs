//! The core as lists of messages.

mod bench;
mod cards;
mod config;
mod deadline;
mod forecast;
mod gpus;
mod question;
mod restart;
mod server;
mod walk;

use super::update;
use crate::app::effect::Effect;
use crate::app::model::{Model, Pane, Restored, Settings, Who};
use crate::app::msg::{Attached, Msg};
use crate::app::rig::ServiceView;
use crate::app::task::{TaskKind, TaskState};
use crate::bench::plan::Cell;
use crate::bench::point::{Point, Summary};
use crate::clock::Now;
use crate::engine;
use crate::engine::{Facts, Health, Kind};
use crate::keymap::Action;
use crate::profile::{Launch, Profile, ServiceSpec};
use crate::ramp::{Event, Leg, Outcome, StartFailure, Step};
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
        model_file: None,
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
        no_deadline: None,
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
        context: Some(context),
        ended_unix_ms: 1,
        total: cell.requests,
        ok: cell.requests,
        input_tokens: cell.input,
        output_tokens: cell.output,
        ttft_ms: ms(cell.input as f64 / 7.0),
        tpot_ms: ms(1000.0 / decode),
        output_tok_s: Some(decode),
        decode_tok_s: Some(decode),
        cached_share: Some(0.0),
        simulated: true,
        ..Point::empty(cell)
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
        held: Vec::new(),
    }
}
