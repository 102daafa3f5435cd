//! The judgement: outcome, cause, evidence and a value to try.

use super::super::{Kind, Phase};
use super::advice;
use super::pace::{Pace, Signs, pace};
use super::reader::Reader;
use super::seen::{End, Seen};
use super::trouble::{self, Trouble, Weight};
use super::{Cause, Diagnosis, Outcome, StartFacts};
use crate::gpu::Card;

/// Without another word, a start is given this long without progress.
const PATIENCE_S: f64 = 300.0;
/// The part of a card that must be taken for it not to be free, percent.
const OCCUPIED_PCT: u64 = 10;

/// What one card does now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    pub index: u32,
    /// Percent of the time in which some kernel ran.
    pub busy_pct: Option<u32>,
    /// Bytes.
    pub used: Option<u64>,
    pub total: Option<u64>,
}

impl From<&Card> for Load {
    fn from(card: &Card) -> Load {
        Load {
            index: card.index,
            busy_pct: card.busy_pct.fresh().copied(),
            used: card.memory.fresh().map(|memory| memory.used),
            total: card.memory.fresh().map(|memory| memory.total),
        }
    }
}

/// What is known of a start beside its log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    /// The context per request that was asked for.
    pub asked: Option<u64>,
    /// The process has ended, with this code; negative codes are signals.
    pub exit: Option<Option<i32>>,
    /// What the service manager says of the end: systemd's `oom-kill`, `timeout`, `signal` and so on.
    pub result: Option<String>,
    /// The kernel's own line about it.
    pub kernel: Option<String>,
    /// Seconds without progress, where somebody has watched.
    pub still_s: Option<f64>,
    /// Seconds without progress after which a start has failed; 300 without one.
    pub patience_s: Option<f64>,
    /// The cards, after or while it happened.
    pub cards: Vec<Load>,
}

pub(super) fn judge(reader: &Reader, known: &Known) -> Diagnosis {
    let seen = &reader.seen;
    let kind = reader.kind();
    let facts = seen.settled(kind);
    let mut found = match failure(seen, &facts, known) {
        Some(found) => found,
        None if seen.ready => ready(seen, &facts, known),
        None => waiting(reader, known),
    };
    let suggested = found
        .suggested
        .or_else(|| suggestion(&found, seen, &facts, kind));
    let mut facts = StartFacts {
        after_s: found.after_s.or(facts.after_s),
        ..facts
    };
    if found.outcome != Outcome::Ready && found.outcome != Outcome::Failed {
        facts.effective_context_per_request = None;
    }
    found.suggested = suggested;
    let advice = advice::advise(&found, reader, &facts, known, kind);
    Diagnosis {
        engine: kind,
        version: seen.version.clone(),
        outcome: found.outcome,
        phase: found.phase.or(seen.current()),
        cause: found.cause,
        evidence: found.evidence,
        advice,
        suggested_context: suggested,
        facts,
        taken: seen.taken,
    }
}

/// A judgement in the making.
#[derive(Debug)]
pub(super) struct Found {
    pub outcome: Outcome,
    pub cause: Option<Cause>,
    pub phase: Option<Phase>,
    pub evidence: Vec<String>,
    pub suggested: Option<u64>,
    pub after_s: Option<f64>,
    /// The least fraction that would do, where the engine says it.
    pub fraction: Option<f64>,
    /// The pool of a running server was full: more of it would help, not less.
    pub pool_exhausted: bool,
    /// The pool was sized, and did not fit then: less of it would help, not more.
    pub pool_too_large: bool,
}

impl Found {
    fn new(outcome: Outcome, cause: Option<Cause>) -> Found {
        Found {
            outcome,
            cause,
            phase: None,
            evidence: Vec::new(),
            suggested: None,
            after_s: None,
            fraction: None,
            pool_exhausted: false,
            pool_too_large: false,
        }
    }
}

fn failure(seen: &Seen, facts: &StartFacts, known: &Known) -> Option<Found> {
    let for_memory = known.result.as_deref() == Some("oom-kill");
    // What the rest of a server says when the kernel killed a part of it is no cause.
    let unexplained =
        |trouble: &Trouble| for_memory && matches!(trouble.kind, trouble::Kind::Words);
    let told = seen
        .trouble
        .as_ref()
        .filter(|trouble| trouble.weight() >= Weight::Words && !unexplained(trouble));
    if let Some(trouble) = told {
        return Some(by_words(trouble, seen, facts, known));
    }
    let by_manager = match known.result.as_deref() {
        Some("oom-kill") => Some(Cause::OomHost),
        Some("timeout") => Some(Cause::Killed),
        Some("core-dump") => Some(Cause::Crashed),
        _ => None,
    };
    let by_log = seen.end.as_ref().map(|(end, _)| match end {
        End::Killed | End::TimedOut => Cause::Killed,
        End::Crashed | End::Exit(_) => Cause::Crashed,
    });
    let by_exit = known.exit.map(|exit| match exit {
        Some(-9 | 137 | -15) => Cause::Killed,
        Some(126 | 127) => Cause::BadArgument,
        _ => Cause::Crashed,
    });
    let aftermath = seen.trouble.as_ref();
    let cause = by_manager
        .or(by_log)
        .or(by_exit)
        .or(aftermath.map(|_| Cause::Crashed))?;
    let mut found = Found::new(Outcome::Failed, Some(cause));
    let lines = [
        known.kernel.as_ref(),
        seen.end.as_ref().map(|(_, line)| line),
        aftermath.map(|trouble| &trouble.line),
    ];
    found.evidence = lines.into_iter().flatten().cloned().collect();
    if found.evidence.is_empty() {
        found.evidence.extend(seen.last_line.clone());
    }
    Some(found)
}

fn by_words(trouble: &Trouble, seen: &Seen, facts: &StartFacts, known: &Known) -> Found {
    let cause = match &trouble.kind {
        trouble::Kind::CardMemory => for_what(trouble, seen, facts, known),
        trouble::Kind::Known(cause) => *cause,
        trouble::Kind::Words | trouble::Kind::Aftermath => Cause::Unknown,
    };
    let mut found = Found::new(Outcome::Failed, Some(cause));
    found.phase = trouble.phase;
    found.fraction = trouble.fraction;
    found.pool_exhausted = super::memory::is_pool_exhausted(&trouble.line);
    found.pool_too_large = trouble.kind == trouble::Kind::CardMemory;
    found
        .evidence
        .push(super::super::http::shorten(&trouble.line, advice::MAX_LINE));
    found
        .evidence
        .extend(seen.end.as_ref().map(|(_, line)| line.clone()));
    found
}

/// The phase tells what the memory was for.
fn for_what(trouble: &Trouble, seen: &Seen, facts: &StartFacts, known: &Known) -> Cause {
    let others = seen.others_gib.unwrap_or(0.0);
    let share = facts.total_gib.map_or(0.0, |total| others / total * 100.0);
    let own = seen
        .own_gib
        .zip(facts.total_gib)
        .map(|(own, total)| own / total);
    // Before any weight is loaded nothing of the server's own can fill a card.
    let nothing_yet = trouble.phase == Some(Phase::Starting) && own.is_none_or(|share| share < 0.5);
    let early = trouble
        .phase
        .is_none_or(|phase| phase <= Phase::AllocatingPool);
    let by_others = early && share >= OCCUPIED_PCT as f64;
    if by_others || nothing_yet || (trouble.phase.is_none() && occupied(known).is_some()) {
        return Cause::GpuNotFree;
    }
    match trouble.phase {
        None | Some(Phase::Starting | Phase::Downloading | Phase::LoadingWeights) => {
            Cause::OomWeights
        }
        Some(Phase::AllocatingPool) => Cause::NoRoomForPool,
        Some(Phase::CapturingGraphs) => Cause::OomGraphCapture,
        Some(Phase::WarmingUp | Phase::Listening) => Cause::OomPrefill,
    }
}

/// A card that is not free although the server is gone.
pub(super) fn occupied(known: &Known) -> Option<Load> {
    let taken = |card: &&Load| {
        let (Some(used), Some(total)) = (card.used, card.total) else {
            return false;
        };
        used.saturating_mul(100) >= total.saturating_mul(OCCUPIED_PCT)
    };
    known.cards.iter().find(taken).copied()
}

/// It serves; perhaps not what was asked for.
fn ready(seen: &Seen, facts: &StartFacts, known: &Known) -> Found {
    let served = facts.effective_context_per_request;
    let less =
        |than: Option<u64>| served.filter(|served| than.is_some_and(|asked| *served < asked));
    let Some(served) = less(known.asked) else {
        let mut found = Found::new(Outcome::Ready, None);
        found.evidence.clone_from(&seen.shown);
        found.suggested = less(facts.requested_context);
        return found;
    };
    let capped = facts.model_limit == Some(served);
    let cause = match capped {
        true => Cause::ContextAboveModelLimit,
        false => Cause::KvPoolBelowOneRequest,
    };
    let mut found = Found::new(Outcome::Failed, Some(cause));
    found.suggested = Some(served);
    // What bounds it tells more than that it serves.
    found.evidence.extend(seen.shown.iter().rev().cloned());
    found
}

/// Neither ready nor failed: on its way, or not.
fn waiting(reader: &Reader, known: &Known) -> Found {
    let seen = &reader.seen;
    let of_cards = || {
        let busy: Vec<u32> = known
            .cards
            .iter()
            .filter_map(|card| card.busy_pct)
            .collect();
        busy.iter().min().copied().zip(busy.iter().max().copied())
    };
    let by_waits = (seen.waits > 1).then_some(seen.waits as f64 * 60.0);
    let by_log = reader.pulse.still_s().filter(|still| *still > 0.0);
    let still = known.still_s.or(by_log).or(by_waits);
    let busy = reader.pulse.busy.or_else(of_cards);
    let spinning = busy.is_some_and(|(least, _)| least >= 99);
    let signs = Signs {
        // Without any time, cards that spin while the ranks meet say enough.
        still_s: still.unwrap_or(if spinning && reader.collective() {
            PATIENCE_S
        } else {
            0.0
        }),
        patience_s: known.patience_s.unwrap_or(PATIENCE_S),
        phase: seen.current(),
        collective: reader.collective(),
        busy,
    };
    let cause = match pace(&signs) {
        Pace::Moving | Pace::Slow => {
            let mut found = Found::new(Outcome::Loading, None);
            found.evidence.extend(seen.last_line.clone());
            return found;
        }
        Pace::Stalled => Cause::StalledInCollectives,
        Pace::Stuck => Cause::Unknown,
    };
    let mut found = Found::new(Outcome::Stuck, Some(cause));
    found.after_s = still.map(super::super::text::rounded);
    found.evidence.extend(seen.last_line.clone());
    found
}

/// A context to try that the log names or implies.
fn suggestion(found: &Found, seen: &Seen, facts: &StartFacts, kind: Option<Kind>) -> Option<u64> {
    let line = seen
        .trouble
        .as_ref()
        .map(|trouble| trouble.line.as_str())
        .unwrap_or_default();
    match found.cause? {
        Cause::KvPoolBelowOneRequest => super::memory::largest(line).or_else(|| {
            let room = facts.available_gib? / facts.needed_gib.filter(|needed| *needed > 0.0)?;
            shrunk(facts.requested_context?, room)
        }),
        Cause::ContextAboveModelLimit => facts.model_limit,
        // llama.cpp takes the whole cache at once, in proportion to the context.
        Cause::NoRoomForPool if kind == Some(Kind::LlamaCpp) => {
            let [free] = seen.llama.free_gib.as_slice() else {
                return None;
            };
            let room = (free - seen.llama.weights_gib - 1.0)
                / facts.needed_gib.filter(|needed| *needed > 0.0)?;
            let slots = facts.slots.unwrap_or(1).max(1);
            shrunk(facts.requested_context? / slots, room)
        }
        _ => None,
    }
}

/// So much of a context, in whole blocks of 256; nothing if it is none.
fn shrunk(context: u64, share: f64) -> Option<u64> {
    if !(0.0..1.0).contains(&share) {
        return None;
    }
    let tokens = (context as f64 * share) as u64 / 256 * 256;
    (tokens > 0).then_some(tokens)
}
