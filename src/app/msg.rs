//! Everything that can happen.

use super::bench::Compared;
use super::config::Edit;
use super::model::Pane;
use super::rig::ServiceView;
use crate::bench::{self, checks};
use crate::engine::{EngineError, Facts, Load, Probe};
use crate::gpu::{Snapshot, Tenant};
use crate::host::vitals::Vitals;
use crate::keymap::Action;
use crate::memory::Geometry;
use crate::ramp::{self, Intent};
use crate::reading::Reading;
use crate::service::Config;
use crate::store::RunRow;

/// What the attach found.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    pub facts: Facts,
    pub service: Option<ServiceView>,
    /// What the running server was started with, where vramp did it.
    pub config: Option<Config>,
    pub last_good: Option<Config>,
}

/// A message. With the time of its arrival it is all that `update` sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Msg {
    /// The cockpit is open.
    Started,
    /// A key that the keymap knows in the present context.
    Do(Action),
    /// The text that has the keys changed.
    Edited(Edit),
    /// A click on a pane, and on a line of it.
    Focus(Pane),
    Select(Pane, usize),
    /// The wheel, in lines.
    Scroll(Pane, isize),
    /// Once a second.
    Tick,
    /// A frame with the topmost dialog is on screen.
    Drawn,
    Gpus(Snapshot),
    /// How the server's machine is doing, or why that is not known.
    Host(Reading<Vitals>),
    /// The processes of the server that was found.
    Tenant(Tenant),
    Load(Load),
    /// The server was found.
    Attached(Box<Attached>),
    /// Nothing runs there; vramp could start it.
    Absent {
        service: Option<ServiceView>,
        error: EngineError,
        /// How the one that ran has ended, in words.
        exit: Option<String>,
    },
    /// The process that vramp started runs, and does not answer.
    Silent {
        service: Option<ServiceView>,
        pid: u32,
        config: Option<Config>,
        error: EngineError,
    },
    /// It does not answer as it should.
    Unreachable(EngineError),
    /// What stands behind the service, after a restart.
    Service(ServiceView),
    /// It answers again, perhaps as another (facts anew).
    Facts(Box<Facts>),
    /// The model that is served, as its file describes it, or why that is not known.
    Geometry(Result<Box<Geometry>, String>),
    /// A second cockpit holds the service.
    Locked(String),
    Smoke(Result<Probe, EngineError>),
    Bench(bench::Event),
    /// The run could not start.
    BenchFailed(String),
    Check(checks::Event),
    Ramp(ramp::Event),
    /// The machinery failed before it began; nothing was changed.
    RampFailed(String),
    /// An unfinished restart.
    Found(Box<Intent>),
    /// The deadline of the trial is this many seconds from when it was asked for, and ends at this moment, Unix milliseconds; or why it
    /// is as it was.
    Deadline(Result<(Option<u64>, Option<i64>), String>),
    /// The production value is written; or what is true of it instead, as [`ramp::keep`] says it.
    Kept(Result<String, String>),
    ReportWritten(Result<String, String>),
    /// The runs on record, the newest first.
    Runs(Result<Vec<RunRow>, String>),
    Compared(Result<Box<Compared>, String>),
    /// The store lost or refused something.
    StoreFailed(String),
    Copied(String),
    /// Log lines of the running server.
    Log(Vec<String>),
    /// A signal asks us to end: at once, without questions.
    Terminate,
}
