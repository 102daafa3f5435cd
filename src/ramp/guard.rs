//! The first minute after a restart: a server that crashes in it has failed, and what came before comes back by itself, once.

use super::cards;
use super::intent::{self, OnDisk};
use super::last_good::SERVES_MS;
use super::machine::{Next, State};
use super::run::Run;
use super::{
    Deps, Event, Intent, Leg, Outcome, Purpose, RestartPlan, StartFailure, Step, WayOut, failure,
    left_over,
};
use crate::confirm::Confirmed;
use crate::engine::start::Known;
use crate::service::{ProcessId, Status};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// A restart whose first minute is to be watched. Only a confirmed one makes it: the way back in it was confirmed with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded(RestartPlan);

impl Guarded {
    /// Whether there is something to come back to, so that it is watched at all.
    pub fn has_way_back(&self) -> bool {
        let plan = &self.0;
        let target = plan.on_failure.as_ref();
        plan.purpose != Purpose::Start && target.is_some_and(|target| target.config != plan.to)
    }

    /// Of a restart that is about to be carried out.
    pub fn of(plan: &Confirmed<RestartPlan>) -> Guarded {
        Guarded(plan.action().clone())
    }

    /// Of an unfinished one that is about to be taken up; `None` on the way back, which has nothing behind it.
    pub fn found(found: &Confirmed<(Intent, WayOut)>) -> Option<Guarded> {
        let (intent, way) = found.action();
        let forward = intent.leg == Leg::Forward && *way == WayOut::GoOn;
        forward.then(|| Guarded(intent.plan.clone()))
    }
}

/// Watches the server that a restart left [`Outcome::Ready`]. `None`: it served for a minute, was stopped on purpose, or there is
/// nothing to come back to. Else it crashed, and this is what became of the way back.
///
/// `cancel` turning true meanwhile ends the watch; on the way back it changes nothing. One that came before came too late for the restart.
///
/// Until the crash it touches nothing, and dropping the future is harmless; from the first [`Event::Step`] on it is a restart like any
/// other, with its intent on disk.
pub async fn guard(
    guarded: Guarded,
    deps: &Deps,
    events: mpsc::Sender<Event>,
    cancel: watch::Receiver<bool>,
) -> Option<Outcome> {
    if !guarded.has_way_back() {
        return None;
    }
    let plan = guarded.0;
    let target = plan.on_failure.clone()?;
    let pids = deps.service.pids().await.unwrap_or_default();
    let levels = cards::levels(&deps.gpus.borrow().clone(), &deps.cards, &pids);
    let members = left_over::identify(deps.host.as_ref(), &pids).await;
    let members = members.unwrap_or_default();
    let log_from = deps.service.log_end().await.ok();
    let on_disk = OnDisk {
        intent: Intent {
            version: intent::VERSION,
            plan,
            leg: Leg::Back,
            step: Step::Stop,
            since_unix_ms: deps.clock.now().unix_ms,
            by: deps.by.clone(),
            failure: None,
            simulated: deps.simulated,
        },
        levels,
        members: members.into_iter().map(|one| one.id).collect(),
        log_from: None,
    };
    let mut run = Run::new(deps, on_disk, Some(target), events, cancel);
    let failure = run.crash(log_from).await?;
    run.note(&failure.cause);
    let first = Next::Take(State::Back(Step::Stop, failure));
    Some(run.drive(first).await)
}

/// Whether somebody asked the server to end. A unit that ended well may have forgotten its exit code.
fn on_purpose(exit: Option<i32>, result: Option<&str>) -> bool {
    match result {
        // A container gives a signal as 128 and its number.
        None => matches!(exit, Some(0 | -15 | 143)),
        Some(word) => word == "success" && matches!(exit, None | Some(0 | -15)),
    }
}

/// What a look at the server found.
enum Look {
    Serves,
    /// It ended, or is another one now, in a way that is no failure.
    Over,
    Crashed(String, Known),
}

impl Run<'_> {
    /// Waits for a crash in the first minute, and says why.
    async fn crash(&mut self, log_from: Option<u64>) -> Option<StartFailure> {
        let begun = self.deps.clock.now();
        let mut id = None;
        self.cancel.mark_unchanged();
        while i64::try_from(self.deps.clock.now().since(begun)).is_ok_and(|ms| ms < SERVES_MS) {
            if self.cancel.has_changed().unwrap_or(false) {
                return None;
            }
            match self.look(&mut id).await {
                Look::Serves => sleep(LOOK).await,
                Look::Over => return None,
                Look::Crashed(what, known) => {
                    let seconds = self.deps.clock.now().since(begun) / 1000;
                    if let Some(from) = log_from {
                        self.take_log(from).await;
                    }
                    let what = format!("it was ready and crashed {seconds} s later: {what}");
                    return Some(failure::from_log(Step::Prove, &what, &self.tail, &known));
                }
            }
        }
        None
    }

    async fn look(&self, id: &mut Option<ProcessId>) -> Look {
        let plan = &self.on_disk.intent.plan;
        let Ok(status) = self.deps.service.status().await else {
            // Nothing is known of a server on a host that is lost.
            return Look::Serves;
        };
        match (status, id) {
            (
                Status::Running {
                    id: now, config, ..
                },
                id,
            ) => {
                if config.is_some_and(|config| config != plan.to) {
                    // Somebody, or its deadline, brought another value into service.
                    return Look::Over;
                }
                match id {
                    Some(known) if *known != now => match self.has_gone(known).await {
                        Some((what, known)) => Look::Crashed(what, known),
                        None => Look::Serves,
                    },
                    _ => {
                        *id = Some(now);
                        Look::Serves
                    }
                }
            }
            (Status::Stopped { exit }, id) => {
                let (what, known) = self.ending(id.as_ref(), exit).await;
                if on_purpose(exit, known.result.as_deref()) {
                    return Look::Over;
                }
                Look::Crashed(what, known)
            }
        }
    }

    /// Lets the judgement read what the log says from `at` on; the screen has its lines from the watching already.
    async fn take_log(&mut self, mut at: u64) {
        while let Ok((lines, next)) = self.deps.service.log_since(at).await {
            let now = self.deps.clock.now();
            for line in &lines {
                self.tail.take(line, now);
            }
            if next == at {
                return;
            }
            at = next;
        }
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
