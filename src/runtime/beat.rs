//! The second hand. The cards come once a second already: what else has to happen each second happens with them, so that a cockpit at
//! rest wakes the machine once, and not once for each thing. Where they do not come in time, a timer stands in.

use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
/// A reading this much early is the next second's.
const EARLY: Duration = Duration::from_millis(100);
/// How long the timer waits for a reading that is expected.
const PATIENCE: Duration = Duration::from_millis(250);

/// When the last second began, and what began it.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    last: Instant,
    with_cards: bool,
}

impl Beat {
    pub fn new(now: Instant) -> Self {
        Beat {
            last: now,
            with_cards: false,
        }
    }

    /// A reading of the cards came: true where a new second begins with it.
    pub fn cards(&mut self, now: Instant) -> bool {
        let begins = now.duration_since(self.last) + EARLY >= SECOND;
        if begins {
            *self = Beat {
                last: now,
                with_cards: true,
            };
        }
        begins
    }

    /// When the second begins without the cards.
    pub fn due(&self) -> Instant {
        let patience = if self.with_cards {
            PATIENCE
        } else {
            Duration::ZERO
        };
        self.last + SECOND + patience
    }

    /// The time was up: a new second begins without the cards.
    pub fn timer(&mut self, now: Instant) {
        *self = Beat::new(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn seconds_begin_with_the_cards_and_the_timer_stands_in_where_they_fail() {
        let zero = Instant::now();
        let mut beat = Beat::new(zero);
        assert_eq!(beat.due(), zero + ms(1000), "nothing is expected yet");
        assert!(!beat.cards(zero + ms(300)), "in the middle of a second");
        assert!(beat.cards(zero + ms(950)), "as good as a second");
        assert_eq!(
            beat.due(),
            zero + ms(2200),
            "the next reading is waited for"
        );
        beat.timer(zero + ms(2200));
        assert_eq!(beat.due(), zero + ms(3200), "and then no longer");
        assert!(beat.cards(zero + ms(3150)));
        assert!(
            !beat.cards(zero + ms(3160)),
            "two readings at once are one second"
        );
    }
}
