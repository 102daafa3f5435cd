//! The list of tasks and what may be done to it.

use super::task::{Task, TaskKind, TaskState};
use crate::profile::{Profile, ServiceSpec};
use crate::units::{short_count, thousands};

/// Changes that can be undone.
const UNDO: usize = 50;

/// The list, with the line that is selected.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tasks {
    pub list: Vec<Task>,
    pub selected: usize,
    next_id: u64,
    /// Lists as they were before the operator's changes, newest last.
    undo: Vec<Vec<Task>>,
}

impl Tasks {
    /// Takes a stored list as it was, or makes the walk of `profile` if there is none.
    pub fn restore(
        &mut self,
        stored: Vec<Task>,
        next_id: u64,
        profile: Option<&Profile>,
        quick: bool,
    ) {
        self.list = stored;
        for task in &mut self.list {
            // What ran when the cockpit ended did not end.
            if matches!(task.state, TaskState::Running { .. }) {
                task.state = TaskState::Pending;
                task.note = Some("interrupted".into());
            }
        }
        self.next_id = self
            .list
            .iter()
            .map(|t| t.id + 1)
            .max()
            .unwrap_or(1)
            .max(next_id);
        if self.list.is_empty()
            && let Some(profile) = profile
        {
            self.walk(profile, quick);
        }
        self.selected = self
            .list
            .iter()
            .position(|t| !matches!(t.state, TaskState::Done { .. } | TaskState::Skipped))
            .unwrap_or(0);
    }

    /// Makes the walk of `profile` again, if nothing of the present one was begun but the first task.
    pub fn walk_anew(&mut self, profile: &Profile, quick: bool) {
        let fresh = |task: &Task| {
            matches!(task.state, TaskState::Pending | TaskState::Blocked { .. })
                && task.note.is_none()
                && task.kind != TaskKind::Own
        };
        let Some(first) = self
            .list
            .first()
            .filter(|first| first.kind == TaskKind::Attach)
            .cloned()
        else {
            return;
        };
        if !self.undo.is_empty() || !self.list.iter().skip(1).all(fresh) {
            return;
        }
        self.list.clear();
        self.walk(profile, quick);
        if let Some(attach) = self.list.first_mut() {
            *attach = first;
        }
        self.selected = 0;
    }

    /// The walk as tasks: measure what is served, raise step by step, measure again, check, decide, report.
    fn walk(&mut self, profile: &Profile, quick: bool) {
        self.push("Attach to the server", TaskKind::Attach);
        self.push("Smoke test", TaskKind::Smoke);
        let levels = &profile.throughput.concurrency;
        let title = match (levels.first(), levels.last()) {
            (Some(first), Some(last)) if first != last => format!("Throughput {first} … {last}"),
            (Some(one), _) => format!("Throughput {one}"),
            _ => "Throughput".to_string(),
        };
        self.push(&title, TaskKind::Throughput);
        let can_raise = !matches!(profile.service, ServiceSpec::None);
        let output = profile.long_context.output;
        let mut inputs = profile.long_context.inputs.clone();
        inputs.sort_unstable();
        inputs.dedup();
        if !can_raise {
            self.push_long(inputs);
            self.push("Checks", TaskKind::Checks { at: None });
        } else {
            let base = profile
                .production
                .or(profile.ladder.first().copied())
                .unwrap_or(0);
            let mut steps: Vec<u64> = profile
                .ladder
                .iter()
                .copied()
                .filter(|step| *step > base)
                .collect();
            steps.sort_unstable();
            let mut from = 0;
            for (i, step) in std::iter::once(base)
                .chain(steps.iter().copied())
                .enumerate()
            {
                if i > 0 {
                    self.push(
                        &format!("Raise to {}", thousands(step)),
                        TaskKind::Raise { to: step },
                    );
                }
                let fits = inputs
                    .iter()
                    .filter(|input| **input + output <= step)
                    .count();
                if let Some(group) = inputs.get(from..fits)
                    && !group.is_empty()
                {
                    self.push_long(group.to_vec());
                }
                from = from.max(fits);
                // Every value that may be chosen is checked; in the quick form only the one that is.
                if !quick {
                    self.push(
                        &format!("Checks at {}", thousands(step)),
                        TaskKind::Checks { at: Some(step) },
                    );
                }
            }
            if quick {
                self.push("Checks at the chosen value", TaskKind::Checks { at: None });
            }
            if let Some(group) = inputs.get(from..)
                && !group.is_empty()
            {
                self.push_long(group.to_vec());
            }
            self.push("Decide the production value", TaskKind::Decide);
        }
        self.push("Report", TaskKind::Report);
    }

    fn push_long(&mut self, inputs: Vec<u64>) {
        let names: Vec<String> = inputs.iter().map(|n| short_count(*n)).collect();
        self.push(
            &format!("Long context {}", names.join(", ")),
            TaskKind::LongContext { inputs },
        );
    }

    fn push(&mut self, title: &str, kind: TaskKind) {
        let id = self.take_id();
        self.list.push(Task {
            id,
            title: title.to_string(),
            kind,
            state: TaskState::Pending,
            note: None,
        });
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    pub fn selected(&self) -> Option<&Task> {
        self.list.get(self.selected)
    }

    pub fn get(&self, id: u64) -> Option<&Task> {
        self.list.iter().find(|t| t.id == id)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Task> {
        self.list.iter_mut().find(|t| t.id == id)
    }

    /// The first task of this kind.
    pub fn find(&self, wanted: impl Fn(&Task) -> bool) -> Option<&Task> {
        self.list.iter().find(|t| wanted(t))
    }

    /// Moves the selection by `by` lines.
    pub fn move_selection(&mut self, by: isize) {
        let last = self.list.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    /// From a task that is over, goes on to the next that can be run.
    pub fn advance(&mut self, from: u64) {
        if self.selected().map(|t| t.id) != Some(from) {
            return;
        }
        let open = |t: &Task| {
            !matches!(t.kind, TaskKind::Own)
                && !matches!(t.state, TaskState::Done { .. } | TaskState::Skipped)
        };
        if let Some(next) = self.list.iter().skip(self.selected + 1).position(open) {
            self.selected += next + 1;
        }
    }

    /// Done tasks and all, for the title of the pane.
    pub fn tally(&self) -> (usize, usize) {
        (
            self.list
                .iter()
                .filter(|t| matches!(t.state, TaskState::Done { .. }))
                .count(),
            self.list.len(),
        )
    }

    fn remember(&mut self) {
        if self.undo.len() == UNDO {
            self.undo.remove(0);
        }
        self.undo.push(self.list.clone());
    }

    /// Adds a task of the operator below the selected one.
    pub fn add(&mut self, title: String) {
        self.remember();
        let task = Task {
            id: self.take_id(),
            title,
            kind: TaskKind::Own,
            state: TaskState::Pending,
            note: None,
        };
        let at = (self.selected + 1).min(self.list.len());
        self.list.insert(at, task);
        self.selected = at;
    }

    pub fn rename(&mut self, id: u64, title: String) {
        if self.get(id).is_some() {
            self.remember();
            if let Some(task) = self.get_mut(id) {
                task.title = title;
            }
        }
    }

    /// Deletes the selected task; a running one stays.
    pub fn delete(&mut self) -> bool {
        if self
            .selected()
            .is_none_or(|t| matches!(t.state, TaskState::Running { .. }))
        {
            return false;
        }
        self.remember();
        self.list.remove(self.selected);
        self.move_selection(0);
        true
    }

    /// Skips the selected task, or takes it back into the run.
    pub fn skip(&mut self) -> bool {
        let Some(state) = self.selected().map(|t| t.state.clone()) else {
            return false;
        };
        let next = match state {
            TaskState::Skipped => TaskState::Pending,
            TaskState::Pending
            | TaskState::Blocked { .. }
            | TaskState::Failed { .. }
            | TaskState::Waiting => TaskState::Skipped,
            TaskState::Running { .. } | TaskState::Done { .. } => return false,
        };
        self.remember();
        if let Some(task) = self.list.get_mut(self.selected) {
            task.state = next;
        }
        true
    }

    /// Ticks a task of the operator off, or back. Tasks of the run are moved by the run alone.
    pub fn toggle(&mut self) -> bool {
        let Some(task) = self
            .list
            .get(self.selected)
            .filter(|t| t.kind == TaskKind::Own)
        else {
            return false;
        };
        let next = if matches!(task.state, TaskState::Done { .. }) {
            TaskState::Pending
        } else {
            TaskState::Done { took_ms: 0 }
        };
        self.remember();
        if let Some(task) = self.list.get_mut(self.selected) {
            task.state = next;
        }
        true
    }

    /// Moves the selected task one line up or down.
    pub fn shift(&mut self, down: bool) -> bool {
        let other = if down {
            self.selected + 1
        } else {
            self.selected.wrapping_sub(1)
        };
        if other >= self.list.len() || self.selected >= self.list.len() {
            return false;
        }
        self.remember();
        self.list.swap(self.selected, other);
        self.selected = other;
        true
    }

    /// Takes the operator's last change back. What the run did to its tasks meanwhile stays.
    pub fn undo(&mut self) -> bool {
        let Some(mut before) = self.undo.pop() else {
            return false;
        };
        for task in &mut before {
            if task.kind != TaskKind::Own
                && let Some(now) = self.get(task.id)
                && !matches!(
                    (&now.state, &task.state),
                    (TaskState::Skipped, _) | (_, TaskState::Skipped)
                )
            {
                task.state = now.state.clone();
                task.note = now.note.clone();
            }
        }
        self.list = before;
        self.move_selection(0);
        true
    }

    pub fn can_undo(&self) -> bool {
        !self.undo.is_empty()
    }

    /// Blocks and frees long-context tasks by what the server serves now. `steps`: contexts to offer, ascending.
    pub fn reassess(&mut self, served: Option<u64>, output: u64, steps: &[u64]) {
        let Some(served) = served else { return };
        for task in &mut self.list {
            let TaskKind::LongContext { inputs } = &task.kind else {
                continue;
            };
            if !matches!(task.state, TaskState::Pending | TaskState::Blocked { .. }) {
                continue;
            }
            let needs = inputs.iter().copied().min().unwrap_or(0) + output;
            task.state = if needs <= served {
                TaskState::Pending
            } else {
                let all = inputs.iter().copied().max().unwrap_or(0) + output;
                let raise_to = steps.iter().copied().find(|step| *step >= all);
                TaskState::Blocked {
                    why: format!(
                        "needs {} tokens, server serves {}",
                        thousands(needs),
                        thousands(served)
                    ),
                    raise_to,
                }
            };
        }
    }
}
