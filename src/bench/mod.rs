//! Benchmarks: plans, prompts, the load client, the stream reader, statistics, validity.

mod asker;
pub mod checks;
mod client;
pub mod options;
pub mod plan;
pub mod point;
pub mod pool;
mod prompt;
pub mod run;
pub mod saturation;
pub mod smoke;
mod stats;
pub mod stream;
pub mod validity;
mod worker;

use crate::engine::{Endpoint, Kind, Load};
use crate::gpu::Snapshot;
use options::Options;
use plan::{Cell, Plan};
use point::{Failure, Point, RequestRecord};
use tokio::sync::watch;

/// Everything that a run needs. It owns no terminal and no database.
#[derive(Debug)]
pub struct Job {
    pub endpoint: Endpoint,
    pub kind: Kind,
    /// The model that requests name.
    pub model: String,
    pub plan: Plan,
    /// The cells to run, in this order. Blocked ones are not among them.
    pub cells: Vec<Cell>,
    pub options: Options,
    /// Effective context of the server, for head-room; `None` where unknown.
    pub context: Option<u64>,
    /// Makes prompts unique over runs; printed in the result.
    pub seed: u64,
    pub simulated: bool,
    /// The server's own figures, newest first and only.
    pub load: watch::Receiver<Load>,
    /// The cards, newest first and only.
    pub gpus: watch::Receiver<Snapshot>,
}

/// The run while it goes on. Latest wins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Live {
    /// Output tokens a second over the last second.
    pub output_tok_s: f64,
    pub in_flight: u32,
    /// Requests of this cell: finished (failed ones included), failed, of; `of` is 0 where only time ends the cell.
    pub done: u32,
    pub failed: u32,
    pub of: u32,
    /// Newest TTFT of this cell.
    pub ttft_ms: Option<f64>,
    /// Newest decode rate of one request.
    pub decode_tok_s: Option<f64>,
    /// Prefix-cache share of this cell so far.
    pub cached_share: Option<f64>,
    /// The client's own CPU share of one core.
    pub client_cpu: f64,
    /// Milliseconds until the end of this cell and of the run, estimated.
    pub cell_left_ms: Option<u64>,
    pub run_left_ms: Option<u64>,
}

/// What a run reports.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Cell `index` of `of` begins.
    CellStarted {
        index: usize,
        of: usize,
        cell: Cell,
    },
    Live(Live),
    /// The newest failure in words, for the screen.
    Failed(Failure),
    /// Requests of cell `index` that have ended, if the options ask for them to be told.
    Requests {
        index: usize,
        records: Vec<RequestRecord>,
    },
    /// A cell is measured; it counts as its validity says.
    CellDone(Box<Point>),
    /// The run is over. `stopped` when the operator stopped it.
    Finished {
        stopped: bool,
    },
}

/// Where a run reports to. Called from a thread of its own, in order and in no runtime, so that it may block; live figures that it
/// has no time for are dropped.
pub type Sink = Box<dyn FnMut(Event) + Send>;
