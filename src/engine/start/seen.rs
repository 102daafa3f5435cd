//! What has been read of one start.

use super::super::{Kind, Phase};
use super::trouble::{Trouble, Weight};
use super::{StartFacts, Taken};

/// How far a phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// 0..=100, where the log gives it.
    pub percent: Option<u8>,
    /// So many of so many (shards, batch sizes).
    pub parts: Option<(u64, u64)>,
}

impl Progress {
    /// The phase and how far it is, in words: `loading weights 12/17 shards`, `capturing graphs 34 %`.
    pub fn words(&self, phase: Phase) -> String {
        let name = phase.words();
        match (phase, self.parts, self.percent) {
            (Phase::LoadingWeights, Some((done, all)), _) => format!("{name} {done}/{all} shards"),
            (_, _, Some(percent)) => format!("{name} {percent} %"),
            _ => name.to_string(),
        }
    }
}

/// How the log says that the process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// SIGKILL.
    Killed,
    /// Ended by the service manager's own limit on the time of a start.
    TimedOut,
    /// A crash signal, or an abort.
    Crashed,
    Exit(i32),
}

/// Everything that the lines of one start have said.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub version: Option<String>,
    pub phase: Option<(Phase, Progress)>,
    pub facts: StartFacts,
    pub taken: Taken,
    /// It serves, by its own words.
    pub ready: bool,
    /// It was asked to end after it served.
    pub stopping: bool,
    pub trouble: Option<Trouble>,
    /// How the log says that it ended, and the line.
    pub end: Option<(End, String)>,
    /// A serving process said that it dies.
    pub dying: bool,
    /// Remarks that belong to the diagnosis whatever it is.
    pub remarks: Vec<String>,
    /// The ranks have begun to speak to each other and have not said that they are done.
    pub collective: bool,
    /// How often the front has said that it waits for its workers, since they last got on.
    pub waits: u64,
    /// Lines that show what the start really serves.
    pub shown: Vec<String>,
    /// Memory that the process itself holds on the card, GiB, by the line of the failure.
    pub own_gib: Option<f64>,
    /// Memory that another process holds on the card, GiB, by the line of the failure.
    pub others_gib: Option<f64>,
    pub sglang: super::sglang::Own,
    pub llama: super::llamacpp::Own,
    pub last_line: Option<String>,
}

impl Seen {
    /// A phase begins or goes on.
    pub fn enter(&mut self, phase: Phase, progress: Progress) {
        if self.ready {
            return;
        }
        let now = Some((phase, progress));
        if self.phase != now {
            self.phase = now;
            // It went on after all: an error that was caught looks like any other.
            if self
                .trouble
                .as_ref()
                .is_some_and(|t| t.weight() <= Weight::Words)
            {
                self.trouble = None;
            }
        }
        self.waits = 0;
    }

    pub fn phase(&mut self, phase: Phase) {
        self.enter(phase, Progress::default());
    }

    /// More of a phase, if it is the present one.
    pub fn update(&mut self, phase: Phase, progress: Progress) {
        if self.current() == Some(phase) {
            self.enter(phase, progress);
        }
    }

    /// The phase, if none is known yet.
    pub fn phase_if_new(&mut self, phase: Phase) {
        if self.phase.is_none() {
            self.phase(phase);
        }
    }

    /// The phase, if the start has come to `from`.
    pub fn phase_after(&mut self, from: Phase, phase: Phase) {
        if self.current().is_some_and(|now| now >= from) {
            self.phase(phase);
        }
    }

    /// The phase, if the start has not come to `limit`.
    pub fn phase_before(&mut self, limit: Phase, phase: Phase) {
        if self.current().is_none_or(|now| now < limit) {
            self.phase(phase);
        }
    }

    /// What failed was tried in another way, or was not needed.
    pub fn overcome(&mut self) {
        self.trouble = None;
    }

    pub fn current(&self) -> Option<Phase> {
        self.phase.map(|(phase, _)| phase)
    }

    /// A line that shows what the start really serves.
    pub fn show(&mut self, line: &str) {
        const MOST: usize = 4;
        if self.shown.len() < MOST {
            self.shown
                .push(super::super::http::shorten(line, super::advice::MAX_LINE));
        }
    }

    /// It serves. Whatever went wrong before was overcome.
    pub fn serves(&mut self, line: &str) {
        if !self.ready {
            self.shown.insert(
                0,
                super::super::http::shorten(line, super::advice::MAX_LINE),
            );
        }
        self.phase(Phase::Listening);
        self.ready = true;
        self.collective = false;
        self.trouble = None;
        self.end = None;
    }

    pub fn remark(&mut self, text: impl Into<String>) {
        const MOST: usize = 8;
        let text = text.into();
        if self.remarks.len() < MOST && !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    /// Takes a version that the log names; the first one stays.
    pub fn version(&mut self, text: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_');
        let text: String = text.chars().take_while(|c| plain(*c)).take(64).collect();
        let text = text.trim_end_matches(['.', '-']);
        if self.version.is_none() && text.contains(|c: char| c.is_ascii_digit()) {
            self.version = Some(text.to_string());
        }
    }

    /// The figures, with those that stand on different lines put together.
    pub fn settled(&self, kind: Option<Kind>) -> StartFacts {
        let mut facts = self.facts.clone();
        if kind == Some(Kind::LlamaCpp) {
            self.llama.settle(&mut facts, self.ready);
        } else if kind == Some(Kind::Vllm) && self.ready {
            // It does not start with a pool below one request.
            facts.effective_context_per_request = facts.requested_context;
        } else if self.ready {
            facts.effective_context_per_request = facts
                .requested_context
                .map(|asked| facts.kv_pool_tokens.map_or(asked, |pool| asked.min(pool)));
        }
        facts
    }
}

/// Adds to a figure what comes on top of it.
pub(super) fn add(slot: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *slot = Some(super::super::text::rounded(slot.unwrap_or(0.0) + value));
    }
}

/// Keeps the smaller of two figures.
pub(super) fn least(slot: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *slot = Some(slot.map_or(value, |old| old.min(value)));
    }
}

/// Takes a figure if the line gave one.
pub(super) fn take<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}
