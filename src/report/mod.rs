//! The report of a session: what was served, tried, measured and decided, in one Markdown file.

mod bars;
pub mod bench;
mod configs;
mod escape;
mod gather;
mod markdown;
mod measured;
mod table;

pub use gather::gather;
pub use markdown::markdown;

use crate::app::evidence::{self, Evidence};
use crate::app::tried::Tried;
use crate::store::{Decision, Event, RunRow, SessionRow, StoredPoint};
use std::path::{Path, PathBuf};

/// Everything that a report says. Text in it may come from outside; it is made harmless when it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportInput {
    pub session: SessionRow,
    /// The confirmed context per request, as the profile has it now.
    pub production: Option<u64>,
    /// Ascending by context.
    pub configs: Vec<Tried>,
    /// The runs of this session, oldest first.
    pub runs: Vec<RunRow>,
    /// Their points, in the order of measurement.
    pub points: Vec<StoredPoint>,
    pub events: Vec<Event>,
    pub decisions: Vec<Decision>,
    pub written_unix_ms: i64,
    /// Times are shown in this zone.
    pub zone: jiff::tz::TimeZone,
}

impl ReportInput {
    /// Whether anything in it was simulated.
    pub fn simulated(&self) -> bool {
        self.session.simulated
            || self
                .session
                .facts
                .as_ref()
                .is_some_and(|facts| facts.simulated)
            || self.runs.iter().any(|run| run.simulated)
            || self.points.iter().any(|stored| stored.point.simulated)
            || self.decisions.iter().any(|decision| decision.simulated)
    }

    /// What speaks for and against each configuration, in their order.
    pub fn evidence(&self) -> Vec<Evidence> {
        let points: Vec<_> = self
            .points
            .iter()
            .map(|stored| stored.point.clone())
            .collect();
        let tried: Vec<&Tried> = self.configs.iter().collect();
        let all = evidence::gather(&tried, &points, self.production);
        self.configs
            .iter()
            .filter_map(|t| all.iter().find(|e| e.context == t.context).cloned())
            .collect()
    }

    /// A moment in the report's zone; `format` as `strftime` has it.
    fn time(&self, unix_ms: i64, format: &str) -> String {
        jiff::Timestamp::from_millisecond(unix_ms).map_or_else(
            |_| "?".to_string(),
            |at| at.to_zoned(self.zone.clone()).strftime(format).to_string(),
        )
    }

    fn date_time(&self, unix_ms: i64) -> String {
        self.time(unix_ms, "%Y-%m-%d %H:%M:%S")
    }
}

/// Where the report goes: `DIR/vramp-PROFILE-20260301-120431.md`, with `-SIMULATED` where that is so.
pub fn path(dir: &Path, input: &ReportInput) -> PathBuf {
    let profile: String = input
        .session
        .profile
        .chars()
        .take(60)
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
                c
            } else {
                '-'
            }
        })
        .collect();
    let at = input.time(input.written_unix_ms, "%Y%m%d-%H%M%S");
    let mark = if input.simulated() { "-SIMULATED" } else { "" };
    dir.join(format!("vramp-{profile}-{at}{mark}.md"))
}

#[cfg(test)]
mod tests;
