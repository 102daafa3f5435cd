//! A reading is a value, or says why there is none. Unknown is not zero.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a reading has no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Absent {
    /// Nobody has looked yet.
    Pending,
    /// The source does not have this figure here.
    Unsupported,
    /// The source has it and will not tell us.
    Denied,
    /// The thing that was measured is gone.
    Lost,
    /// The last attempt failed; the text says how.
    Failed(String),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Pending => f.write_str("not read yet"),
            Absent::Unsupported => f.write_str("not supported"),
            Absent::Denied => f.write_str("denied"),
            Absent::Lost => f.write_str("lost"),
            Absent::Failed(why) => f.write_str(why),
        }
    }
}

/// One figure from the outside world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading<T> {
    /// Read now.
    Value(T),
    /// Read `age_ms` milliseconds ago; what came since failed.
    Stale { value: T, age_ms: u64 },
    /// No value, and why.
    Absent(Absent),
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Reading::Absent(Absent::Pending)
    }
}

impl<T> Reading<T> {
    /// No value because the source does not have it.
    pub fn unsupported() -> Self {
        Reading::Absent(Absent::Unsupported)
    }

    /// No value because the attempt failed.
    pub fn failed(why: impl Into<String>) -> Self {
        Reading::Absent(Absent::Failed(why.into()))
    }

    /// The value if it was read now; a stale one does not count.
    pub fn fresh(&self) -> Option<&T> {
        match self {
            Reading::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The newest value known, stale or not.
    pub fn known(&self) -> Option<&T> {
        match self {
            Reading::Value(value) | Reading::Stale { value, .. } => Some(value),
            Reading::Absent(_) => None,
        }
    }

    /// Why there is no fresh value.
    pub fn absent(&self) -> Option<&Absent> {
        match self {
            Reading::Absent(why) => Some(why),
            _ => None,
        }
    }

    /// The same reading of another figure.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Value(value) => Reading::Value(f(value)),
            Reading::Stale { value, age_ms } => Reading::Stale {
                value: f(value),
                age_ms,
            },
            Reading::Absent(why) => Reading::Absent(why),
        }
    }
}

impl<T> From<Option<T>> for Reading<T> {
    /// `None` becomes "not supported": the source answered and did not have it.
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Reading::unsupported, Reading::Value)
    }
}
