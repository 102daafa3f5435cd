//! The log of a container: lines from a position on.
//!
//! A position is the time of a line in nanoseconds since 1970, so that it can be kept on disk and goes on over containers. While the same
//! reader goes on, the lines come from one command that follows the log.

use super::container::Container;
use super::tool::Tool;
use crate::host::{Lines, Streamed};
use crate::service::ServiceError;
use crate::units;
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::time::timeout;

/// Lines of the past that are worth seeing of a server that was found running.
const PAST: &str = "200";
/// How long the first lines of a new command may take.
const FIRST: Duration = Duration::from_millis(300);
/// Bytes of one line that are kept.
const LINE: usize = 8 << 10;
/// A server may write to both of its outputs; their lines come as one stream.
const TOGETHER: &str = r#"exec "$@" 2>&1"#;

/// The reader of one service's log.
#[derive(Debug, Default)]
pub struct Logs {
    following: Option<Following>,
}

#[derive(Debug)]
struct Following {
    container: String,
    /// The position from which the next lines come.
    at: u64,
    lines: Lines,
    /// The runtime that feeds it: on another one, it would be silent for ever.
    runtime: Id,
}

type Read = (Vec<String>, u64);

fn argv(tool: &Tool, container: &str, more: &[&str]) -> Vec<String> {
    ["sh", "-c", TOGETHER, "vramp"]
        .iter()
        .map(|word| word.to_string())
        .chain(tool.engine())
        .chain(["logs", "--timestamps"].map(str::to_string))
        .chain(more.iter().map(|word| word.to_string()))
        .chain([container.to_string()])
        .collect()
}

fn since(from: u64) -> String {
    format!("{}.{:09}", from / 1_000_000_000, from % 1_000_000_000)
}

async fn read(tool: &Tool, container: &str, more: &[&str]) -> Result<Vec<Line>, ServiceError> {
    let output = tool.host.run(&argv(tool, container, more)).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.code == Some(0) {
        return Ok(text.lines().filter_map(line).collect());
    }
    Err(ServiceError::Failed {
        tried: format!("read the log of the container {container}"),
        what: units::clean(text.lines().last().unwrap_or("nothing was said").trim()),
        advice: "See: docker logs".to_string(),
    })
}

impl Logs {
    /// Where the log ends now; 0 where nothing was written yet.
    pub async fn end(&mut self, tool: &Tool, container: &str) -> Result<u64, ServiceError> {
        let last = read(tool, container, &["--tail", "1"]).await?.pop();
        Ok(last.map_or(0, |line| line.at))
    }

    /// A position from which the recent past can be read.
    pub async fn past(&mut self, tool: &Tool, container: &str) -> Result<u64, ServiceError> {
        let lines = read(tool, container, &["--tail", PAST]).await?;
        Ok(lines.first().map_or(0, |line| line.at.saturating_sub(1)))
    }

    /// The lines after `from`, and the position to go on from.
    pub async fn since(
        &mut self,
        tool: &Tool,
        of: &Container,
        from: u64,
    ) -> Result<Read, ServiceError> {
        let container = of.id.as_str();
        // Nothing more is on its way then.
        let over = !of.running;
        let here = Handle::current().id();
        let goes_on = self.following.as_ref().is_some_and(|one| {
            one.container == container && one.at == from && one.runtime == here && !over
        });
        if !goes_on {
            self.following = None;
        }
        if over {
            let lines = read(tool, container, &["--since", &since(from)]).await?;
            return Ok(after(lines, from));
        }
        let mut found = Vec::new();
        if self.following.is_none() {
            let from_here = since(from);
            let argv = argv(tool, container, &["--follow", "--since", &from_here]);
            let mut lines = tool.host.stream(&argv).await?;
            // What it prints at once is there already.
            if let Ok(Some(Streamed::Line(text))) = timeout(FIRST, lines.next()).await {
                found.extend(line(&text));
            }
            self.following = Some(Following {
                container: container.to_string(),
                at: from,
                lines,
                runtime: here,
            });
        }
        let mut ended = false;
        if let Some(one) = &mut self.following {
            while let Some(next) = one.lines.try_next() {
                match next {
                    Streamed::Line(text) => found.extend(line(&text)),
                    Streamed::Ended(_) | Streamed::Failed(_) => {
                        ended = true;
                        break;
                    }
                }
            }
        }
        let (lines, next) = after(found, from);
        match &mut self.following {
            // The next call begins anew from where this one stands.
            Some(_) if ended => self.following = None,
            Some(one) => one.at = next,
            None => {}
        }
        Ok((lines, next))
    }
}

fn after(lines: Vec<Line>, from: u64) -> Read {
    let fresh: Vec<Line> = lines.into_iter().filter(|line| line.at > from).collect();
    let next = fresh.iter().map(|line| line.at).max().unwrap_or(from);
    let texts = fresh.into_iter().flat_map(|line| line.texts).collect();
    (texts, next)
}

/// One line with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    at: u64,
    /// Cleaned, without empty ones: a progress bar writes several over each other.
    texts: Vec<String>,
}

/// `2026-11-30T22:26:40.104130542Z text`.
fn line(text: &str) -> Option<Line> {
    let (stamp, text) = text.split_once(' ').unwrap_or((text, ""));
    let at: jiff::Timestamp = stamp.parse().ok()?;
    Some(Line {
        at: u64::try_from(at.as_nanosecond()).ok()?,
        texts: text
            .split('\r')
            .map(|part| {
                let kept: String = part.chars().take(LINE).collect();
                units::clean(&kept).trim_end().to_string()
            })
            .filter(|part| !part.is_empty())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_time_and_may_hold_a_progress_bar() {
        let read = line("2026-11-30T22:26:40.104130542Z 10%\r20%\u{1b}[0m").unwrap();
        assert_eq!(read.texts, ["10%", "20%"]);
        assert_eq!(since(read.at), "1796077600.104130542");
        assert_eq!(line("2026-11-30T22:26:40+01:00 x").unwrap().texts, ["x"]);
        assert_eq!(line("Error: no such container"), None);
        let (lines, next) = after(vec![read.clone()], read.at);
        assert_eq!((lines.len(), next), (0, read.at));
    }
}
