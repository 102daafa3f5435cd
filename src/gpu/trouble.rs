//! What is wrong with a card, in words.

use super::{Card, CardState, Throttle, Xid};
use crate::clock::Now;
use crate::reading::Reading;
use crate::units::mm_ss;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It fell off the bus or answers no more.
    Lost { since_unix_ms: i64 },
    /// It cannot be read for another reason.
    Unreadable(String),
    /// The newest critical error that the driver reported.
    Xid(Xid),
    /// Memory errors that could not be corrected.
    Ecc(u64),
    /// Its figures are old.
    Stale { age_ms: u64 },
    /// Something holds its clocks down.
    Slowed(Throttle),
}

impl Card {
    /// Everything that is wrong with the card, the worst first. What somebody has set is no trouble.
    pub fn troubles(&self) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        match &self.state {
            CardState::Ok => {}
            CardState::Lost { since_unix_ms } => troubles.push(Trouble::Lost {
                since_unix_ms: *since_unix_ms,
            }),
            CardState::Unknown(why) => troubles.push(Trouble::Unreadable(why.clone())),
        }
        let detail = &self.detail;
        troubles.extend(detail.xid.known().copied().flatten().map(Trouble::Xid));
        let ecc = detail.ecc.known().map(|ecc| ecc.uncorrected);
        troubles.extend(ecc.filter(|n| *n > 0).map(Trouble::Ecc));
        if let Reading::Stale { age_ms, .. } = self.memory {
            troubles.push(Trouble::Stale { age_ms });
        }
        let slowed = detail.throttle.known().into_iter().flatten();
        troubles.extend(
            slowed
                .filter(|reason| !reason.is_setting())
                .map(|reason| Trouble::Slowed(*reason)),
        );
        troubles
    }
}

impl Trouble {
    /// In a sentence's words.
    pub fn words(&self) -> String {
        match self {
            Trouble::Lost { .. } => "lost: it fell off the bus or answers no more".to_string(),
            Trouble::Unreadable(why) => why.clone(),
            Trouble::Xid(xid) => match xid.words() {
                Some(words) => format!("Xid {} ({words})", xid.code),
                None => format!("Xid {}", xid.code),
            },
            Trouble::Ecc(errors) => format!("{errors} uncorrected memory errors (ECC)"),
            Trouble::Stale { age_ms } => format!("stale: read {} s ago", age_ms / 1000),
            Trouble::Slowed(reason) => reason.words().to_string(),
        }
    }

    /// As short as a column: `LOST 00:41 ago`, `Xid 79`, `POWER-CAP`.
    pub fn word(&self, now: Now) -> String {
        match self {
            Trouble::Lost { since_unix_ms } => {
                let ago = now.unix_ms.saturating_sub(*since_unix_ms);
                format!("LOST {} ago", mm_ss(u64::try_from(ago).unwrap_or(0)))
            }
            Trouble::Unreadable(why) => why.clone(),
            Trouble::Xid(xid) => format!("Xid {}", xid.code),
            Trouble::Ecc(errors) => format!("ECC {errors}"),
            Trouble::Stale { age_ms } => format!("{} s old", age_ms / 1000),
            Trouble::Slowed(reason) => reason.word().to_string(),
        }
    }

    /// Whether work is lost by it, as against being slow or unknown.
    pub fn is_bad(&self) -> bool {
        matches!(
            self,
            Trouble::Lost { .. } | Trouble::Xid(_) | Trouble::Ecc(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Ecc;
    use crate::reading::Absent;

    #[test]
    fn the_worst_stands_first_and_a_setting_is_no_trouble() {
        let state = CardState::Lost {
            since_unix_ms: 1_000,
        };
        let why = Absent::Unsupported;
        let mut card = Card::bare(0, String::new(), "H100".into(), state, &why);
        card.detail.xid = Reading::Value(Some(Xid {
            code: 79,
            at_unix_ms: 1_000,
        }));
        card.detail.ecc = Reading::Value(Ecc {
            corrected: 9,
            uncorrected: 2,
        });
        card.detail.throttle = Reading::Value(vec![
            Throttle::PowerCap,
            Throttle::Thermal,
            Throttle::ApplicationClocks,
        ]);
        let now = Now {
            unix_ms: 42_000,
            ..Now::default()
        };
        let words: Vec<String> = card.troubles().iter().map(|t| t.word(now)).collect();
        assert_eq!(
            words,
            ["LOST 00:41 ago", "Xid 79", "ECC 2", "POWER-CAP", "THERMAL"]
        );
        assert_eq!(card.troubles().iter().filter(|t| t.is_bad()).count(), 3);
        card.state = CardState::Ok;
        card.detail = crate::gpu::Detail::without(&why);
        assert_eq!(card.troubles(), []);
    }
}
