//! What else the server had to do, and where its own limit is.

use super::{Evidence, say};
use crate::bench::point::{Reason, Validity};

pub fn server(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    if let Some(foreign) = evidence.foreign {
        let text = format!("the server had {foreign} requests that are not ours");
        say(reasons, Validity::Suspect, text);
    }
    let level = u64::from(evidence.cell.concurrency);
    if let (Some(running), Some(waiting)) =
        (evidence.server.running_max, evidence.server.waiting_max)
        && evidence.samples >= 2
        && let Some(text) = plateau(level, running, waiting)
    {
        say(reasons, Validity::Valid, text);
    }
}

/// That the server works on fewer requests than are kept in flight and lets the others wait, in words.
pub fn plateau(level: u64, running: u64, waiting: u64) -> Option<String> {
    let fewer = running > 0 && waiting > 0 && running.saturating_mul(10) < level.saturating_mul(9);
    fewer.then(|| {
        format!("{level} clients, {running} running: the plateau is the server's request limit")
    })
}
