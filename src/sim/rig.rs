//! The rig directory: what a simulated server leaves there for those who read its cards.

use super::memory::Card;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How long freeing the memory takes once it begins.
const RELEASE_MS: i64 = 1500;

/// The form of the file; one with another number is not read.
pub const FORMAT: u32 = 1;

/// `cards.json`: the cards as the server last saw them, and who that was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RigFile {
    pub format: u32,
    pub simulated: bool,
    pub pid: u32,
    /// Start time of the process in clock ticks since boot.
    pub start_ticks: u64,
    /// When this was written: the last sign of life.
    pub written_unix_ms: i64,
    /// How long the cards keep their memory after the process has ended.
    pub hold_ms: u64,
    pub cards: Vec<Card>,
}

/// Where the file lies in a rig directory.
pub fn path(dir: &Path) -> PathBuf {
    dir.join("cards.json")
}

impl RigFile {
    /// Writes the file whole or not at all.
    pub fn write(&self, dir: &Path) -> std::io::Result<()> {
        let file = path(dir);
        let new = dir.join(format!(".cards.json.{}", self.pid));
        let text = serde_json::to_vec(self)?;
        std::fs::File::create(&new)?.write_all(&text)?;
        std::fs::rename(&new, &file)
    }

    /// Reads the file; `None` if there is none.
    pub fn read(dir: &Path) -> std::io::Result<Option<Self>> {
        let bytes = match std::fs::read(path(dir)) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let file: RigFile = serde_json::from_slice(&bytes)?;
        if file.format != FORMAT {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                format!(
                    "it has form {}, this version reads form {FORMAT}",
                    file.format
                ),
            ));
        }
        Ok(Some(file))
    }

    /// The cards at a time of day. While the writer lives they are as it says; after its end they keep their memory for the stated
    /// time and then let go within a moment.
    pub fn cards_at(&self, unix_ms: i64) -> Vec<Card> {
        if self.writer_lives() {
            return self.cards.clone();
        }
        let hold = i64::try_from(self.hold_ms).unwrap_or(i64::MAX);
        let since_release = unix_ms
            .saturating_sub(self.written_unix_ms)
            .saturating_sub(hold);
        let kept = 1.0 - (since_release as f64 / RELEASE_MS as f64).clamp(0.0, 1.0);
        self.cards
            .iter()
            .map(|card| {
                let idle = Card::idle(card.index);
                let above = card.used.saturating_sub(idle.used);
                Card {
                    used: idle.used + (above as f64 * kept) as u64,
                    temp_c: if kept > 0.0 { card.temp_c } else { idle.temp_c },
                    total: card.total,
                    ..idle
                }
            })
            .collect()
    }

    /// Whether the process that wrote it still runs: same number, same start time, and not only waiting to be reaped.
    pub fn writer_lives(&self) -> bool {
        process(self.pid)
            .is_some_and(|(state, ticks)| ticks == self.start_ticks && !matches!(state, 'Z' | 'X'))
    }
}

/// State letter and start time of a process, from `/proc/PID/stat`; `None` if there is none.
pub fn process(pid: u32) -> Option<(char, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; the fields begin behind the last bracket, with the third.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let ticks = fields.nth(18)?.parse().ok()?;
    Some((state, ticks))
}
