//! Requests on the server that are not ours.

use crate::clock::Now;
use crate::engine::Load;
use crate::reading::Reading;

/// Requests running or waiting, less our own in flight. Unknown where the server does not say how many run; a server that does
/// not count its queue is taken at its running ones. A fresh zero is no proof of idleness: engines refresh their figures only
/// now and then.
pub fn foreign(load: &Load, ours: u64) -> Reading<u64> {
    let waiting = load.waiting.known().copied().unwrap_or(0);
    load.running
        .clone()
        .map(|running| running.saturating_add(waiting).saturating_sub(ours))
}

/// A drain is over when there was no foreign request for this long.
pub const QUIET_MS: u64 = 10_000;

/// Waiting for other people's requests to end before a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    pub since: Now,
    /// Since when there has been none; `None` while there is one, or while it cannot be known.
    pub quiet_since: Option<Now>,
}

impl Drain {
    pub fn new(now: Now) -> Self {
        Drain {
            since: now,
            quiet_since: None,
        }
    }

    /// So many foreign requests are there now; what cannot be known is not quiet.
    pub fn seen(&mut self, now: Now, foreign: Option<u64>) {
        self.quiet_since = match foreign {
            Some(0) => self.quiet_since.or(Some(now)),
            _ => None,
        };
    }

    /// Whether nobody else was seen for long enough.
    pub fn over(&self, now: Now) -> bool {
        self.quiet_for(now) >= Some(QUIET_MS)
    }

    /// How long nobody else has been seen, ms; `None` while somebody is.
    pub fn quiet_for(&self, now: Now) -> Option<u64> {
        self.quiet_since.map(|since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_taken_off_and_unknown_stays_unknown() {
        let load = |running, waiting| Load {
            running,
            waiting,
            ..Load::default()
        };
        let value = Reading::Value;
        assert_eq!(foreign(&load(value(3), value(2)), 4), value(1));
        assert_eq!(
            foreign(&load(value(3), Reading::unsupported()), 1),
            value(2)
        );
        assert_eq!(foreign(&load(value(1), value(0)), 2), value(0));
        assert_eq!(
            foreign(&load(Reading::unsupported(), value(2)), 0),
            Reading::unsupported()
        );
        let stale = Reading::Stale {
            value: 5,
            age_ms: 9,
        };
        assert_eq!(
            foreign(&load(stale, value(0)), 1),
            Reading::Stale {
                value: 4,
                age_ms: 9
            }
        );
    }
}
