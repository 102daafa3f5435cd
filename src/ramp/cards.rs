//! What the cards hold without the server, and whether they have let go of it.

use crate::engine::start::Load;
use crate::gpu::{Card, GpuProcess, Snapshot};
use crate::reading::{Absent, Reading};
use serde::{Deserialize, Serialize};

/// A card is free of the server within this many bytes of its level, or 2 % of its memory where that is more.
const TOLERANCE: u64 = 512 << 20;
/// A card whose level is not known has settled when it has not fallen by more than [`FALL`] for so long.
const SETTLES_MS: u64 = 3_000;
const FALL: u64 = 64 << 20;
/// Memory that a card must gain for a start to have got on.
const GROWTH: u64 = 16 << 20;

/// The memory of one card without the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Index of the card.
    pub card: u32,
    /// Bytes, or why they cannot be told.
    pub bytes: Reading<u64>,
}

/// A card that still holds what it should not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub card: u32,
    /// Bytes above the level; `None` while the card cannot be read.
    pub above: Option<u64>,
    pub holders: Vec<GpuProcess>,
}

/// The level of each of the `wanted` cards: used now, less what the processes of the server (`pids`) hold. Without any, what is
/// used now. Where none is wanted by name, those on which the server is seen count, and those that list no processes, so that nobody
/// waits for a neighbour's card; where it is seen on none, all do.
///
/// Where the driver does not list processes or their bytes, or no listed process is the server's although something holds memory
/// (a container sees other numbers), the level cannot be told and says so.
pub fn levels(snapshot: &Snapshot, wanted: &[u32], pids: &[u32]) -> Vec<Level> {
    let is_ours = |process: &&GpuProcess| pids.contains(&process.pid);
    let on_card = |card: &Card| {
        let listed = card.processes.fresh();
        listed.is_some_and(|listed| listed.iter().any(|process| pids.contains(&process.pid)))
    };
    let seen_anywhere = snapshot.chosen(wanted).any(on_card);
    let may_hold: Vec<u32> = snapshot
        .chosen(wanted)
        .filter(|card| !seen_anywhere || on_card(card) || card.processes.fresh().is_none())
        .map(|card| card.index)
        .collect();
    let wanted = if wanted.is_empty() { &may_hold } else { wanted };
    let level = |card: &Card| -> Reading<u64> {
        let used = match &card.memory {
            Reading::Value(memory) => memory.used,
            Reading::Stale { .. } => return Reading::failed("its memory is not read any more"),
            Reading::Absent(why) => return Reading::Absent(why.clone()),
        };
        if pids.is_empty() {
            return Reading::Value(used);
        }
        let Some(listed) = card.processes.fresh() else {
            return Reading::failed(format!(
                "its processes are {}",
                card.processes.absent().unwrap_or(&Absent::Lost)
            ));
        };
        if !seen_anywhere && used > tolerance(card) {
            return Reading::failed("no process listed on it is known as the server's");
        }
        let held: Option<u64> = listed
            .iter()
            .filter(is_ours)
            .map(|process| process.used.fresh().copied())
            .sum();
        match held {
            Some(held) => Reading::Value(used.saturating_sub(held)),
            None => Reading::failed("the driver does not say how much the server holds"),
        }
    };
    snapshot
        .chosen(wanted)
        .map(|card| Level {
            card: card.index,
            bytes: level(card),
        })
        .collect()
}

/// Watches cards let go.
#[derive(Debug)]
pub struct Release {
    levels: Vec<Level>,
    /// Of cards without a level: the lowest memory seen, and when it last fell.
    lows: Vec<(u32, u64, u64)>,
}

impl Release {
    pub fn new(levels: Vec<Level>) -> Release {
        Release {
            levels,
            lows: Vec::new(),
        }
    }

    /// The cards that do not count as released in this reading, which must be younger than the stop.
    pub fn held(&mut self, snapshot: &Snapshot) -> Vec<Held> {
        let lows = &mut self.lows;
        self.levels
            .iter()
            .filter_map(|level| {
                let card = snapshot.cards.iter().find(|card| card.index == level.card);
                let used = card.and_then(|card| card.memory.fresh());
                let above = match (card, used, level.bytes.known()) {
                    (Some(card), Some(memory), Some(bytes)) => {
                        let above = memory.used.saturating_sub(*bytes);
                        if above <= tolerance(card) {
                            return None;
                        }
                        Some(above)
                    }
                    (Some(_), Some(memory), None) => {
                        if settled(lows, level.card, memory.used, snapshot.at.mono_ms) {
                            return None;
                        }
                        None
                    }
                    // A level that was never known, of a card that cannot be read: there is nothing to wait for.
                    (_, _, None) => return None,
                    (_, _, Some(_)) => None,
                };
                let holders = card.and_then(|card| card.processes.known().cloned());
                Some(Held {
                    card: level.card,
                    above,
                    holders: holders.unwrap_or_default(),
                })
            })
            .collect()
    }
}

fn settled(lows: &mut Vec<(u32, u64, u64)>, card: u32, used: u64, at_ms: u64) -> bool {
    let Some((_, low, since)) = lows.iter_mut().find(|(index, _, _)| *index == card) else {
        lows.push((card, used, at_ms));
        return false;
    };
    if used + FALL < *low {
        (*low, *since) = (used, at_ms);
    }
    at_ms.saturating_sub(*since) >= SETTLES_MS
}

fn tolerance(card: &Card) -> u64 {
    let total = card.memory.known().map_or(0, |memory| memory.total);
    (total / 50).max(TOLERANCE)
}

/// Whether a card holds clearly more than ever since `high`, which remembers it.
pub fn grown(high: &mut Snapshot, now: &Snapshot) -> bool {
    let used = |shot: &Snapshot, index: u32| {
        let card = shot.cards.iter().find(|card| card.index == index)?;
        card.memory.fresh().map(|memory| memory.used)
    };
    let more = now.cards.iter().any(|card| {
        let before = used(high, card.index).unwrap_or(0);
        used(now, card.index).is_some_and(|used| used >= before + GROWTH)
    });
    if more {
        *high = now.clone();
    }
    more
}

/// What the `wanted` cards do now, for the judgement of a start.
pub fn loads(snapshot: &Snapshot, wanted: &[u32]) -> Vec<Load> {
    snapshot.chosen(wanted).map(Load::from).collect()
}

#[cfg(test)]
#[path = "cards_tests.rs"]
mod tests;
