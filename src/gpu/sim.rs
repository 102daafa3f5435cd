//! The cards of the simulated rig, read from its directory.

use super::{Card, CardState, GpuProcess, Memory, Snapshot, Source};
use crate::clock::Now;
use crate::reading::Reading;
use crate::sim::memory::{self, idle_cards};
use crate::sim::rig::RigFile;
use std::path::PathBuf;

/// Reads `cards.json` of a rig directory. While the server that wrote it lives, its cards are as it says; after its end they keep
/// their memory for the time that the file states and then let go within a moment and a half. Without a file they are idle.
#[derive(Debug)]
pub struct SimSource {
    dir: PathBuf,
    cards: u32,
}

impl SimSource {
    /// Two cards until a server says otherwise.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        SimSource {
            dir: dir.into(),
            cards: 2,
        }
    }

    /// As many idle cards until a server says otherwise.
    pub fn with_cards(mut self, cards: u32) -> Self {
        self.cards = cards;
        self
    }
}

impl Source for SimSource {
    fn read(&mut self, at: Now) -> Snapshot {
        let (cards, fault) = match RigFile::read(&self.dir) {
            Ok(Some(file)) => (cards_of(&file, at), None),
            Ok(None) => (
                idle_cards(self.cards)
                    .iter()
                    .map(|card| show(card, None))
                    .collect(),
                None,
            ),
            Err(error) => (
                Vec::new(),
                Some(format!(
                    "cannot read the simulated cards in {}: {error}",
                    self.dir.display()
                )),
            ),
        };
        let none = cards.is_empty() && fault.is_none();
        Snapshot {
            at,
            cards,
            source: "simulated".to_string(),
            fault: fault.or_else(|| none.then(|| "the simulated rig has no cards".to_string())),
            simulated: true,
        }
    }
}

fn cards_of(file: &RigFile, at: Now) -> Vec<Card> {
    // Nobody is listed while the driver cleans up, as with a real card.
    let holder = file.writer_lives().then_some(file.pid);
    file.cards_at(at.unix_ms)
        .iter()
        .map(|card| show(card, holder))
        .collect()
}

/// A card as any other source shows it. `pid` is the server that holds what is above idle.
fn show(card: &memory::Card, pid: Option<u32>) -> Card {
    let held = card.used.saturating_sub(memory::IDLE);
    let processes = pid.filter(|_| held > 0).map(|pid| GpuProcess {
        pid,
        name: Some("vramp sim".to_string()),
        used: Reading::Value(held),
    });
    Card {
        index: card.index,
        uuid: card.uuid.clone(),
        name: card.name.clone(),
        state: CardState::Ok,
        memory: Reading::Value(Memory {
            total: card.total,
            used: card.used,
            free: card.total.saturating_sub(card.used),
            reserved: 0,
        }),
        busy_pct: Reading::Value(card.busy_pct),
        temp_c: Reading::Value(card.temp_c),
        power_mw: Reading::Value(card.power_mw),
        power_limit_mw: Reading::Value(card.power_limit_mw),
        processes: Reading::Value(processes.into_iter().collect()),
        detail: crate::gpu::Detail::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::memory::{Cards, Stage};
    use crate::sim::rig::{FORMAT, path, process};

    const WRITTEN: i64 = 1_000_000;

    fn file(pid: u32, start_ticks: u64, count: u32) -> RigFile {
        RigFile {
            format: FORMAT,
            simulated: true,
            pid,
            start_ticks,
            written_unix_ms: WRITTEN,
            hold_ms: 1000,
            cards: Cards::new(count, 32_768, 1)
                .step(0.2, Stage::Serving, 0.9)
                .to_vec(),
        }
    }

    fn at(after_ms: i64) -> Now {
        Now {
            mono_ms: 0,
            unix_ms: WRITTEN + after_ms,
        }
    }

    fn used(snapshot: &Snapshot) -> u64 {
        snapshot.cards[0].memory.fresh().expect("memory").used
    }

    #[test]
    fn any_number_of_cards() {
        for count in [0, 1, 2, 8, 16] {
            let dir = tempfile::tempdir().expect("dir");
            let idle = SimSource::new(dir.path()).with_cards(count).read(at(0));
            assert_eq!(idle.cards.len(), count as usize);
            assert_eq!(idle.fault.is_some(), count == 0);
            let me = std::process::id();
            let (_, ticks) = process(me).expect("self");
            file(me, ticks, count).write(dir.path()).expect("written");
            let busy = SimSource::new(dir.path()).read(at(0));
            assert_eq!(busy.cards.len(), count as usize);
            assert!(busy.simulated);
            for card in &busy.cards {
                let processes = card.processes.fresh().expect("listed");
                assert_eq!(processes[0].pid, me);
            }
        }
    }

    #[test]
    fn memory_is_held_and_then_let_go_after_the_end() {
        let dir = tempfile::tempdir().expect("dir");
        let mut source = SimSource::new(dir.path());
        let idle = used(&source.read(at(0)));
        // The number is ours, the start time is not: the process that wrote this is gone.
        file(std::process::id(), 1, 2)
            .write(dir.path())
            .expect("written");
        let held = source.read(at(900));
        assert!(used(&held) > 40 << 30);
        assert!(held.cards[0].processes.fresh().expect("known").is_empty());
        let half = used(&source.read(at(1750)));
        assert!((15 << 30..25 << 30).contains(&half), "{half}");
        assert_eq!(used(&source.read(at(2500))), idle);
        assert_eq!(used(&source.read(at(1 << 40))), idle);
    }

    #[test]
    fn a_broken_file_is_a_stated_fault() {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::write(path(dir.path()), "{\"format\":").expect("written");
        let snapshot = SimSource::new(dir.path()).read(at(0));
        assert!(snapshot.cards.is_empty());
        assert!(snapshot.fault.expect("fault").contains("cannot read"));
        let mut other = file(1, 1, 1);
        other.format = 9;
        other.write(dir.path()).expect("written");
        let fault = SimSource::new(dir.path()).read(at(0)).fault.expect("fault");
        assert!(fault.contains("form 9"), "{fault}");
    }
}
