//! The deadlines that a key gives a trial.

use crate::units::mm_ss;

/// Seconds, ascending.
const OFFERED: [u64; 2] = [10 * 60, 30 * 60];

/// What the key brings after `now`: the next longer one, then none. `own`: that of the profile, which is offered too.
pub fn next(now: Option<u64>, own: Option<u64>) -> Option<u64> {
    let longer = |seconds: &u64| now.is_none_or(|now| *seconds > now);
    OFFERED.into_iter().chain(own).filter(longer).min()
}

/// As the keys and the screen name it.
pub fn words(seconds: Option<u64>) -> String {
    match seconds {
        None => "no deadline".to_string(),
        Some(seconds) if seconds % 60 == 0 => format!("deadline {} min", seconds / 60),
        Some(seconds) => format!("deadline {}", mm_ss(seconds.saturating_mul(1000))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_goes_to_the_next_longer_one_and_then_to_none() {
        let walk = |own| {
            let mut seen = vec![next(None, own)];
            while let Some(Some(now)) = seen.last().copied() {
                seen.push(next(Some(now), own));
            }
            seen
        };
        assert_eq!(walk(None), [Some(600), Some(1800), None]);
        assert_eq!(walk(Some(90)), [Some(90), Some(600), Some(1800), None]);
        assert_eq!(walk(Some(7200)), [Some(600), Some(1800), Some(7200), None]);
        assert_eq!(walk(Some(600)), [Some(600), Some(1800), None]);
        assert_eq!(words(None), "no deadline");
        assert_eq!(words(Some(1800)), "deadline 30 min");
        assert_eq!(words(Some(90)), "deadline 01:30");
    }
}
