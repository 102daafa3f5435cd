//! One benchmark run in every form that it is handed out in.

mod charts;
mod compare;
mod csv;
mod document;
mod findings;
mod html;
mod text;
mod vllm;

pub use compare::{CellComparison, Comparison, Figure, Verdict, compare};
pub use csv::csv;
pub use document::{Document, document};
pub use findings::{Finding, findings};
pub use html::{html, page as html_page, section as html_section, text as html_text};
pub use text::table;
pub use vllm::vllm;

use crate::bench::plan::Cell;
use crate::bench::point::{FailureKind, Point};
use crate::store::{Ending, RunRow, Store, StoreError};
use crate::units::short_count;

/// A run as it is on record. Its points carry no requests.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    pub row: RunRow,
    pub points: Vec<Point>,
    /// The points' numbers in the record, in the same order.
    pub ids: Vec<i64>,
}

impl RunReport {
    /// Reads a run; `None` if there is none of this number.
    pub fn read(store: &Store, run: i64) -> Result<Option<RunReport>, StoreError> {
        let Some(row) = store.run(run)? else {
            return Ok(None);
        };
        let stored = store.run_points(run)?;
        Ok(Some(RunReport {
            row,
            ids: stored.iter().map(|stored| stored.id).collect(),
            points: stored.into_iter().map(|stored| stored.point).collect(),
        }))
    }

    /// Whether something that was asked for is not in it.
    pub fn partial(&self) -> bool {
        self.row.ending != Some(Ending::Finished) || self.points.iter().any(|point| point.partial)
    }

    pub fn simulated(&self) -> bool {
        self.row.simulated || self.points.iter().any(|point| point.simulated)
    }
}

/// A failure's kind as one word, for files and for counting.
pub fn kind_word(kind: &FailureKind) -> String {
    match kind {
        FailureKind::Refused => "refused".to_string(),
        FailureKind::TimeoutConnect => "timeout_connect".to_string(),
        FailureKind::TimeoutFirstByte => "timeout_first_byte".to_string(),
        FailureKind::TimeoutTotal => "timeout_total".to_string(),
        FailureKind::Stalled => "stalled".to_string(),
        FailureKind::Status(status) => format!("status_{status}"),
        FailureKind::ContextExceeded => "context_exceeded".to_string(),
        FailureKind::CutOff => "cut_off".to_string(),
        FailureKind::ErrorInStream => "error_in_stream".to_string(),
        FailureKind::Empty => "empty".to_string(),
        FailureKind::Protocol => "protocol".to_string(),
    }
}

/// What a cell keeps up: `8 at once`, `2.5/s`.
pub fn load_words(cell: &Cell) -> String {
    match cell.arrivals.rate() {
        Some(rate) => format!("{}/s", rate.per_second()),
        None => format!("{} at once", cell.concurrency),
    }
}

/// A cell in words: `1K in, 500 out, 8 at once`.
pub fn cell_words(cell: &Cell) -> String {
    format!(
        "{} in, {} out, {}",
        short_count(cell.input),
        short_count(cell.output),
        load_words(cell)
    )
}

#[cfg(test)]
mod tests;
