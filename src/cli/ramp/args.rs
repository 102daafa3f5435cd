//! What `vramp ramp` understands.

use crate::units::{parse_context, parse_seconds};
use clap::ArgGroup;
use std::path::PathBuf;

/// Change the context of the profile's server without a screen, with its way back
///
/// Each step is a restart as in the cockpit: its cost and the diff told, checked before anything is stopped, the cards waited for, proven
/// with a real token and a sensible answer, watched for a minute, and the last good value back in service where that fails. It stops at a trial; --confirm makes it the production value.
/// A context is per request, and K is 1024. Ctrl-C gives the step up and waits until the way back is taken.
///
/// Exit codes: 0 what was asked for is in service, 1 it is not (the reason is on standard error and in the JSON), 2 wrong use, 130
/// interrupted.
#[derive(Debug, Clone, clap::Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["to", "recover", "roll_back"]))]
pub struct RampArgs {
    /// The context to end with (64K is 65,536)
    #[arg(long, value_name = "N", value_parser = parse_context)]
    pub to: Option<u64>,
    /// Steps on the way: those between the running value and --to are taken, one restart each
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_context, requires = "to")]
    pub ladder: Vec<u64>,
    /// Run this plan of the profile after each step: throughput or long-context
    #[arg(long, value_name = "PLAN", requires = "to")]
    pub bench: Option<String>,
    /// Keep the trial as the production value: the number of --to once more
    #[arg(long, value_name = "N", value_parser = parse_context, requires = "to")]
    pub confirm: Option<u64>,
    /// Wait at most so long until nobody else has had a request for 10 s (90s, 5m); without it, requests of others refuse the restart
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub drain: Option<u64>,
    /// Restart although others use the server: their requests fail
    #[arg(long, conflicts_with = "drain")]
    pub under_load: bool,
    /// How long the cards may take to let go after a stop, instead of the profile's release_after (90s, 5m)
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub wait_cards: Option<u64>,
    /// Leave as soon as the server is proven: a crash in its first minute then brings nothing back
    #[arg(long)]
    pub no_watch: bool,
    /// Finish the unfinished restart that an earlier vramp left, or bring the value before it back; then go on to --to, if given
    #[arg(long, value_name = "WAY", value_parser = ["go-on", "roll-back"])]
    pub recover: Option<String>,
    /// Bring the production value back
    #[arg(long, conflicts_with = "to")]
    pub roll_back: bool,
    /// Say what would be done, what it costs and what it changes; touch nothing
    #[arg(long, conflicts_with = "recover")]
    pub dry_run: bool,
    /// As JSON; to FILE, or to standard output without one
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}
