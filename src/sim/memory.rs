//! What a simulated card holds, and how warm it is.

use serde::{Deserialize, Serialize};

const GIB: u64 = 1 << 30;
/// 49,140 MiB, as `nvidia-smi` shows an RTX A6000.
const TOTAL: u64 = 49_140 << 20;
/// What the driver uses with nothing running.
pub const IDLE: u64 = 3 * GIB / 10;
/// Bytes of one card for each step of a start.
const CUDA: u64 = 6 * GIB / 10;
const WEIGHTS: u64 = 27 * GIB;
/// The KV pool: 16 layers of full attention, 2 KV heads a card, 256 wide, keys and values in BF16.
pub const KV_BYTES_PER_TOKEN: u64 = 16 * 2 * 256 * 2 * 2;
/// Tokens in the pool.
pub const POOL_TOKENS: u64 = 159_744;
/// Recurrent state, states for verifying drafts, and the draft's own KV.
pub const STATE: u64 = 58 * GIB / 10;
pub const GRAPHS: u64 = 86 * GIB / 100;
const WORKSPACE: u64 = 206 * GIB / 100;

const IDLE_C: f64 = 34.0;
const BUSY_C: f64 = 71.0;
const IDLE_MW: f64 = 22_000.0;
const BUSY_MW: f64 = 284_000.0;
const LIMIT_MW: u32 = 300_000;

/// How far a start is; each share is 0..1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    Weights(f64),
    Pool(f64),
    Graphs(f64),
    WarmUp(f64),
    Serving,
}

impl Stage {
    /// Bytes used on one card, with the driver's own.
    pub fn used(self, context: u64) -> u64 {
        let (weights, pool, graphs, workspace) = match self {
            Stage::Weights(share) => (share, 0.0, 0.0, 0.0),
            Stage::Pool(share) => (1.0, share, 0.0, 0.0),
            Stage::Graphs(share) => (1.0, 1.0, share, 0.0),
            Stage::WarmUp(share) => (1.0, 1.0, 1.0, share),
            Stage::Serving => (1.0, 1.0, 1.0, 1.0),
        };
        let part = |bytes: u64, share: f64| (bytes as f64 * share.clamp(0.0, 1.0)) as u64;
        IDLE + CUDA
            + part(WEIGHTS, weights)
            + part(STATE + POOL_TOKENS * KV_BYTES_PER_TOKEN, pool)
            + part(GRAPHS + tables(context), graphs)
            + part(WORKSPACE, workspace)
    }
}

/// What the context length itself costs: request tables and index buffers, 0.1 GiB at 64K and 0.2 at 128K.
fn tables(context: u64) -> u64 {
    let doublings = (context.max(1) as f64 / 32_768.0).log2().max(0.0);
    (doublings * GIB as f64 / 10.0) as u64
}

/// One card in the rig's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    pub index: u32,
    pub uuid: String,
    pub name: String,
    /// Bytes.
    pub total: u64,
    pub used: u64,
    pub busy_pct: u32,
    pub temp_c: u32,
    pub power_mw: u32,
    pub power_limit_mw: u32,
}

impl Card {
    /// A card with nothing running.
    pub fn idle(index: u32) -> Self {
        Card {
            index,
            uuid: format!("GPU-51300000-0000-4000-8000-{index:012}"),
            name: "RTX A6000".to_string(),
            total: TOTAL,
            used: IDLE,
            busy_pct: 0,
            temp_c: IDLE_C as u32,
            power_mw: IDLE_MW as u32,
            power_limit_mw: LIMIT_MW,
        }
    }
}

/// Cards with nothing running.
pub fn idle_cards(count: u32) -> Vec<Card> {
    (0..count).map(Card::idle).collect()
}

/// Bytes that a card has for a server: what is free, without what the CUDA context of the server takes at once.
pub fn free_for_server(card: &Card) -> u64 {
    card.total.saturating_sub(card.used).saturating_sub(CUDA)
}

/// The cards of a running server, with the inertia of heat.
#[derive(Debug)]
pub struct Cards {
    cards: Vec<Card>,
    temp_c: f64,
    context: u64,
    rng: fastrand::Rng,
}

impl Cards {
    pub fn new(count: u32, context: u64, seed: u64) -> Self {
        Cards {
            cards: idle_cards(count),
            temp_c: IDLE_C,
            context,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// The cards `dt_s` seconds later, at `stage` and with `load` (0..1) on them.
    pub fn step(&mut self, dt_s: f64, stage: Stage, load: f64) -> &[Card] {
        let target = IDLE_C + (BUSY_C - IDLE_C) * load;
        self.temp_c += (target - self.temp_c) * (1.0 - (-dt_s / 20.0).exp());
        let used = stage.used(self.context);
        for card in &mut self.cards {
            let wobble = if load > 0.0 {
                self.rng.f64() * 3.0
            } else {
                0.0
            };
            // The second card of a pair holds a little less and stays cooler.
            let second = u64::from(card.index % 2);
            card.used = used - second * (GIB / 16);
            card.busy_pct = (load * 97.0 - wobble).max(0.0) as u32;
            card.temp_c = (self.temp_c - 2.0 * second as f64).max(IDLE_C - 2.0) as u32;
            card.power_mw = (IDLE_MW + (BUSY_MW - IDLE_MW) * load * (1.0 - wobble / 100.0)) as u32;
        }
        &self.cards
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gib(bytes: u64) -> f64 {
        bytes as f64 / GIB as f64
    }

    #[test]
    fn memory_is_nearly_flat_over_the_context() {
        let used = |context| gib(Stage::Serving.used(context));
        assert!((used(32_768) - 41.5).abs() < 0.05, "{}", used(32_768));
        assert!((used(65_536) - used(32_768) - 0.1).abs() < 0.01);
        assert!((used(131_072) - used(32_768) - 0.2).abs() < 0.01);
        let free = gib(TOTAL) - used(32_768);
        assert!((free - 6.5).abs() < 0.05, "{free}");
        assert!((gib(POOL_TOKENS * KV_BYTES_PER_TOKEN) - 4.9).abs() < 0.05);
        assert!(
            (gib(Stage::Weights(1.0).used(1)) - gib(Stage::Weights(0.0).used(1)) - 27.0).abs()
                < 0.01
        );
    }

    #[test]
    fn load_heats_and_draws_power() {
        let mut cards = Cards::new(2, 32_768, 1);
        let cold = cards.step(0.2, Stage::Serving, 0.0).to_vec();
        assert_eq!((cold[0].busy_pct, cold[0].temp_c), (0, 34));
        for _ in 0..500 {
            cards.step(0.2, Stage::Serving, 0.9);
        }
        let hot = cards.step(0.2, Stage::Serving, 0.9);
        assert!(
            hot[0].temp_c > 60 && hot[0].power_mw > 200_000 && hot[0].busy_pct > 80,
            "{hot:?}"
        );
        assert!(hot[1].used < hot[0].used, "one card is the tightest");
        assert!(
            Cards::new(0, 1, 1)
                .step(1.0, Stage::Serving, 1.0)
                .is_empty()
        );
    }
}
