//! AMD cards by what the kernel's driver says of them in `/sys`, on any host: no library and no tool of AMD's is needed.

mod cards;

use super::blocking::Blocking;
use super::{Card, CardState, Snapshot, Source};
use crate::clock::Now;
use crate::host::{Host, HostError, Output};
use crate::reading::Absent;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// One command reads all files: on another host each would cost a way there and back.
const SCRIPT: &str = include_str!("read.sh");
/// How long that may take; a connection may have to be made.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where there is no card, between two attempts: first and longest, milliseconds.
const RETRY_MS: (u64, u64) = (2_000, 60_000);

/// The AMD cards of a host.
pub struct Sysfs {
    host: Arc<dyn Host>,
    sys: String,
    proc: String,
    blocking: Blocking,
    cards: Vec<Card>,
    fault: Option<String>,
    retry_at_ms: u64,
    retry_after_ms: u64,
}

impl Sysfs {
    /// Nothing is read before the first reading.
    pub fn new(host: Arc<dyn Host>) -> Sysfs {
        Sysfs::below(host, "/sys", "/proc")
    }

    /// The same of a copy of `/sys` and `/proc` elsewhere.
    pub fn below(host: Arc<dyn Host>, sys: &str, proc: &str) -> Sysfs {
        Sysfs {
            host,
            sys: sys.to_string(),
            proc: proc.to_string(),
            blocking: Blocking::default(),
            cards: Vec::new(),
            fault: None,
            retry_at_ms: 0,
            retry_after_ms: RETRY_MS.0,
        }
    }

    fn text(&mut self) -> Result<String, String> {
        let words = ["sh", "-c", SCRIPT, "vramp", &self.sys, &self.proc];
        let argv = words.map(str::to_string);
        let host = Arc::clone(&self.host);
        let run = async move { timeout(PATIENCE, host.run(&argv)).await };
        match self.blocking.run(run)? {
            Err(_) => Err(format!("nothing was read within {} s", PATIENCE.as_secs())),
            Ok(Err(error)) => Err(HostError::to_string(&error)),
            Ok(Ok(Output {
                code: Some(0),
                stdout,
                ..
            })) => Ok(String::from_utf8_lossy(&stdout).into_owned()),
            Ok(Ok(output)) => Err(format!(
                "reading {} failed: {}",
                self.sys,
                crate::units::clean(String::from_utf8_lossy(&output.stderr).trim())
            )),
        }
    }

    fn fail(&mut self, at: Now, fault: String) {
        self.retry_at_ms = at.mono_ms.saturating_add(self.retry_after_ms);
        self.retry_after_ms = (self.retry_after_ms * 2).min(RETRY_MS.1);
        let why = Absent::Failed(fault.clone());
        for card in &mut self.cards {
            *card = card.without_figures(CardState::Unknown(fault.clone()), &why);
        }
        self.fault = Some(fault);
    }

    /// A card that is listed no more is lost, not gone.
    fn take(&mut self, mut seen: Vec<Card>, at: Now) {
        for known in &self.cards {
            if seen.iter().any(|card| card.index == known.index) {
                continue;
            }
            let state = match &known.state {
                lost @ CardState::Lost { .. } => lost.clone(),
                _ => CardState::Lost {
                    since_unix_ms: at.unix_ms,
                },
            };
            seen.push(known.without_figures(state, &Absent::Lost));
        }
        seen.sort_by_key(|card| card.index);
        self.cards = seen;
        self.fault = None;
        self.retry_after_ms = RETRY_MS.0;
    }
}

impl Source for Sysfs {
    fn read(&mut self, at: Now) -> Snapshot {
        if at.mono_ms >= self.retry_at_ms {
            match self.text() {
                Ok(text) => {
                    let seen = cards::cards(&text);
                    if seen.is_empty() && self.cards.is_empty() {
                        self.fail(at, format!("no AMD card in {}", self.sys));
                    } else {
                        self.take(seen, at);
                    }
                }
                Err(why) => self.fail(at, why),
            }
        }
        Snapshot {
            at,
            cards: self.cards.clone(),
            source: format!("amdgpu on {}", self.host.name()),
            fault: self.fault.clone(),
            simulated: false,
        }
    }
}

#[cfg(test)]
mod tests;
