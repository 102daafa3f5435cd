//! What the log of a start has said so far, and when the start last got on.

use crate::clock::Now;
use crate::engine::start::{Diagnosis, Known, Progress, Reader};
use crate::engine::{Kind, Phase};

/// The log of one start as it is read.
#[derive(Debug)]
pub struct Tail {
    reader: Reader,
    progress: Now,
}

impl Tail {
    /// A log of which nothing is read yet, of an engine of this kind if it is known.
    pub fn new(kind: Option<Kind>, now: Now) -> Tail {
        Tail {
            reader: Reader::new(kind),
            progress: now,
        }
    }

    /// Takes a line. Returns the phase if the line changed it.
    pub fn take(&mut self, line: &str, now: Now) -> Option<(Phase, Progress)> {
        let change = self.reader.read(line);
        if change.progress {
            self.progressed(now);
        }
        change.phase
    }

    /// The start got on, in the log or elsewhere.
    pub fn progressed(&mut self, now: Now) {
        self.progress = now;
    }

    /// Milliseconds without progress.
    pub fn still_for(&self, now: Now) -> u64 {
        now.since(self.progress)
    }

    /// Whether the log has told of a failure, and of nothing after it that says otherwise.
    pub fn failing(&self) -> bool {
        self.reader.failing()
    }

    pub fn phase(&self) -> Option<Phase> {
        self.reader.phase().map(|(phase, _)| phase)
    }

    /// Whether the ranks meet or wait for each other.
    pub fn collective(&self) -> bool {
        self.reader.collective()
    }

    /// Judges what was read, with what is known from elsewhere.
    pub fn diagnose(&self, known: &Known) -> Diagnosis {
        self.reader.diagnose(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_ms: u64) -> Now {
        Now {
            mono_ms,
            unix_ms: 0,
        }
    }

    #[test]
    fn lines_that_only_repeat_themselves_are_no_progress() {
        let mut tail = Tail::new(None, at(0));
        tail.take("10:00:01 GET /health HTTP/1.1 503", at(1_000));
        tail.take("10:00:02 GET /health HTTP/1.1 503", at(2_000));
        assert_eq!(tail.still_for(at(5_000)), 4_000);
        tail.take("something else", at(5_000));
        assert_eq!(tail.still_for(at(5_000)), 0);
        tail.take("  ", at(9_000));
        assert_eq!(tail.still_for(at(9_000)), 4_000);
    }

    #[test]
    fn an_error_that_was_caught_is_forgotten_when_the_start_goes_on() {
        let mut tail = Tail::new(Some(Kind::Sglang), at(0));
        let mut take = |line| tail.take(line, at(0)).map(|(phase, _)| phase);
        assert_eq!(take("ImportError: a caught one"), None);
        assert_eq!(take("Load weight begin."), Some(Phase::LoadingWeights));
        assert_eq!(take("Load weight begin."), None);
        assert!(!tail.failing());
        for line in ["ValueError: no such layer", "RuntimeError: see above"] {
            tail.take(line, at(0));
        }
        assert!(tail.failing());
        let found = tail.diagnose(&Known::default());
        assert_eq!(found.evidence, ["ValueError: no such layer"]);
    }
}
