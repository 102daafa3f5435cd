//! The whole state of the cockpit as plain data.

use super::bench::BenchPane;
use super::config::ConfigPane;
use super::dialog::Dialog;
use super::history::{History, Mark, Sample};
use super::question::Decided;
use super::rig::Rig;
use super::tasks::Tasks;
pub use super::tried::{Tried, TriedOutcome};
use super::window::{Record, Window};
use crate::bench::point::Point;
use crate::clock::Now;
use crate::engine::Phase;
use crate::engine::start::Progress;
use crate::memory::Measured;
use crate::profile::{Launch, Profile};
use crate::ramp::{self, Leg, Occupied, Purpose, RestartPlan, Step, TargetKind};
use crate::service::Config;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Lines of a server log that are kept for the screen.
pub const LOG_LINES: usize = 2_000;

/// The four panes, always at the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pane {
    Tasks,
    Gpus,
    Bench,
    Config,
}

impl Pane {
    /// In the order of their numbers.
    pub const ALL: [Pane; 4] = [Pane::Tasks, Pane::Gpus, Pane::Bench, Pane::Config];

    /// The digit that focuses it.
    pub fn number(self) -> usize {
        match self {
            Pane::Tasks => 1,
            Pane::Gpus => 2,
            Pane::Bench => 3,
            Pane::Config => 4,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Pane::Tasks => "Tasks",
            Pane::Gpus => "GPUs",
            Pane::Bench => "Benchmark",
            Pane::Config => "Config",
        }
    }
}

/// How a message at the foot of the screen is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
}

/// The newest thing to say, below the panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub at: Now,
    pub tone: Tone,
    pub text: String,
}

/// What the cockpit is doing with the server. One thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    Attaching,
    Smoke,
    Bench,
    Checks,
    Restart,
}

impl Activity {
    pub fn words(self) -> &'static str {
        match self {
            Activity::Attaching => "attaching",
            Activity::Smoke => "smoke test",
            Activity::Bench => "benchmark",
            Activity::Checks => "checks",
            Activity::Restart => "restart",
        }
    }
}

/// Work in progress: what, for which task, since when.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    pub activity: Activity,
    /// The task that it belongs to.
    pub task: Option<u64>,
    pub since: Now,
    /// The operator asked it to stop.
    pub stopping: bool,
}

/// A restart while it goes on, and the newest one when it is over.
#[derive(Debug, Clone, PartialEq)]
pub struct RestartView {
    pub purpose: Purpose,
    pub from: Option<u64>,
    /// The context that the present leg goes to.
    pub to: u64,
    pub leg: Leg,
    pub step: Step,
    /// How far its start is.
    pub phase: Option<(Phase, Progress)>,
    /// It seems to get on no more, in words.
    pub still: Option<String>,
    /// What the log of the start said of memory, once it is ready.
    pub measured: Option<Measured>,
    /// Cards that still hold memory: index and bytes above their level.
    pub held: Vec<(u32, u64)>,
    /// They were not free in time, and the operator has not chosen yet.
    pub occupied: Option<Occupied>,
    pub since: Now,
    /// What was asked for, for the record when it is over.
    pub asked: Config,
    /// It was found unfinished, and the operator brings the earlier value back.
    pub interrupted: bool,
    /// What comes back if it fails, and what that is.
    pub way_back: Option<(u64, TargetKind)>,
    /// How it ended, in words.
    pub ended: Option<String>,
}

impl RestartView {
    /// A restart that begins.
    pub fn new(plan: &RestartPlan, since: Now) -> Self {
        RestartView {
            purpose: plan.purpose,
            from: plan.from.as_ref().map(|c| c.context),
            to: plan.to.context,
            leg: Leg::Forward,
            step: Step::Validate,
            phase: None,
            still: None,
            measured: None,
            held: Vec::new(),
            occupied: None,
            since,
            asked: plan.to.clone(),
            interrupted: false,
            way_back: plan.on_failure.as_ref().map(|t| (t.config.context, t.kind)),
            ended: None,
        }
    }

    /// What it does now, and how far that is.
    pub fn words(&self) -> String {
        match self.phase {
            Some((phase, progress)) => progress.words(phase),
            None => self.step.words().to_string(),
        }
    }
}

/// Who sits at the keys.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Who {
    pub user: String,
    pub host: String,
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.user, self.host)
    }
}

/// What the cockpit found on disk of an earlier run of the same session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Restored {
    pub session: Option<i64>,
    pub tasks: Vec<super::task::Task>,
    /// No task of this session ever had this id or a higher one.
    pub next_task: u64,
    pub points: Vec<Point>,
    pub tried: Vec<Tried>,
    pub marks: Vec<Mark>,
    /// Unix second and MiB by card.
    pub memory: Vec<Sample>,
    pub decisions: Vec<Decided>,
}

/// Settings of the cockpit itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Less work in every plan.
    pub quick: bool,
    /// Nothing may be restarted or written to the profile.
    pub read_only: Option<String>,
    /// The demo: its server ends with it.
    pub demo: bool,
}

/// The whole state.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The present, as of the newest message.
    pub now: Now,
    pub started: Now,
    pub who: Who,
    pub settings: Settings,
    /// `None`: nothing to work on yet; the screen says what to do.
    pub profile: Option<Profile>,
    /// Why there is no profile, in words, with the names that exist.
    pub first_run: Option<String>,
    pub focus: Pane,
    pub zoomed: bool,
    pub rig: Rig,
    pub tasks: Tasks,
    pub bench: BenchPane,
    pub config: ConfigPane,
    pub history: History,
    pub marks: Vec<Mark>,
    /// Which part of the memory history is on screen.
    pub window: Window,
    /// Charts stand still at this moment.
    pub frozen: Option<Now>,
    /// First card row on screen.
    pub gpu_scroll: usize,
    pub running: Option<Running>,
    pub restart: Option<RestartView>,
    /// The forecast for the restart that goes on or has just ended.
    pub foretold: Option<super::forecast::Foretold>,
    /// Contexts tried, ascending by context.
    pub tried: BTreeMap<u64, Tried>,
    /// The question waits for the operator: a badge in the header says so.
    pub question_waits: bool,
    /// The question comes back when the measurement that it asked for is over.
    pub question_after: bool,
    /// What is being written as the production value now.
    pub pending_keep: Option<super::question::KeepPlan>,
    /// Memory samples that are not stored yet.
    pub unsaved: Vec<Sample>,
    /// What the last search looked for.
    pub search: Option<String>,
    pub decisions: Vec<Decided>,
    /// Cleaned lines of the server's log.
    pub log: VecDeque<String>,
    /// Dialogs, the topmost last.
    pub dialogs: Vec<Dialog>,
    pub message: Option<Message>,
    /// What the store could not keep, in words. Nothing is lost in silence.
    pub store_fault: Option<String>,
    /// The report that was written last.
    pub report: Option<String>,
    pub session: Option<i64>,
    /// The end: the runtime leaves when it sees this.
    pub quit: bool,
}

impl Model {
    /// A cockpit that knows nothing yet of its server.
    pub fn new(
        now: Now,
        who: Who,
        settings: Settings,
        profile: Option<Profile>,
        restored: Restored,
    ) -> Self {
        let mut model = Model {
            now,
            started: now,
            who,
            settings,
            first_run: None,
            focus: Pane::Tasks,
            zoomed: false,
            rig: Rig::new(profile.as_ref()),
            tasks: Tasks::default(),
            bench: BenchPane::default(),
            config: ConfigPane::new(profile.as_ref()),
            history: History::default(),
            marks: restored.marks,
            window: Window::default(),
            frozen: None,
            gpu_scroll: 0,
            running: None,
            restart: None,
            foretold: None,
            tried: restored.tried.into_iter().map(|t| (t.context, t)).collect(),
            question_waits: false,
            question_after: false,
            pending_keep: None,
            unsaved: Vec::new(),
            search: None,
            decisions: restored.decisions,
            log: VecDeque::new(),
            dialogs: Vec::new(),
            message: None,
            store_fault: None,
            report: None,
            session: restored.session,
            quit: false,
            profile,
        };
        for (second, used) in restored.memory {
            model.history.append(second, used);
        }
        model.bench.points = restored.points;
        model.tasks.restore(
            restored.tasks,
            restored.next_task,
            model.profile.as_ref(),
            model.settings.quick,
        );
        model
    }

    /// The context that is served now, per request: what a request can really use.
    pub fn served(&self) -> Option<u64> {
        if !self.rig.up() {
            return None;
        }
        let context = &self.rig.facts.as_ref()?.context;
        context
            .effective
            .known()
            .or_else(|| context.configured.known())
            .copied()
    }

    /// The confirmed context.
    pub fn production(&self) -> Option<u64> {
        let said = self.rig.service.as_ref().and_then(|s| s.production);
        said.or_else(|| self.profile.as_ref()?.production)
    }

    /// The confirmed launch of the service.
    pub fn launch(&self) -> Option<&Launch> {
        self.rig.service.as_ref()?.launch.as_ref()
    }

    /// The launch of a change: the confirmed one, as it was edited here; none where the text has a fault.
    pub fn next_launch(&self) -> Option<Launch> {
        // A change goes on from what runs: an edit that is on trial stays in.
        let running = self.rig.config.as_ref().filter(|_| self.rig.edited_launch);
        let base = match running {
            Some(config) => config.launch.clone(),
            None => self.launch()?.clone(),
        };
        let Some(edited) = &self.config.edited else {
            return Some(base);
        };
        let (argv, env) = crate::profile::parse_launch_text(edited).ok()?;
        Some(Launch { argv, env, ..base })
    }

    /// Whether the running configuration is a trial: a confirmed start would bring another one.
    pub fn on_trial(&self) -> bool {
        let Some(running) = self.running_context() else {
            return false;
        };
        let production = self.production();
        let with = self.rig.config.as_ref().map(|config| &config.launch);
        ramp::is_trial(running, with, production, self.launch())
            && (production.is_some() || self.can_restart())
    }

    /// Milliseconds until the production value comes back by itself; 0 once that time has come.
    pub fn deadline_left_ms(&self) -> Option<u64> {
        let at = self.rig.service.as_ref()?.deadline_unix_ms?;
        Some(u64::try_from(at.saturating_sub(self.now.unix_ms)).unwrap_or(0))
    }

    /// The context that the running server was asked for, where vramp started it; else what it serves.
    pub fn running_context(&self) -> Option<u64> {
        self.rig
            .config
            .as_ref()
            .map(|c| c.context)
            .or_else(|| self.served())
    }

    /// Whether this cockpit may restart the server at all.
    pub fn can_restart(&self) -> bool {
        self.rig.service.is_some() && self.settings.read_only.is_none()
    }

    /// Requests on the server that are not ours, where it can be known. While checks run it cannot: they do not count their own.
    pub fn foreign(&self) -> Option<u64> {
        if matches!(
            self.running.as_ref().map(|r| r.activity),
            Some(Activity::Checks | Activity::Smoke | Activity::Restart)
        ) {
            return None;
        }
        let ours = u64::from(self.bench.own.most(self.now));
        ramp::foreign(&self.rig.load, ours).fresh().copied()
    }

    /// All data of this cockpit is simulated.
    pub fn simulated(&self) -> bool {
        self.settings.demo
            || self.rig.facts.as_ref().is_some_and(|f| f.simulated)
            || self.rig.gpus.simulated
    }

    /// What there is of the memory history; while the charts stand still, up to then.
    pub fn record(&self) -> Record {
        let now = self.frozen.unwrap_or(self.now).unix_ms.div_euclid(1000);
        Record {
            first: self
                .history
                .extent()
                .map_or(now, |(first, _)| first.min(now)),
            now,
        }
    }

    /// The dialog that has the keys.
    pub fn dialog(&self) -> Option<&Dialog> {
        self.dialogs.last()
    }

    /// Says something at the foot of the screen.
    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.message = Some(Message {
            at: self.now,
            tone,
            text: text.into(),
        });
    }

    /// The record of `context`, made if there is none.
    pub fn tried_mut(&mut self, context: u64) -> &mut Tried {
        self.tried
            .entry(context)
            .or_insert_with(|| Tried::new(context))
    }

    /// Cards of this server by index; empty: all of them.
    pub fn cards(&self) -> &[u32] {
        &self.rig.owned.cards
    }
}
