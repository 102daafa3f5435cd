//! The task list is the run.

use serde::{Deserialize, Serialize};

/// What a task does when it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum TaskKind {
    Attach,
    Smoke,
    Throughput,
    /// Input lengths in tokens.
    LongContext {
        inputs: Vec<u64>,
    },
    /// Context per request.
    Raise {
        to: u64,
    },
    /// Checks at this context; `None`: at whatever is served when it runs.
    Checks {
        at: Option<u64>,
    },
    Decide,
    Report,
    /// The operator's own.
    Own,
}

/// Where a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum TaskState {
    Pending,
    /// `share` of the work done in thousandths, where it can be known.
    Running {
        since_unix_ms: i64,
        share: Option<u16>,
        left_ms: Option<u64>,
    },
    Done {
        took_ms: u64,
    },
    Failed {
        took_ms: u64,
        why: String,
    },
    /// It cannot run now; why, and the context that would make it possible.
    Blocked {
        why: String,
        raise_to: Option<u64>,
    },
    Skipped,
    /// A question waits for the operator (the decision).
    Waiting,
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Unique in its session, never reused.
    pub id: u64,
    pub title: String,
    pub kind: TaskKind,
    pub state: TaskState,
    /// One more line about the result, in words (`73.5 … 503.9 tok/s`).
    pub note: Option<String>,
}
