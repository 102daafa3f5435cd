//! Slow or stuck: what can be told of a start that says nothing new.

use super::super::Phase;

/// A start waits for cards or ranks that never come; a healthy one is past it in seconds.
const COLLECTIVE_S: f64 = 60.0;
/// Cards that work without a word (kernels are compiled and tuned) may do so for so many times the patience.
const WORKING: f64 = 3.0;

/// What is known of a start that may hang.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signs {
    /// Seconds without a new line in the log and without growth of memory on the cards.
    pub still_s: f64,
    /// Seconds without any progress after which a start has failed.
    pub patience_s: f64,
    pub phase: Option<Phase>,
    /// The ranks are about to meet, or wait for each other.
    pub collective: bool,
    /// The least and the most busy card, percent.
    pub busy: Option<(u32, u32)>,
}

/// What they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It gets on.
    Moving,
    /// It has been quiet for a while, as this phase may be.
    Slow,
    /// The ranks wait for each other; patience may not have run out yet.
    Stalled,
    /// Nothing gets on any more.
    Stuck,
}

/// Judges the signs.
///
/// Every card at 100 % without growth and without a word is a kernel that spins: a collective that one rank never joined. Cards
/// that are busy in another way are working: they get more time, but not for ever.
pub fn pace(signs: &Signs) -> Pace {
    let spinning = signs.busy.is_some_and(|(least, _)| least >= 99);
    let working = !spinning && signs.busy.is_some_and(|(_, most)| (20..99).contains(&most));
    let silent = signs.still_s >= COLLECTIVE_S.min(signs.patience_s);
    let meeting = signs.collective
        && signs
            .phase
            .is_none_or(|phase| phase <= Phase::LoadingWeights);
    let limit = match working {
        true => signs.patience_s * WORKING,
        false => signs.patience_s,
    };
    if signs.still_s >= limit {
        match spinning || (signs.collective && !working) {
            true => Pace::Stalled,
            false => Pace::Stuck,
        }
    } else if silent && meeting && (spinning || signs.busy.is_none()) {
        Pace::Stalled
    } else if signs.still_s >= COLLECTIVE_S / 4.0 {
        Pace::Slow
    } else {
        Pace::Moving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Signs = Signs {
        still_s: 0.0,
        patience_s: 300.0,
        phase: Some(Phase::LoadingWeights),
        collective: false,
        busy: None,
    };

    #[test]
    fn quiet_is_slow_before_it_is_stuck() {
        let after = |still_s| pace(&Signs { still_s, ..QUIET });
        assert_eq!(after(5.0), Pace::Moving);
        assert_eq!(after(120.0), Pace::Slow);
        assert_eq!(after(300.0), Pace::Stuck);
    }

    #[test]
    fn cards_that_work_get_more_time_but_not_for_ever() {
        let at = |still_s, busy| {
            pace(&Signs {
                still_s,
                busy: Some(busy),
                ..QUIET
            })
        };
        assert_eq!(at(400.0, (10, 70)), Pace::Slow);
        assert_eq!(at(900.0, (10, 70)), Pace::Stuck);
        assert_eq!(at(300.0, (0, 0)), Pace::Stuck);
    }

    #[test]
    fn cards_that_spin_while_ranks_meet_are_named_early() {
        let meeting = Signs {
            still_s: 61.0,
            collective: true,
            phase: Some(Phase::Starting),
            busy: Some((100, 100)),
            ..QUIET
        };
        assert_eq!(pace(&meeting), Pace::Stalled);
        assert_eq!(
            pace(&Signs {
                busy: Some((0, 40)),
                ..meeting
            }),
            Pace::Slow
        );
        let captured = Signs {
            phase: Some(Phase::CapturingGraphs),
            ..meeting
        };
        assert_eq!(
            pace(&captured),
            Pace::Slow,
            "capturing is a load of 100 % too"
        );
        assert_eq!(
            pace(&Signs {
                still_s: 300.0,
                ..captured
            }),
            Pace::Stalled
        );
    }
}
