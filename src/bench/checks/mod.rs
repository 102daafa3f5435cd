//! Checks of a context length before it is chosen: what goes wrong there that a speed does not show.
//!
//! Prompts are messages of so many words, so that the server's chat template is part of what is checked.

mod carry_out;

pub use super::worker::Handle;

use super::asker::Asker;
use super::client::{Access, Deadlines};
use super::options::Api;
use super::prompt::Scale;
use super::worker::{self, Reporter, Stop};
use crate::engine::{Endpoint, Kind};
use crate::gpu::Snapshot;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Instant;
use tokio::sync::watch;

/// One check, in the order in which they are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    SeveralLong,
    LongAnswer,
    OverLimit,
    ShortBesideLong,
    HiddenFact,
    Creep,
}

impl CheckKind {
    pub const ALL: [CheckKind; 6] = [
        CheckKind::SeveralLong,
        CheckKind::LongAnswer,
        CheckKind::OverLimit,
        CheckKind::ShortBesideLong,
        CheckKind::HiddenFact,
        CheckKind::Creep,
    ];

    /// As the screen names it.
    pub fn name(self) -> &'static str {
        match self {
            CheckKind::SeveralLong => "several long requests at once",
            CheckKind::LongAnswer => "a long answer",
            CheckKind::OverLimit => "a request over the limit",
            CheckKind::ShortBesideLong => "short requests beside a long prefill",
            CheckKind::HiddenFact => "a fact hidden at the start of a near-full prompt",
            CheckKind::Creep => "memory does not creep",
        }
    }

    /// For the evidence table: `leak not run`.
    pub fn short_name(self) -> &'static str {
        match self {
            CheckKind::SeveralLong => "several long",
            CheckKind::LongAnswer => "long answer",
            CheckKind::OverLimit => "over limit",
            CheckKind::ShortBesideLong => "short beside long",
            CheckKind::HiddenFact => "hidden fact",
            CheckKind::Creep => "leak",
        }
    }
}

/// How a check ended. The texts are sentences for the screen, cleaned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", content = "text", rename_all = "snake_case")]
pub enum Verdict {
    /// With what was seen.
    Passed(String),
    Failed(String),
    NotRun(String),
}

/// One finished check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub kind: CheckKind,
    pub verdict: Verdict,
    pub took_ms: u64,
}

/// Everything that the checks need.
#[derive(Debug)]
pub struct CheckJob {
    pub endpoint: Endpoint,
    pub kind: Kind,
    pub model: String,
    /// Effective context of the server; without it only the checks that need none are carried out.
    pub context: Option<u64>,
    /// Less work in each check, never another question.
    pub quick: bool,
    /// Makes prompts unique over runs.
    pub seed: u64,
    pub gpus: watch::Receiver<Snapshot>,
    /// Cards of the server by index; all if empty.
    pub cards: Vec<u32>,
}

/// What the checks report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Started {
        kind: CheckKind,
        index: usize,
        of: usize,
    },
    Done(Check),
    /// All are through, or the operator stopped them.
    Finished {
        stopped: bool,
    },
}

/// Where checks report to. Called from a thread of its own, in order.
pub type Sink = Box<dyn FnMut(Event) + Send>;

/// Starts the checks on a thread of their own. Fails if the server's address cannot be used or the thread cannot be started.
pub fn start(job: CheckJob, sink: Sink) -> io::Result<Handle> {
    let access = Access::new(&job.endpoint)
        .map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
    worker::spawn("vramp-checks", sink, move |reporter, stop| {
        let asker = Asker::new(access, job.kind, &job.model, job.seed, Api::Auto);
        drive(job, asker, reporter, stop)
    })
}

async fn drive(job: CheckJob, asker: Asker, reporter: Reporter<Event>, mut stop: Stop) {
    let stopped = tokio::select! {
        biased;
        () = stop.wait() => true,
        () = all(job, asker, &reporter) => false,
    };
    reporter.tell(Event::Finished { stopped });
}

async fn all(job: CheckJob, asker: Asker, reporter: &Reporter<Event>) {
    let of = CheckKind::ALL.len();
    let mut bench = Bench {
        scale: asker.learn_scale(job.context).await.map_err(|f| f.message),
        asker,
        job,
    };
    for (index, kind) in CheckKind::ALL.into_iter().enumerate() {
        reporter.tell(Event::Started { kind, index, of });
        let began = Instant::now();
        let verdict = bench.carry_out(kind).await;
        reporter.tell(Event::Done(Check {
            kind,
            verdict,
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }));
    }
}

/// What all checks work with.
struct Bench {
    asker: Asker,
    job: CheckJob,
    /// Tokens of words, or why the server does not talk.
    scale: Result<Scale, String>,
}

impl Bench {
    /// Limits for requests of so many tokens, a few of them at once.
    fn limits(&self, input: u64, output: u64) -> Deadlines {
        Deadlines::for_request(input, output, 4)
    }
}
