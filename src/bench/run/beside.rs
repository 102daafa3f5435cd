//! What the server and the cards did while a cell ran, from readings that others take.

use crate::bench::point::{CardUse, ServerSide, Summary};
use crate::engine::{Load, Spent};
use crate::gpu::Snapshot;
use std::cmp::Ordering;
use std::collections::VecDeque;
use tokio::sync::watch;

/// How long a server's gauge may lag behind its requests, in nanoseconds.
const LAG_NS: u64 = 3_000_000_000;
/// Decode steps after which a server's gauges have been renewed for sure: SGLang does it with each prefill and every 40 decode steps.
const REFRESHED: f64 = 80.0;

/// Keeps the newest in-flight counts, over all cells.
#[derive(Debug, Default)]
pub struct OwnLoad {
    recent: VecDeque<(u64, u32)>,
}

impl OwnLoad {
    /// Notes the count now and gives the largest of the last seconds.
    pub fn note(&mut self, at_ns: u64, in_flight: u32) -> u32 {
        self.recent.push_back((at_ns, in_flight));
        while let Some((then, _)) = self.recent.front() {
            if at_ns.saturating_sub(*then) <= LAG_NS {
                break;
            }
            self.recent.pop_front();
        }
        self.recent.iter().map(|(_, n)| *n).max().unwrap_or(0)
    }
}

/// Samples of one cell.
#[derive(Debug, Default)]
pub struct Beside {
    pub server: ServerSide,
    /// The server's counters before the cell, and the newest.
    before: Counters,
    now: Counters,
    /// Server samples that were taken.
    pub samples: u32,
    /// The most requests of ours in flight at a sample, and at how many samples.
    pub fullest: (u32, u32),
    foreign_in_a_row: u32,
    /// Requests on the server that are not ours, seen twice or more in a row.
    pub foreign: Option<u64>,
    cards: Vec<CardSum>,
}

/// Counters of the server that only grow, as far as it has them.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    preemptions: Option<u64>,
    cache: Option<(u64, u64)>,
    queued: Option<Spent>,
    prefilled: Option<Spent>,
}

impl Counters {
    fn of(load: &Load) -> Counters {
        let (queries, hits) = (&load.cache_queries_total, &load.cache_hits_total);
        Counters {
            preemptions: load.preemptions_total.fresh().copied(),
            cache: queries.fresh().copied().zip(hits.fresh().copied()),
            queued: load.queued.fresh().copied(),
            prefilled: load.prefilled.fresh().copied(),
        }
    }
}

#[derive(Debug)]
struct CardSum {
    index: u32,
    used_peak: u64,
    free_min: u64,
    busy: Mean,
    watts: Mean,
}

#[derive(Debug, Default)]
struct Mean {
    sum: f64,
    n: u32,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.n += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / f64::from(self.n))
    }
}

impl Beside {
    /// From here on; `load` is what the server said last.
    pub fn since(load: &Load) -> Beside {
        let before = Counters::of(load);
        Beside {
            before,
            now: before,
            ..Beside::default()
        }
    }

    /// Mean time in the server's queue, over the requests of the cell.
    pub fn queue_ms(&self) -> Summary {
        mean_ms(self.before.queued, self.now.queued)
    }

    /// Whether the server, which counts the requests that left its queue, has not counted `done` of them yet.
    pub fn counts_fewer_than(&self, done: u32) -> bool {
        self.now.queued.is_some() && self.queue_ms().n < done.into()
    }

    /// Mean time of prefill.
    pub fn prefill_ms(&self) -> Summary {
        mean_ms(self.before.prefilled, self.now.prefilled)
    }

    /// What the server said of its own work while it made `steps` decode steps. Gauges that saw none of it were not refreshed in
    /// time and say nothing; nor do those that saw a part in fewer steps than may lie between two refreshes.
    pub fn server_side(&self, steps: f64) -> ServerSide {
        let ours = u64::from(self.fullest.0);
        let silent = match self.server.in_server_max {
            Some(0) => true,
            Some(seen) => seen < ours && steps < REFRESHED,
            None => false,
        };
        if !silent {
            return self.server;
        }
        ServerSide {
            running_max: None,
            waiting_max: None,
            in_server_max: None,
            ..self.server
        }
    }

    /// Prompt tokens that the server looked for in its cache, and those that it found.
    pub fn cache(&self) -> Option<(u64, u64)> {
        let (before, now) = (self.before.cache?, self.now.cache?);
        Some((now.0.checked_sub(before.0)?, now.1.checked_sub(before.1)?))
    }

    /// Takes the newest readings if they are new. `ours`: requests of ours that the server may be counting.
    pub fn look(
        &mut self,
        load: &mut watch::Receiver<Load>,
        gpus: &mut watch::Receiver<Snapshot>,
        ours: u32,
    ) {
        if load.has_changed().unwrap_or(false) {
            let newest = load.borrow_and_update().clone();
            self.load(&newest, ours);
        }
        if gpus.has_changed().unwrap_or(false) {
            let newest = gpus.borrow_and_update().clone();
            self.cards(&newest);
        }
    }

    /// Takes a reading of the server.
    pub fn load(&mut self, load: &Load, ours: u32) {
        let max = |old: &mut Option<u64>, new: Option<&u64>| {
            *old = (*old).max(new.copied());
        };
        self.samples += 1;
        match ours.cmp(&self.fullest.0) {
            Ordering::Less => {}
            Ordering::Equal => self.fullest.1 += 1,
            Ordering::Greater => self.fullest = (ours, 1),
        }
        self.now = Counters::of(load);
        self.server.preemptions = self
            .now
            .preemptions
            .zip(self.before.preemptions)
            .and_then(|(now, before)| now.checked_sub(before));
        let (running, waiting) = (load.running.fresh(), load.waiting.fresh());
        let both = running
            .zip(waiting)
            .map(|(running, waiting)| running + waiting);
        max(&mut self.server.in_server_max, both.as_ref());
        max(&mut self.server.running_max, running);
        max(&mut self.server.waiting_max, waiting);
        if let Some(share) = load.kv_use.fresh() {
            let before = self.server.kv_use_max.unwrap_or(0.0);
            self.server.kv_use_max = Some(before.max(*share));
        }
        self.server.accept_length = load
            .accept_length
            .fresh()
            .copied()
            .or(self.server.accept_length);
        let Some(running) = running else { return };
        let theirs = (running + waiting.copied().unwrap_or(0)).saturating_sub(u64::from(ours));
        if theirs == 0 {
            self.foreign_in_a_row = 0;
            return;
        }
        // One sample may be a gauge that was not refreshed.
        self.foreign_in_a_row += 1;
        if self.foreign_in_a_row >= 2 {
            self.foreign = self.foreign.max(Some(theirs));
        }
    }

    fn cards(&mut self, snapshot: &Snapshot) {
        for card in &snapshot.cards {
            let Some(memory) = card.memory.fresh() else {
                continue;
            };
            let at = match self.cards.iter().position(|sum| sum.index == card.index) {
                Some(at) => at,
                None => {
                    self.cards.push(CardSum {
                        index: card.index,
                        used_peak: 0,
                        free_min: u64::MAX,
                        busy: Mean::default(),
                        watts: Mean::default(),
                    });
                    self.cards.len() - 1
                }
            };
            let Some(sum) = self.cards.get_mut(at) else {
                continue;
            };
            sum.used_peak = sum.used_peak.max(memory.used);
            sum.free_min = sum.free_min.min(memory.free);
            if let Some(busy) = card.busy_pct.fresh() {
                sum.busy.add(f64::from(*busy));
            }
            if let Some(milliwatts) = card.power_mw.fresh() {
                sum.watts.add(f64::from(*milliwatts) / 1e3);
            }
        }
    }

    /// What each card did in a cell of `seconds` that made `tokens` output tokens.
    pub fn card_use(&self, seconds: f64, tokens: u64) -> Vec<CardUse> {
        self.cards
            .iter()
            .map(|sum| CardUse {
                index: sum.index,
                used_peak: sum.used_peak,
                free_min: sum.free_min,
                busy_mean: sum.busy.value(),
                joules_per_token: sum
                    .watts
                    .value()
                    .filter(|_| tokens > 0)
                    .map(|watts| watts * seconds / tokens as f64),
            })
            .collect()
    }
}

fn mean_ms(before: Option<Spent>, now: Option<Spent>) -> Summary {
    let spent = before.zip(now).and_then(|(before, now)| {
        let n = now.requests.checked_sub(before.requests)?;
        let seconds = now.seconds - before.seconds;
        (n > 0 && seconds >= 0.0).then(|| (n, seconds * 1e3 / n as f64))
    });
    Summary {
        n: spent.map_or(0, |(n, _)| n),
        mean: spent.map(|(_, ms)| ms),
        ..Summary::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{Card, CardState, Memory};
    use crate::reading::Reading;

    fn load(running: u64, waiting: u64) -> Load {
        Load {
            running: Reading::Value(running),
            waiting: Reading::Value(waiting),
            kv_use: Reading::Value(0.25),
            ..Load::default()
        }
    }

    fn card(index: u32, used: u64) -> Card {
        Card {
            index,
            uuid: String::new(),
            name: "A".into(),
            state: CardState::Ok,
            memory: Reading::Value(Memory {
                total: 100,
                used,
                free: 100 - used,
                reserved: 0,
            }),
            busy_pct: Reading::Value(50),
            temp_c: Reading::unsupported(),
            power_mw: Reading::Value(300_000),
            power_limit_mw: Reading::unsupported(),
            processes: Reading::unsupported(),
            detail: crate::gpu::Detail::default(),
        }
    }

    #[test]
    fn peaks_and_means_of_new_readings_only() {
        let (load_tx, mut load_rx) = watch::channel(load(99, 0));
        let (gpu_tx, mut gpu_rx) = watch::channel(Snapshot::default());
        let mut beside = Beside::default();
        // What was there before the cell began does not count.
        load_rx.borrow_and_update();
        gpu_rx.borrow_and_update();
        beside.look(&mut load_rx, &mut gpu_rx, 8);
        assert_eq!(beside.samples, 0);
        for (running, used) in [(6, 70), (8, 90), (7, 80)] {
            load_tx.send(load(running, 2)).unwrap();
            let cards = vec![card(0, used), card(3, 10)];
            gpu_tx
                .send(Snapshot {
                    cards,
                    ..Snapshot::default()
                })
                .unwrap();
            beside.look(&mut load_rx, &mut gpu_rx, 10);
        }
        assert_eq!(
            (beside.server.running_max, beside.server.waiting_max),
            (Some(8), Some(2))
        );
        assert_eq!(
            (beside.server.kv_use_max, beside.foreign),
            (Some(0.25), None)
        );
        let cards = beside.card_use(10.0, 1000);
        assert_eq!(
            (cards[0].index, cards[0].used_peak, cards[0].free_min),
            (0, 90, 10)
        );
        assert_eq!((cards[1].index, cards[1].busy_mean), (3, Some(50.0)));
        assert_eq!(cards[0].joules_per_token, Some(3.0));
    }

    #[test]
    fn counters_tell_what_the_cell_added() {
        let spent = |seconds, requests| Reading::Value(Spent { seconds, requests });
        let at = |preemptions, queries, hits, queued| Load {
            preemptions_total: Reading::Value(preemptions),
            cache_queries_total: Reading::Value(queries),
            cache_hits_total: Reading::Value(hits),
            queued,
            ..load(3, 4)
        };
        let mut beside = Beside::since(&at(5, 1000, 100, spent(1.0, 10)));
        assert_eq!(
            (beside.queue_ms(), beside.cache()),
            (Summary::default(), Some((0, 0)))
        );
        beside.load(&at(7, 3000, 400, spent(1.5, 20)), 8);
        let queue = beside.queue_ms();
        assert_eq!((queue.n, queue.mean, queue.p50), (10, Some(50.0), None));
        assert!(beside.counts_fewer_than(11) && !beside.counts_fewer_than(10));
        assert_eq!(beside.cache(), Some((2000, 300)));
        assert_eq!(beside.prefill_ms(), Summary::default());
        assert_eq!(beside.server.preemptions, Some(2));
        assert_eq!(beside.server.in_server_max, Some(7));
        // A server that was started anew counts from nothing.
        beside.load(&at(0, 10, 1, spent(0.1, 1)), 8);
        assert_eq!((beside.cache(), beside.server.preemptions), (None, None));
        assert_eq!(beside.queue_ms(), Summary::default());
    }

    #[test]
    fn gauges_that_saw_nothing_of_the_work_say_nothing() {
        let mut beside = Beside::default();
        beside.load(&load(0, 0), 8);
        let said = beside.server_side(1e6);
        assert_eq!((said.running_max, said.in_server_max), (None, None));
        assert_eq!(said.kv_use_max, Some(0.25));
        beside.load(&load(3, 0), 8);
        assert_eq!(beside.server_side(80.0).running_max, Some(3));
        // Two rounds of 24 tokens: the gauges may be those of the first prefill.
        assert_eq!(beside.server_side(48.0).running_max, None);
        beside.load(&load(4, 4), 8);
        assert_eq!(beside.server_side(48.0).running_max, Some(4));
    }

    #[test]
    fn foreign_load_is_believed_the_second_time() {
        let mut beside = Beside::default();
        beside.load(&load(9, 0), 8);
        beside.load(&load(8, 0), 8);
        beside.load(&load(9, 1), 8);
        assert_eq!(beside.foreign, None);
        beside.load(&load(9, 2), 8);
        assert_eq!(beside.foreign, Some(3));
    }

    #[test]
    fn samples_count_from_the_fullest_moment_on() {
        let mut beside = Beside::default();
        for ours in [2, 7, 8, 5, 8] {
            beside.load(&load(1, 0), ours);
        }
        assert_eq!((beside.samples, beside.fullest), (5, (8, 2)));
    }

    #[test]
    fn own_load_remembers_a_moment() {
        let mut own = OwnLoad::default();
        assert_eq!(own.note(0, 100), 100);
        assert_eq!(own.note(2_000_000_000, 1), 100);
        assert_eq!(own.note(4_000_000_000, 1), 1);
    }
}
