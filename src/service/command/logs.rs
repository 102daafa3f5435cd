//! The lines of a log command that goes on, kept for as long as they may be asked for.

use crate::host::{Host, HostError, Lines, Streamed};
use crate::units::clean;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Lines that are kept.
const KEPT: usize = 4_096;
/// A log command that ends is started again after so long.
const AGAIN: Duration = Duration::from_secs(2);
/// How long the first lines of a new command may take.
const FIRST: Duration = Duration::from_millis(300);

/// A position is the number of lines that came before it.
#[derive(Debug, Default)]
pub struct Logs {
    lines: Option<Lines>,
    kept: VecDeque<String>,
    /// Lines that are not kept any more.
    gone: u64,
    again: Option<Instant>,
}

impl Logs {
    /// Takes what has come, starting the command where it does not run.
    pub async fn look(&mut self, host: &dyn Host, argv: &[String]) -> Result<(), HostError> {
        let now = Instant::now();
        if self.lines.is_none() && self.again.is_none_or(|again| again <= now) {
            self.again = Some(now + AGAIN);
            let mut lines = host.stream(argv).await?;
            // What it prints at once is the past.
            if let Ok(Some(first)) = tokio::time::timeout(FIRST, lines.next()).await {
                self.lines = Some(lines);
                self.take(first)?;
            } else {
                self.lines = Some(lines);
            }
        }
        while let Some(next) = self.lines.as_mut().and_then(Lines::try_next) {
            self.take(next)?;
        }
        Ok(())
    }

    fn take(&mut self, next: Streamed) -> Result<(), HostError> {
        match next {
            Streamed::Line(line) => {
                let line = clean(&line);
                if line.is_empty() {
                    return Ok(());
                }
                self.kept.push_back(line);
                if self.kept.len() > KEPT {
                    self.kept.pop_front();
                    self.gone += 1;
                }
                Ok(())
            }
            Streamed::Ended(_) => {
                self.lines = None;
                Ok(())
            }
            Streamed::Failed(error) => {
                self.lines = None;
                Err(error)
            }
        }
    }

    pub fn end(&self) -> u64 {
        self.gone + self.kept.len() as u64
    }

    pub fn since(&self, from: u64) -> (Vec<String>, u64) {
        let skip = from.saturating_sub(self.gone);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        (self.kept.iter().skip(skip).cloned().collect(), self.end())
    }
}
