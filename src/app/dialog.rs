//! What lies over the panes and has the keys.

use super::bench::compared::matching;
use super::config::Edit;
use super::question::KeepPlan;
use crate::clock::Now;
use crate::confirm::Pending;
use crate::ramp::{CardsChoice, Drain, Intent, Occupied, RestartPlan, WayOut};
use crate::store::RunRow;

/// The restart that is asked for, with what it will cost.
#[derive(Debug, Clone, PartialEq)]
pub struct RestartDialog {
    pub pending: Pending<RestartPlan>,
    /// The task that asked.
    pub task: Option<u64>,
    /// What to expect, in words, each with how sure it is.
    pub forecast: Vec<String>,
    /// What should make the operator think.
    pub warnings: Vec<String>,
    /// Lines of the launch that change: (old, new).
    pub diff: Vec<DiffLine>,
    pub drain: Option<Drain>,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    Same(String),
    Removed(String),
    Added(String),
}

/// The one-line text that a dialog asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A context length.
    Context,
    /// Title of a new task.
    AddTask,
    /// New title of the task with this id.
    EditTask(u64),
    /// Words to find in a list or a log.
    Search,
}

/// A text field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    pub edit: Edit,
    /// What is wrong with it.
    pub error: Option<String>,
}

/// An unfinished restart that was found at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    pub go_on: Pending<(Intent, WayOut)>,
    pub roll_back: Pending<(Intent, WayOut)>,
}

/// Cards that were not free in time. Each way on is confirmed by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct CardsDialog {
    pub occupied: Occupied,
    pub wait_on: Pending<CardsChoice>,
    /// `None`: nothing that holds them is known as the stopped server's.
    pub end: Option<Pending<CardsChoice>>,
    pub give_up: Pending<CardsChoice>,
}

impl CardsDialog {
    fn shown(&mut self, at: Now) {
        self.wait_on.shown(at);
        self.give_up.shown(at);
        if let Some(end) = &mut self.end {
            end.shown(at);
        }
    }
}

/// The choice of two runs, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunsDialog {
    /// Finished ones, the newest first; `None` while they are read.
    pub rows: Option<Vec<RunRow>>,
    pub query: Edit,
    pub selected: usize,
    /// The run that was chosen to compare with.
    pub first: Option<i64>,
}

impl RunsDialog {
    /// The runs that the filter leaves, without the one that is chosen already.
    pub fn found(&self) -> Vec<&RunRow> {
        let rows = self.rows.as_deref().unwrap_or_default();
        matching(rows, &self.query.text)
            .into_iter()
            .filter(|row| Some(row.id) != self.first)
            .collect()
    }
}

/// A dialog. The topmost has the keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Dialog {
    /// Restart the server, yes or no.
    Restart(Box<RestartDialog>),
    /// Keep the trial as the production value, or what else.
    Question(Pending<KeepPlan>),
    /// Finish an unfinished restart, or go back.
    Recovery(Box<Recovery>),
    /// Wait on for occupied cards, end what is left over, or give up.
    Cards(Box<CardsDialog>),
    /// Stop what runs, yes or no.
    Stop(Pending<()>),
    /// Leave although something runs, yes or no.
    Quit(Pending<()>),
    Entry(Entry),
    Help {
        query: Edit,
        scroll: usize,
    },
    Commands {
        query: Edit,
        selected: usize,
    },
    /// Runs on record, to compare two of them.
    Runs(RunsDialog),
    /// The server's log; `back` lines above its end.
    Log {
        back: usize,
    },
    /// Where a number comes from.
    Origin {
        lines: Vec<String>,
    },
    /// The launch as it is against as edited.
    Diff {
        lines: Vec<DiffLine>,
        scroll: usize,
    },
}

impl Dialog {
    /// The first frame with this dialog was drawn.
    pub fn shown(&mut self, at: Now) {
        match self {
            Dialog::Restart(dialog) => dialog.pending.shown(at),
            Dialog::Question(pending) => pending.shown(at),
            Dialog::Recovery(recovery) => {
                recovery.go_on.shown(at);
                recovery.roll_back.shown(at);
            }
            Dialog::Cards(cards) => cards.shown(at),
            Dialog::Stop(pending) | Dialog::Quit(pending) => pending.shown(at),
            _ => {}
        }
    }

    /// Whether keys count by now: a question that was just drawn is deaf for a moment.
    pub fn listens(&self, at: Now) -> bool {
        match self {
            Dialog::Restart(dialog) => dialog.pending.listens(at),
            Dialog::Question(pending) => pending.listens(at),
            Dialog::Recovery(recovery) => recovery.go_on.listens(at),
            Dialog::Cards(cards) => cards.wait_on.listens(at),
            Dialog::Stop(pending) | Dialog::Quit(pending) => pending.listens(at),
            _ => true,
        }
    }

    /// The text that is being edited in it.
    pub fn edit(&self) -> Option<&Edit> {
        match self {
            Dialog::Entry(entry) => Some(&entry.edit),
            Dialog::Commands { query, .. } => Some(query),
            Dialog::Runs(runs) => Some(&runs.query),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn edit_mut(&mut self) -> Option<&mut Edit> {
        match self {
            Dialog::Entry(entry) => Some(&mut entry.edit),
            Dialog::Commands { query, .. } => Some(query),
            Dialog::Runs(runs) => Some(&mut runs.query),
            _ => None,
        }
    }
}
