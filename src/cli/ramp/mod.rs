//! `vramp ramp`: the context walk without a screen.

mod alone;
mod args;
mod document;
mod dry_run;
mod outlook;
mod progress;
mod record;
mod site;
mod walk;

pub use args::RampArgs;

use super::rig::{Rig, Stand};
use super::{Common, Failure, Look, bench, cockpit, print};
use crate::ramp::{Lock, RampError};
use crate::runtime;
use document::{Document, Ending, summary};
use progress::Progress;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use walk::{Asked, Stop, Walk};

/// Walks, and says where it ended; gives the exit code.
pub fn ramp(common: &Common, look: &Look, args: &RampArgs) -> Result<i32, Failure> {
    if look.read_only {
        return Err(Failure::wrong_use(
            "--read-only restarts nothing, and vramp ramp does nothing else; vramp status only looks",
        ));
    }
    if let (Some(confirm), Some(to)) = (args.confirm, args.to)
        && confirm != to
    {
        return Err(Failure::wrong_use(format!(
            "--confirm {confirm} is not the number of --to {to}; only the very number that is to be kept confirms it"
        )));
    }
    if let Some(plan) = &args.bench {
        bench::check_plan(common, look.quick, plan)?;
    }
    let mut rig = Rig::open(common, None)?;
    rig.profile.confirm_within_s = look.confirm_within.or(rig.profile.confirm_within_s);
    if rig.service.is_none() {
        return Err(Failure::wrong_use(format!(
            "the profile {} only names an address: put how the server is run into it ([profile.NAME.process] or [profile.NAME.service]) and vramp can restart it",
            rig.profile.name
        )));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    if args.dry_run {
        let planned = runtime.block_on(dry_run::plan(args, &rig));
        runtime.shutdown_background();
        return dry_run::answer(planned?, args.json.as_deref());
    }
    let ended = runtime.block_on(carry_out(common, look, args, &rig));
    // A call into a driver or a disk may hang for good: nobody waits for it.
    runtime.shutdown_background();
    let (end, code) = ended?;
    match &args.json {
        Some(path) => print::json(&end, path)?,
        None => print::text(&summary(&end))?,
    };
    Ok(code)
}

async fn carry_out(
    common: &Common,
    look: &Look,
    args: &RampArgs,
    rig: &Rig,
) -> Result<(Document, i32), Failure> {
    let cancel = cancelled_by_signal()?;
    let progress = Progress::default();
    let who = runtime::who().to_string();
    let (stopped, simulated, steps) = match Lock::take(&rig.host, &rig.dir, &who).await {
        Ok(lock) => {
            let asked = Asked {
                common,
                quick: look.quick,
                args,
                which: cockpit::which(look),
            };
            let mut walk = Walk::new(asked, rig, lock, cancel, progress)?;
            let ended = walk.go().await?;
            (ended, walk.simulated, walk.steps)
        }
        Err(error @ (RampError::Locked { .. } | RampError::Disk { .. })) => {
            (Err(Stop::refused(error)), false, Vec::new())
        }
        Err(error) => return Err(Failure::new(error)),
    };
    let (outcome, reason) = match stopped {
        Ok(ending) => (ending, None),
        Err(stop) => (stop.ending, Some(stop.reason)),
    };
    if let Some(reason) = &reason {
        Progress::default().line(&format!("vramp: {reason}"));
    }
    let code = match (&reason, outcome) {
        (None, _) => 0,
        (Some(_), Ending::Interrupted) => super::INTERRUPTED,
        (Some(_), _) => super::FAILED,
    };
    let end = Document {
        outcome,
        simulated,
        steps,
        reason,
        ..in_service(rig).await
    };
    Ok((end, code))
}

/// What is in service now, as far as it can be seen.
async fn in_service(rig: &Rig) -> Document {
    let stand = match &rig.service {
        Some(service) => Stand::of(service.as_ref()).await.ok(),
        None => None,
    };
    let standing = stand.as_ref().map(|stand| &stand.standing);
    Document {
        outcome: Ending::Refused,
        simulated: false,
        context: stand
            .as_ref()
            .and_then(Stand::running)
            .map(|config| config.context),
        production: standing.and_then(|standing| standing.production),
        deadline: standing.and_then(|standing| standing.deadline_unix_ms),
        steps: Vec::new(),
        reason: None,
    }
}

/// Turns true with Ctrl-C or a request to end. A terminal that goes away changes nothing: the step goes on to its end.
fn cancelled_by_signal() -> Result<watch::Receiver<bool>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::new)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::new)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(Failure::new)?;
    let (cancel, cancelled) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => continue,
            }
            if !cancel.send_replace(true) {
                Progress::default().line(
                    "stopping: what was in service comes back, if anything was stopped; this waits for it",
                );
            }
        }
    });
    Ok(cancelled)
}

/// Shared by what a walk consists of.
type Locked = Arc<Lock>;
