//! Time as data. The pure core never asks for the time: it arrives with every message.

use serde::{Deserialize, Serialize};

/// One moment on two clocks: the calendar's for records, the steady one for durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Now {
    /// Milliseconds since the program started, never going back.
    pub mono_ms: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: i64,
}

impl Now {
    /// Milliseconds from `earlier` to here on the steady clock, 0 if `earlier` is later.
    pub fn since(self, earlier: Now) -> u64 {
        self.mono_ms.saturating_sub(earlier.mono_ms)
    }
}

/// The clock of the shell around the core.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: std::time::Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Clock {
            start: std::time::Instant::now(),
        }
    }
}

impl Clock {
    /// The present moment.
    pub fn now(&self) -> Now {
        Now {
            mono_ms: u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
            unix_ms: unix_ms(),
        }
    }
}

/// Milliseconds since 1970-01-01 UTC by the system's calendar clock.
pub fn unix_ms() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}

/// Local time of day, `12:04:31`.
pub fn hms(unix_ms: i64) -> String {
    local(unix_ms, "%H:%M:%S")
}

/// Local time of day to the minute, `12:04`.
pub fn hm(unix_ms: i64) -> String {
    local(unix_ms, "%H:%M")
}

/// Local date and time, `2026-03-01 12:04:31`.
pub fn date_time(unix_ms: i64) -> String {
    local(unix_ms, "%Y-%m-%d %H:%M:%S")
}

fn local(unix_ms: i64, format: &str) -> String {
    jiff::Timestamp::from_millisecond(unix_ms).map_or_else(
        |_| "?".to_string(),
        |at| {
            at.to_zoned(jiff::tz::TimeZone::system())
                .strftime(format)
                .to_string()
        },
    )
}
