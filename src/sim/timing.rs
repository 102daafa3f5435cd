//! How fast the simulated rig is: the figures of two RTX A6000 with a 27B model in BF16, tensor parallel, MTP speculation.

/// Most requests that are worked on at once; the rest queue. It makes the plateau.
pub const MAX_RUNNING: usize = 48;

/// Most prompts that are prefilled at once; they share the cards' time. Later ones wait.
const PREFILL_LANES: usize = 2;

/// Tokens of the steps of speculative decoding, 2.9 on average, dealt in shuffled hands so that the mean holds over short answers.
pub const STEP_TOKENS: [u32; 10] = [1, 2, 2, 3, 3, 3, 3, 4, 4, 4];
const MEAN_STEP_TOKENS: f64 = 2.9;

/// Seconds of prefill by prompt tokens, alone on the rig.
const PREFILL_S: [(f64, f64); 8] = [
    (0.0, 0.04),
    (1_000.0, 0.16),
    (10_000.0, 1.24),
    (30_000.0, 3.91),
    (60_000.0, 8.31),
    (100_000.0, 15.0),
    (120_000.0, 17.9),
    (262_144.0, 48.0),
];

/// Decode rate of one request in tokens a second, by requests that decode together, at 1000 tokens of context. With 1000 tokens in
/// and 500 out it gives an output of 73, 138, 207, 430 and 505 tokens a second at concurrency 1, 2, 4, 16 and 48.
const DECODE_RATE: [(f64, f64); 7] = [
    (1.0, 74.4),
    (2.0, 71.3),
    (4.0, 52.5),
    (8.0, 39.6),
    (16.0, 27.0),
    (32.0, 15.3),
    (48.0, 10.5),
];

/// Seconds that each token of context beyond the first thousand adds to the time of one output token: 73.6 tok/s at 1K becomes
/// 64.9 at 120K.
const CONTEXT_COST_S: f64 = 1.65e-8;

/// How the rig keeps time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timing {
    /// The figures above.
    Model,
    /// An exact schedule that no load changes, for measuring clients.
    Raw {
        ttft_s: f64,
        /// Seconds per output token.
        itl_s: f64,
        tokens_per_chunk: u32,
    },
}

impl Timing {
    /// Requests worked on at once.
    pub fn max_running(self) -> usize {
        match self {
            Timing::Model => MAX_RUNNING,
            Timing::Raw { .. } => usize::MAX,
        }
    }

    /// Seconds of prefill for a prompt of which `cached` tokens are known already.
    pub fn prefill_s(self, tokens: u64, cached: u64) -> f64 {
        match self {
            Timing::Model => {
                let whole = interpolate(&PREFILL_S, tokens as f64);
                let known = interpolate(&PREFILL_S, cached as f64) - PREFILL_S[0].1;
                (whole - known).max(PREFILL_S[0].1)
            }
            Timing::Raw { ttft_s, .. } => ttft_s,
        }
    }

    /// How many of `waiting` prefills go on, and the share of full speed that each has.
    pub fn prefill_lanes(self, waiting: usize) -> (usize, f64) {
        match self {
            Timing::Model => {
                let lanes = waiting.min(PREFILL_LANES);
                (lanes, 1.0 / lanes.max(1) as f64)
            }
            Timing::Raw { .. } => (waiting, 1.0),
        }
    }

    /// Seconds of one decode step of `tokens` tokens, while `decoding` requests with `context` tokens in all decode together.
    pub fn step_s(self, decoding: usize, context: u64, tokens: u32) -> f64 {
        match self {
            // A step takes the same time whatever the draft brings.
            Timing::Model => {
                let token_s = 1.0 / interpolate(&DECODE_RATE, decoding.max(1) as f64);
                let beyond = (context as f64 - 1000.0 * decoding as f64).max(0.0);
                MEAN_STEP_TOKENS * (token_s + CONTEXT_COST_S * beyond)
            }
            Timing::Raw { itl_s, .. } => itl_s * f64::from(tokens),
        }
    }
}

/// Linear between the points, flat before them, and on with the last slope behind them.
fn interpolate(points: &[(f64, f64)], x: f64) -> f64 {
    let Some(first) = points.first() else {
        return 0.0;
    };
    if x <= first.0 {
        return first.1;
    }
    let mut value = first.1;
    for pair in points.windows(2) {
        if let [(x0, y0), (x1, y1)] = pair {
            value = y0 + (y1 - y0) * (x - x0) / (x1 - x0);
            if x <= *x1 {
                break;
            }
        }
    }
    value.max(1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefill_times_are_those_of_the_rig() {
        for (tokens, seconds) in [
            (1_000, 0.16),
            (10_000, 1.24),
            (30_000, 3.91),
            (60_000, 8.31),
            (100_000, 15.0),
            (120_000, 17.9),
        ] {
            assert!(
                (Timing::Model.prefill_s(tokens, 0) - seconds).abs() < 1e-9,
                "{tokens}"
            );
        }
        let cached = Timing::Model.prefill_s(10_000, 9_984);
        assert!((0.04..0.05).contains(&cached), "{cached}");
    }

    #[test]
    fn decode_slows_down_with_the_context() {
        let rate = |context| f64::from(29) / 10.0 / Timing::Model.step_s(1, context, 3);
        assert!((rate(1_100) / 73.6 - 1.0).abs() < 0.015, "{}", rate(1_100));
        assert!(
            (rate(120_100) / 64.9 - 1.0).abs() < 0.01,
            "{}",
            rate(120_100)
        );
    }

    #[test]
    fn a_raw_schedule_is_exact() {
        let raw = Timing::Raw {
            ttft_s: 0.05,
            itl_s: 0.01,
            tokens_per_chunk: 4,
        };
        assert_eq!(raw.prefill_s(100_000, 0), 0.05);
        assert_eq!(raw.step_s(100, 1 << 20, 4), 0.04);
        assert_eq!(raw.prefill_lanes(500), (500, 1.0));
    }
}
