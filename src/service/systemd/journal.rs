//! The journal of a unit as a log: lines from a position on.
//!
//! A position is the time of an entry in microseconds, so that it can be kept on disk; the journal's own cursor for it, which tells
//! entries of the same moment apart, is remembered beside it. While the same reader goes on from where it stopped, the lines come from
//! one command that follows the journal.

use super::manager::Manager;
use crate::host::{Lines, Streamed};
use crate::service::ServiceError;
use crate::units;
use serde_json::Value;
use tokio::runtime::{Handle, Id};

/// Entries that are read at most from a position whose cursor is not known.
const BACKLOG: &str = "--lines=5000";
/// Entries of the past that are worth seeing of a server that was found running.
const PAST: &str = "--lines=200";
/// Bytes of one line that are kept.
const LINE: usize = 8 << 10;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    at_us: u64,
    cursor: String,
    /// Cleaned lines, without empty ones.
    lines: Vec<String>,
}

/// Where a reader stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stand {
    at_us: u64,
    cursor: String,
}

/// The reader of one unit's journal.
#[derive(Debug, Default)]
pub struct Journal {
    stand: Option<Stand>,
    following: Option<Following>,
}

#[derive(Debug)]
struct Following {
    lines: Lines,
    /// The runtime that feeds it: on another one, it would be silent for ever.
    runtime: Id,
}

fn arguments(manager: &Manager, more: &[&str]) -> Vec<String> {
    let unit = if manager.user {
        "--user-unit"
    } else {
        "--unit"
    };
    // A user outside the groups that may read the journal sees nothing of it, and no error.
    let words = [
        "journalctl",
        "--no-pager",
        "--quiet",
        "--all",
        "--output=json",
    ]
    .into_iter()
    .map(str::to_string)
    .chain(["--output-fields=MESSAGE".to_string()])
    .chain([format!("{unit}={}", manager.unit)])
    .chain(more.iter().map(|word| word.to_string()))
    .collect();
    manager.rights(words)
}

async fn entries(manager: &Manager, more: &[&str]) -> Result<Vec<Entry>, ServiceError> {
    let bytes = manager.run(arguments(manager, more), b"").await?;
    Ok(String::from_utf8_lossy(&bytes)
        .lines()
        .filter_map(entry)
        .collect())
}

impl Journal {
    /// Where the journal ends now.
    pub async fn end(&mut self, manager: &Manager) -> Result<u64, ServiceError> {
        let last = entries(manager, &["--lines=1"]).await?.pop();
        Ok(self.stand_at(last))
    }

    /// A position from which the recent past can be read.
    pub async fn past(&mut self, manager: &Manager) -> Result<u64, ServiceError> {
        let first = entries(manager, &[PAST]).await?.into_iter().next();
        Ok(first.map_or(0, |entry| entry.at_us.saturating_sub(1)))
    }

    fn stand_at(&mut self, entry: Option<Entry>) -> u64 {
        self.following = None;
        self.stand = entry.map(|entry| Stand {
            at_us: entry.at_us,
            cursor: entry.cursor,
        });
        self.stand.as_ref().map_or(0, |stand| stand.at_us)
    }

    /// The lines after `from`, and the position to go on from. `over`: the unit does not run, so that nothing more is on its way.
    pub async fn since(
        &mut self,
        manager: &Manager,
        from: u64,
        over: bool,
    ) -> Result<(Vec<String>, u64), ServiceError> {
        let stand = self.stand.clone().filter(|stand| stand.at_us == from);
        let here = Handle::current().id();
        let goes_on = stand.is_some();
        if !goes_on || self.following.as_ref().is_some_and(|f| f.runtime != here) {
            self.following = None;
        }
        let from_here = match &stand {
            Some(stand) => format!("--after-cursor={}", stand.cursor),
            None => format!("--since=@{}.{:06}", from / 1_000_000, from % 1_000_000),
        };
        let found = match &mut self.following {
            Some(following) if !over => drain(following),
            Some(_) | None => {
                self.following = None;
                let mut more = vec![from_here.as_str()];
                if stand.is_none() {
                    more.push(BACKLOG);
                }
                let found = entries(manager, &more).await?;
                if !over {
                    self.follow(manager, found.last(), &from_here).await?;
                }
                Ok(found)
            }
        };
        let found = found.unwrap_or_else(|()| {
            // The command ended: the next call begins anew from where this one stands.
            self.following = None;
            Vec::new()
        });
        let fresh: Vec<Entry> = found
            .into_iter()
            .filter(|entry| stand.is_some() || entry.at_us > from)
            .collect();
        if let Some(last) = fresh.last() {
            self.stand = Some(Stand {
                at_us: last.at_us,
                cursor: last.cursor.clone(),
            });
        }
        let next = fresh.last().map_or(from, |entry| entry.at_us);
        Ok((fresh.into_iter().flat_map(|e| e.lines).collect(), next))
    }

    /// Follows the journal from behind `last`, else from where the reader stands.
    async fn follow(
        &mut self,
        manager: &Manager,
        last: Option<&Entry>,
        from_here: &str,
    ) -> Result<(), ServiceError> {
        let from = match last {
            Some(entry) => format!("--after-cursor={}", entry.cursor),
            None => from_here.to_string(),
        };
        let argv = arguments(manager, &["--follow", "--no-tail", &from]);
        self.following = Some(Following {
            lines: manager.host.stream(&argv).await?,
            runtime: Handle::current().id(),
        });
        Ok(())
    }
}

/// What came since the last look; `Err` once the command has ended.
fn drain(following: &mut Following) -> Result<Vec<Entry>, ()> {
    let mut found = Vec::new();
    while let Some(streamed) = following.lines.try_next() {
        match streamed {
            Streamed::Line(line) => found.extend(entry(&line)),
            Streamed::Ended(_) | Streamed::Failed(_) if found.is_empty() => return Err(()),
            Streamed::Ended(_) | Streamed::Failed(_) => break,
        }
    }
    Ok(found)
}

/// Reads one entry. The message is text, or its bytes where they are no UTF-8.
fn entry(line: &str) -> Option<Entry> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let message = match value.get("MESSAGE") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(bytes)) => {
            let byte = |value: &Value| value.as_u64().and_then(|n| u8::try_from(n).ok());
            let bytes: Vec<u8> = bytes.iter().filter_map(byte).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => String::new(),
    };
    Some(Entry {
        at_us: text("__REALTIME_TIMESTAMP")?.parse().ok()?,
        cursor: text("__CURSOR")?.to_string(),
        lines: message
            .split(['\n', '\r'])
            .map(|line| {
                let kept: String = line.chars().take(LINE).collect();
                units::clean(&kept).trim_end().to_string()
            })
            .filter(|line| !line.is_empty())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_text_or_bytes_and_may_hold_a_progress_bar() {
        let read = |message: &str| {
            entry(&format!(
                r#"{{"__CURSOR":"s=1;i=2","__REALTIME_TIMESTAMP":"1796073481758225","MESSAGE":{message}}}"#
            ))
            .unwrap()
            .lines
        };
        assert_eq!(read(r#""hi there""#), ["hi there"]);
        assert_eq!(read(r#""\u001b[31mred\u001b[0m""#), ["red"]);
        assert_eq!(
            read("[49,48,37,13,50,48,37,255,10]"),
            ["10%", "20%\u{fffd}"]
        );
        assert_eq!(read("null"), [""; 0]);
        assert_eq!(entry("-- No entries --"), None);
        assert_eq!(entry("{}"), None);
    }
}
