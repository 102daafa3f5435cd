//! Before anything is stopped: whether others use the server.

use super::args::RampArgs;
use super::progress::Progress;
use super::walk::Stop;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::ramp::{self, Drain, QUIET_MS};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// A server that nobody uses is looked at for so long, for its figures may be a moment old.
const GLANCE_MS: u64 = 1_000;
/// After requests of our own its figures may be older: some engines refresh them only now and then while they idle.
const AFTERGLOW_MS: u64 = 40_000;
/// Between two lines about a wait, in looks.
const SAY_EVERY: u32 = 20;

/// Waits as long as the operator allows for others to end their requests; `ours_before`: we have sent some in this walk.
pub async fn alone(
    engine: &dyn Engine,
    args: &RampArgs,
    ours_before: bool,
    clock: Clock,
    cancel: &watch::Receiver<bool>,
    progress: &Progress,
) -> Result<(), Stop> {
    let begun = clock.now();
    let mut quiet = Drain::new(begun);
    let (wanted, patience) = match args.drain {
        Some(seconds) => (QUIET_MS.min(seconds * 1000), seconds.saturating_mul(1000)),
        None if ours_before => (GLANCE_MS, AFTERGLOW_MS),
        None => (GLANCE_MS, GLANCE_MS),
    };
    for look in 0_u32.. {
        let foreign = match engine.load().await {
            Ok(load) => ramp::foreign(&load, 0)
                .fresh()
                .copied()
                .ok_or_else(|| "the server does not say how many requests it has".to_string()),
            Err(error) => Err(error.to_string()),
        };
        let now = clock.now();
        quiet.seen(now, foreign.as_ref().ok().copied());
        if args.under_load {
            progress.line(&match foreign {
                Ok(0) => "nobody else uses the server".to_string(),
                Ok(others) => format!("{others} requests of others will fail: --under-load"),
                Err(why) => format!("whether others use the server is not known ({why})"),
            });
            return Ok(());
        }
        if quiet.quiet_for(now) >= Some(wanted) {
            return Ok(());
        }
        if *cancel.borrow() {
            return Err(Stop::interrupted("before anything was stopped"));
        }
        if now.since(begun) >= patience && foreign != Ok(0) {
            return Err(Stop::refused(refusal(&foreign, args.drain)));
        }
        if now.since(begun) >= patience.saturating_add(wanted) {
            return Err(Stop::refused(refusal(&foreign, args.drain)));
        }
        if look % SAY_EVERY == 0
            && let Ok(others @ 1..) = foreign
        {
            progress.line(&format!(
                "{others} requests of others are on the server: waiting"
            ));
        }
        sleep(LOOK).await;
    }
    Ok(())
}

fn refusal(foreign: &Result<u64, String>, drain: Option<u64>) -> String {
    let what = match foreign {
        Ok(0) => "others use the server now and then".to_string(),
        Ok(1) => "a request of somebody else is on the server".to_string(),
        Ok(others) => format!("{others} requests of others are on the server"),
        Err(why) => format!("whether others use the server cannot be told ({why})"),
    };
    let next = match (foreign, drain) {
        (Err(_), _) => "See that nobody does, then go on with --under-load",
        (Ok(_), None) => {
            "Wait for their end with --drain 60s, or go on all the same with --under-load"
        }
        (Ok(_), Some(_)) => {
            "They did not end in time: give --drain longer, or go on all the same with --under-load"
        }
    };
    format!("{what}; nothing was stopped. {next}")
}
