//! What the log of a start has said so far, and when the start last got on.

use crate::clock::Now;
use crate::engine::{Engine, LogFact, Phase};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Lines of different shape that are remembered.
const SHAPES: usize = 4096;

/// The log of one start as it is read.
#[derive(Debug)]
pub struct Tail {
    phase: Option<(Phase, Option<u8>)>,
    failure: Option<(String, String)>,
    suggests: Option<u64>,
    last_line: Option<String>,
    shapes: HashSet<u64>,
    progress: Now,
    /// The log has told of a failure, and of no new phase after it.
    failing: bool,
}

impl Tail {
    /// A log of which nothing is read yet.
    pub fn new(now: Now) -> Tail {
        Tail {
            phase: None,
            failure: None,
            suggests: None,
            last_line: None,
            shapes: HashSet::new(),
            progress: now,
            failing: false,
        }
    }

    /// Takes a line, read with `engine` if the kind is known. Returns the phase if the line changed it.
    ///
    /// A line counts as progress if it states a new phase or percentage, or has a shape (the line without its digits) that was
    /// not there before: a line that only repeats itself with a new time, as the access log of our own questions does, is no
    /// progress.
    pub fn take(
        &mut self,
        line: &str,
        engine: Option<&dyn Engine>,
        now: Now,
    ) -> Option<(Phase, Option<u8>)> {
        let before = self.phase;
        for fact in engine
            .map(|engine| engine.read_log_line(line))
            .unwrap_or_default()
        {
            match fact {
                LogFact::Phase(phase, percent) => {
                    if self.phase != Some((phase, percent)) {
                        self.phase = Some((phase, percent));
                        self.progressed(now);
                        // It went on after all: tracebacks that were caught look like any other.
                        self.failing = false;
                    }
                }
                LogFact::Failure(why) => {
                    // The first is the cause, what follows are its consequences.
                    if !self.failing {
                        self.failure = Some((why, line.to_string()));
                    }
                    self.failing = true;
                }
                LogFact::Suggests(tokens) => self.suggests = Some(tokens),
                LogFact::PoolTokens(_) | LogFact::Context(_) => {}
            }
        }
        if !line.trim().is_empty() {
            self.last_line = Some(line.to_string());
            if self.is_new(line) {
                self.progressed(now);
            }
        }
        self.phase.filter(|_| self.phase != before)
    }

    /// The start got on, in the log or elsewhere.
    pub fn progressed(&mut self, now: Now) {
        self.progress = now;
    }

    /// Milliseconds without progress.
    pub fn still_for(&self, now: Now) -> u64 {
        now.since(self.progress)
    }

    /// Whether the log has told of a failure, and of no new phase after it.
    pub fn failing(&self) -> bool {
        self.failing
    }

    pub fn phase(&self) -> Option<Phase> {
        self.phase.map(|(phase, _)| phase)
    }

    /// Why the start fails, and the line that says so.
    pub fn failure(&self) -> Option<(&str, &str)> {
        let (why, line) = self.failure.as_ref()?;
        Some((why, line))
    }

    pub fn last_line(&self) -> Option<&str> {
        self.last_line.as_deref()
    }

    /// The context that the server names as possible.
    pub fn suggests(&self) -> Option<u64> {
        self.suggests
    }

    fn is_new(&mut self, line: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        line.chars()
            .filter(|c| !c.is_ascii_digit())
            .for_each(|c| c.hash(&mut hasher));
        if self.shapes.len() >= SHAPES {
            self.shapes.clear();
        }
        self.shapes.insert(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_rig::Rig;
    use super::*;

    fn at(mono_ms: u64) -> Now {
        Now {
            mono_ms,
            unix_ms: 0,
        }
    }

    #[test]
    fn lines_that_only_repeat_themselves_are_no_progress() {
        let mut tail = Tail::new(at(0));
        tail.take("10:00:01 GET /health HTTP/1.1 503", None, at(1_000));
        tail.take("10:00:02 GET /health HTTP/1.1 503", None, at(2_000));
        assert_eq!(tail.still_for(at(5_000)), 4_000);
        tail.take("something else", None, at(5_000));
        assert_eq!(tail.still_for(at(5_000)), 0);
        tail.take("  ", None, at(9_000));
        assert_eq!(tail.still_for(at(9_000)), 4_000);
        assert_eq!(tail.last_line(), Some("something else"));
    }

    #[test]
    fn the_first_failure_is_the_cause_unless_the_start_went_on() {
        let rig = Rig::idle();
        let mut tail = Tail::new(at(0));
        let mut take = |line| tail.take(line, Some(&rig), at(0));
        assert_eq!(take("ERROR a caught one"), None);
        assert_eq!(take("Loading"), Some((Phase::LoadingWeights, None)));
        assert_eq!(take("Loading again"), None);
        assert!(!tail.failing());
        assert_eq!(tail.failure(), Some(("a caught one", "ERROR a caught one")));
        for line in ["ERROR no memory", "ERROR see above", "Loading the same"] {
            tail.take(line, Some(&rig), at(0));
        }
        assert!(tail.failing());
        assert_eq!(tail.failure(), Some(("no memory", "ERROR no memory")));
    }
}
