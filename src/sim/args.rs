//! The options of `vramp sim`.

use super::timing::Timing;
use crate::units::parse_context;
use std::path::PathBuf;

/// Context length of the model that is simulated.
const MODEL_LIMIT: u64 = 262_144;

/// Run the simulated rig as a plain server: SGLang's dialect, two RTX A6000, real figures, faults on request. No GPU is used.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct SimArgs {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// Port to listen on
    #[arg(long, default_value_t = 30000)]
    pub port: u16,
    /// Context length to serve, in tokens (K means 1024)
    #[arg(long, default_value = "32768", value_parser = parse_context)]
    pub context_length: u64,
    /// Directory in which the cards are shown to others (cards.json)
    #[arg(long, value_name = "DIR")]
    pub rig: Option<PathBuf>,
    /// Number of cards
    #[arg(long, default_value_t = 2)]
    pub cards: u32,
    /// Milliseconds from the start to ready
    #[arg(long, default_value_t = 5000)]
    pub start_ms: u64,
    /// Seed of times and texts
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The model's own limit; a longer context does not start
    #[arg(long, default_value_t = MODEL_LIMIT, value_parser = parse_context)]
    pub max_context: u64,
    /// A longer context than this runs out of memory while starting
    #[arg(long, value_parser = parse_context)]
    pub oom_above: Option<u64>,
    /// Serve this context whatever was asked for
    #[arg(long, value_parser = parse_context)]
    pub serve_context: Option<u64>,
    /// Open the port and never become ready
    #[arg(long)]
    pub never_ready: bool,
    /// Crash this many milliseconds after ready
    #[arg(long, value_name = "MS")]
    pub fail_after_ready_ms: Option<u64>,
    /// Answer with one word for ever
    #[arg(long = "loop")]
    pub loops: bool,
    /// Do not end on SIGTERM
    #[arg(long)]
    pub ignore_sigterm: bool,
    /// Keep the cards' memory this long after the end
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub hold_cards_ms: u64,
    /// Exact schedule instead of the rig's figures: time to the first token
    #[arg(long, value_name = "MS")]
    pub ttft_ms: Option<f64>,
    /// Exact schedule: time per output token
    #[arg(long, value_name = "MS")]
    pub itl_ms: Option<f64>,
    /// Exact schedule: tokens in one chunk
    #[arg(long, value_name = "N")]
    pub tokens_per_chunk: Option<u32>,
    #[command(flatten)]
    pub raw: RawArgs,
}

/// What an exact schedule may do besides; each of them chooses it. The times of everything sent are at /stats.
#[derive(Debug, Clone, PartialEq, Default, clap::Args)]
#[command(next_help_heading = "Exact schedule (raw streams, with their own truth at /stats)")]
pub struct RawArgs {
    /// Events in one write
    #[arg(long, value_name = "N")]
    pub events_per_write: Option<u32>,
    /// The first so many tokens are reasoning
    #[arg(long, value_name = "N")]
    pub reasoning_tokens: Option<u32>,
    /// Answers end after so many tokens, whatever was asked for
    #[arg(long, value_name = "N")]
    pub answer_tokens: Option<u32>,
    /// Who gets the count of tokens
    #[arg(long, value_name = "WHO")]
    pub usage: Option<UsageFor>,
    /// Every Nth answer pauses in the middle
    #[arg(long, value_name = "N")]
    pub stall_every: Option<u64>,
    /// How long it pauses
    #[arg(long, value_name = "MS")]
    pub stall_ms: Option<f64>,
    /// Every Nth answer is cut off in the middle
    #[arg(long, value_name = "N")]
    pub cut_every: Option<u64>,
    /// Every Nth request is answered with status 500
    #[arg(long, value_name = "N")]
    pub fail_every: Option<u64>,
}

/// To whom a stream tells its count of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum UsageFor {
    /// Those who ask, as real servers do
    Asked,
    /// Everybody
    Always,
    /// Nobody
    Never,
}

impl Default for SimArgs {
    fn default() -> Self {
        SimArgs {
            host: "127.0.0.1".to_string(),
            port: 30000,
            context_length: 32_768,
            rig: None,
            cards: 2,
            start_ms: 5000,
            seed: 1,
            max_context: MODEL_LIMIT,
            oom_above: None,
            serve_context: None,
            never_ready: false,
            fail_after_ready_ms: None,
            loops: false,
            ignore_sigterm: false,
            hold_cards_ms: 0,
            ttft_ms: None,
            itl_ms: None,
            tokens_per_chunk: None,
            raw: RawArgs::default(),
        }
    }
}

impl SimArgs {
    /// The context that the server will say it serves.
    pub fn served(&self) -> u64 {
        self.serve_context.unwrap_or(self.context_length)
    }

    /// One option of the exact schedule is enough to choose it.
    pub(super) fn timing(&self) -> Timing {
        let scheduled =
            self.ttft_ms.is_some() || self.itl_ms.is_some() || self.tokens_per_chunk.is_some();
        if !scheduled && self.raw == RawArgs::default() {
            return Timing::Model;
        }
        let seconds = |ms: Option<f64>, default: f64| {
            let ms = ms.filter(|ms| ms.is_finite()).unwrap_or(default);
            ms.max(0.0) / 1000.0
        };
        Timing::Raw {
            ttft_s: seconds(self.ttft_ms, 50.0),
            itl_s: seconds(self.itl_ms, 10.0),
            tokens_per_chunk: self.tokens_per_chunk.unwrap_or(1).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        sim: SimArgs,
    }

    #[test]
    fn the_defaults_are_one_and_lengths_are_read_as_everywhere() {
        let parse =
            |args: &[&str]| Cli::try_parse_from([&["vramp-sim"], args].concat()).map(|cli| cli.sim);
        assert_eq!(parse(&[]).expect("defaults"), SimArgs::default());
        let args =
            parse(&["--context-length", "128K", "--oom-above", "65536", "--loop"]).expect("good");
        assert_eq!(
            (args.context_length, args.oom_above, args.loops),
            (131_072, Some(65_536), true)
        );
        assert!(parse(&["--context-length", "lots"]).is_err());
        let raw = parse(&["--itl-ms", "2.5", "--tokens-per-chunk", "4"]).expect("good");
        assert_eq!(
            raw.timing(),
            Timing::Raw {
                ttft_s: 0.05,
                itl_s: 0.0025,
                tokens_per_chunk: 4
            }
        );
        assert_eq!(SimArgs::default().timing(), Timing::Model);
        let stalls = parse(&["--stall-every", "4"]).expect("good");
        assert!(matches!(stalls.timing(), Timing::Raw { .. }));
    }
}
