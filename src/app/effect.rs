//! Everything that the core may ask for.

use super::history::{Mark, Sample};
use super::model::Tried;
use super::question::{Decided, KeepPlan};
use super::task::Task;
use crate::bench::plan::{Cell, Plan};
use crate::bench::point::Point;
use crate::confirm::Confirmed;
use crate::engine::Facts;
use crate::gpu::Card;
use crate::ramp::{CardsChoice, Intent, RestartPlan, WayOut};
use crate::service::Config;

/// Something worth a bell when the operator looks elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice(pub String);

/// A wish of the core. The runtime carries it out and answers with messages.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Look for the server and go on watching it.
    Attach,
    /// Go on watching it after a restart.
    Watch,
    /// A restart that began by itself has the server.
    LookAway,
    /// Ask the model a short question.
    Smoke,
    StartBench {
        plan: Plan,
        cells: Vec<Cell>,
    },
    StopBench,
    StartChecks {
        context: u64,
    },
    StopChecks,
    /// Restart the server (or start it, where nothing runs).
    Restart(Confirmed<RestartPlan>),
    /// Start where nothing runs and the profile says so: nothing can be lost by it.
    StartAbsent(RestartPlan),
    /// Give the present restart up: it goes back.
    CancelRestart,
    /// What the operator chose while the cards of a restart stay occupied.
    Cards(Confirmed<CardsChoice>),
    Recover(Confirmed<(Intent, WayOut)>),
    /// Give the running trial so many seconds, or take its deadline away.
    Deadline(Option<u64>),
    /// Write the production value and the decision.
    Keep(Confirmed<KeepPlan>),
    /// The newest configuration that passed the smoke test and served for a minute.
    LastGood(Config),
    Save(Save),
    /// Another cockpit keeps this session: store nothing more from here.
    KeepNothing,
    WriteReport,
    /// The runs on record, for choosing two.
    ListRuns,
    /// Compare run `b` with run `a`.
    CompareRuns {
        a: i64,
        b: i64,
    },
    /// To the clipboard.
    Copy(String),
    Notify(Notice),
    /// Stop the process group as Ctrl-Z does.
    Suspend,
}

/// What is to be kept.
#[derive(Debug, PartialEq)]
pub enum Save {
    Tasks(Vec<Task>),
    Mark(Mark),
    Tried(Box<Tried>),
    Point(Box<Point>),
    RunEnded {
        stopped: bool,
    },
    Decision(Box<Decided>),
    /// What the server says of itself, and the cards.
    Rig {
        facts: Box<Facts>,
        cards: Vec<Card>,
    },
    /// Unix second and MiB by card.
    Memory(Vec<Sample>),
    /// A line for the session's diary.
    Event {
        text: String,
    },
}
