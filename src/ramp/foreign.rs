//! Requests on the server that are not ours.

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
