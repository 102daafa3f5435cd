//! What a snapshot is worth after a while.

use super::{Card, CardState, Snapshot};
use crate::clock::Now;
use crate::reading::Reading;
use std::time::Duration;

/// A reading older than this is stale, milliseconds; later where it is only taken every few seconds.
const STALE_MS: u64 = 3000;

impl Snapshot {
    /// Whether it is too old to be shown as it is, when a new one is due every `period`.
    pub fn is_old(&self, now: Now, period: Duration) -> bool {
        let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        now.since(self.at) > STALE_MS.max(period_ms.saturating_mul(2))
    }

    /// The same snapshot as it must be shown now, when a new one is due every `period`. Once it is too old, its values are stale and
    /// its cards say that the source does not answer: a call into the driver can hang.
    pub fn aged(&self, now: Now, period: Duration) -> Snapshot {
        if !self.is_old(now, period) {
            return self.clone();
        }
        let age_ms = now.since(self.at);
        let silence = format!(
            "{} has not answered for {} s",
            if self.source.is_empty() {
                "the GPU driver"
            } else {
                &self.source
            },
            age_ms / 1000
        );
        let mut aged = self.clone();
        for card in &mut aged.cards {
            age(card, age_ms);
            if card.state == CardState::Ok {
                card.state = CardState::Unknown(silence.clone());
            }
        }
        if aged.cards.is_empty() {
            aged.fault.get_or_insert(silence);
        }
        aged
    }
}

/// Makes every figure of a card older.
pub(super) fn age(card: &mut Card, age_ms: u64) {
    fn old<T>(reading: &mut Reading<T>, more_ms: u64) {
        *reading = match std::mem::take(reading) {
            Reading::Value(value) => Reading::Stale {
                value,
                age_ms: more_ms,
            },
            Reading::Stale { value, age_ms } => Reading::Stale {
                value,
                age_ms: age_ms.saturating_add(more_ms),
            },
            absent => absent,
        };
    }
    old(&mut card.memory, age_ms);
    old(&mut card.busy_pct, age_ms);
    old(&mut card.temp_c, age_ms);
    old(&mut card.power_mw, age_ms);
    old(&mut card.power_limit_mw, age_ms);
    old(&mut card.processes, age_ms);
    let detail = &mut card.detail;
    old(&mut detail.memory_busy_pct, age_ms);
    old(&mut detail.sm_mhz, age_ms);
    old(&mut detail.memory_mhz, age_ms);
    old(&mut detail.throttle, age_ms);
    old(&mut detail.fan_pct, age_ms);
    old(&mut detail.pcie, age_ms);
    old(&mut detail.nvlink, age_ms);
    old(&mut detail.ecc, age_ms);
    old(&mut detail.xid, age_ms);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Memory;

    fn at(mono_ms: u64) -> Now {
        Now {
            mono_ms,
            unix_ms: 0,
        }
    }

    fn snapshot() -> Snapshot {
        Snapshot {
            at: at(1000),
            source: "NVML 580".into(),
            cards: vec![Card {
                index: 0,
                uuid: String::new(),
                name: "RTX A6000".into(),
                state: CardState::Ok,
                memory: Reading::Value(Memory {
                    total: 8,
                    used: 6,
                    free: 2,
                    reserved: 0,
                }),
                busy_pct: Reading::unsupported(),
                temp_c: Reading::Stale {
                    value: 60,
                    age_ms: 500,
                },
                power_mw: Reading::default(),
                power_limit_mw: Reading::default(),
                processes: Reading::default(),
                detail: crate::gpu::Detail::default(),
            }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn fresh_stays_fresh_and_old_becomes_stale() {
        let second = Duration::from_secs(1);
        let fresh = snapshot();
        assert_eq!(fresh.aged(at(4000), second), fresh);
        let old = fresh.aged(at(8400), second);
        let card = &old.cards[0];
        assert_eq!(card.memory.fresh(), None);
        assert_eq!(card.memory.known().map(|memory| memory.used), Some(6));
        assert!(matches!(card.temp_c, Reading::Stale { age_ms: 7900, .. }));
        assert_eq!(card.busy_pct, Reading::unsupported());
        assert_eq!(
            card.state,
            CardState::Unknown("NVML 580 has not answered for 7 s".into())
        );
        assert_eq!(old.tightest(&[]), None, "an old figure never decides");
        // Read every five seconds, eight seconds are not yet silence.
        assert_eq!(fresh.aged(at(8400), Duration::from_secs(5)), fresh);
    }

    #[test]
    fn a_first_reading_that_never_comes_is_said() {
        let aged = Snapshot::default().aged(at(5000), Duration::from_secs(1));
        assert_eq!(
            aged.fault.as_deref(),
            Some("the GPU driver has not answered for 5 s")
        );
    }
}
