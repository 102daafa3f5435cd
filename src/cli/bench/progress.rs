//! How far a run is, on standard error: a line that changes on a terminal, plain lines elsewhere.

use crate::bench::Live;
use crate::bench::plan::Cell;
use crate::bench::point::{Failure, Point};
use crate::report::bench::cell_words;
use crate::units::{clean, mm_ss};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two plain lines of one cell.
const PLAIN_EVERY: Duration = Duration::from_secs(10);
const BAR: usize = 24;

pub struct Progress {
    terminal: bool,
    /// Something stands on the changing line.
    drawn: bool,
    cell: String,
    place: String,
    said: Instant,
    last_failure: String,
}

impl Progress {
    pub fn new() -> Self {
        Progress {
            terminal: std::io::stderr().is_terminal(),
            drawn: false,
            cell: String::new(),
            place: String::new(),
            said: Instant::now(),
            last_failure: String::new(),
        }
    }

    /// A line that stays.
    pub fn line(&mut self, text: &str) {
        self.wipe();
        put(&format!("{text}\n"));
    }

    pub fn cell(&mut self, index: usize, of: usize, cell: &Cell) {
        self.cell = cell_words(cell);
        self.place = format!("{}/{of}", index + 1);
        self.said = Instant::now();
        if !self.terminal {
            self.line(&format!("{}  {}: begins", self.place, self.cell));
        }
    }

    pub fn live(&mut self, live: &Live) {
        let left = live
            .run_left_ms
            .or(live.cell_left_ms)
            .map_or(String::new(), |ms| format!("  {} left", mm_ss(ms)));
        let done = if live.of == 0 {
            format!("{} requests", live.done)
        } else {
            format!("{}/{} requests", live.done, live.of)
        };
        let failed = if live.failed > 0 {
            format!("  {} failed", live.failed)
        } else {
            String::new()
        };
        let facts = format!("{done}{failed}  {:.1} tok/s{left}", live.output_tok_s);
        if self.terminal {
            let share = f64::from(live.done) / f64::from(live.of.max(1)).max(f64::from(live.done));
            let full = (share * BAR as f64).round() as usize;
            let bar = format!(
                "{}{}",
                "#".repeat(full.min(BAR)),
                "-".repeat(BAR.saturating_sub(full))
            );
            put(&format!(
                "\r\u{1b}[K{}  {}  [{bar}]  {facts}",
                self.place, self.cell
            ));
            self.drawn = true;
        } else if self.said.elapsed() >= PLAIN_EVERY {
            self.said = Instant::now();
            self.line(&format!("{}  {}: {facts}", self.place, self.cell));
        }
    }

    /// The same failure again is no news.
    pub fn failure(&mut self, failure: &Failure) {
        let words = clean(&failure.message);
        if words != self.last_failure {
            self.line(&format!("a request failed: {words}"));
            self.last_failure = words;
        }
    }

    pub fn point(&mut self, point: &Point) {
        let rate = point
            .output_tok_s
            .map_or(String::new(), |rate| format!("{rate:.1} tok/s, "));
        let doubt = match point.reasons.first() {
            Some(reason) => format!(": {}", clean(&reason.text)),
            None => String::new(),
        };
        self.line(&format!(
            "{}: {rate}{} of {} requests, {}{doubt}",
            cell_words(&point.cell),
            point.ok,
            point.total,
            point.validity.word()
        ));
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.drawn) {
            put("\r\u{1b}[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.wipe();
    }
}

fn put(text: &str) {
    let mut out = std::io::stderr().lock();
    // Where standard error is gone, there is nobody to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
