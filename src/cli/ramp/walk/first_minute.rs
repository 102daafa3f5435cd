//! The first minute after a restart of the walk: the server is watched, and measured meanwhile where that was asked for.

use super::super::document::{Ending, Step};
use super::super::outlook;
use super::{QUEUE, Result, Stop, Walk};
use crate::app::forecast;
use crate::cli::bench;
use crate::cli::rig::token;
use crate::ramp::{self, Guarded, RestartPlan};
use crate::service::Status;
use crate::units::thousands;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Between two looks for what a deadline brings back.
const LOOK: Duration = Duration::from_secs(1);

impl Walk<'_> {
    /// Measures what a restart left ready, if that was asked for, and watches its first minute.
    pub(super) async fn stay(
        &mut self,
        plan: &RestartPlan,
        guarded: Option<Guarded>,
    ) -> Result<()> {
        let asked = self.asked_for;
        let session = self.record.as_ref().map(|record| record.session);
        let bench = async move {
            let (name, session) = (asked.args.bench.as_ref()?, session?);
            Some(bench::part_of(session, asked.common, asked.quick, name).await)
        };
        if self.cancelled() {
            return Err(Stop::interrupted("after the restart; the server stays"));
        }
        let measured = self.first_minute(plan, guarded, bench).await?;
        let Some(measured) = measured else {
            return match self.cancelled() {
                true => Err(Stop::interrupted("in the first minute; the server stays")),
                false => Ok(()),
            };
        };
        let at = thousands(plan.to.context);
        let (run, outcome) = match measured {
            Ok(measured) => measured,
            Err(failure) => {
                let why = format!("the benchmark at {at}: {}", failure.text);
                return Err(Stop::new(self.ending().await?, why));
            }
        };
        if let Some(step) = self.steps.last_mut() {
            step.run = Some(run);
        }
        match outcome {
            bench::Outcome::Measured => Ok(()),
            bench::Outcome::Interrupted => Err(Stop::interrupted(&format!(
                "in the benchmark at {at}; what was measured is kept (run {run}), and the server stays"
            ))),
            bench::Outcome::Failed => Err(Stop::new(
                self.ending().await?,
                format!(
                    "the benchmark at {at} has points that do not count: vramp runs show {run} says why. The server stays at {at}, and no further step was taken"
                ),
            )),
        }
    }

    /// Watches the first minute while `beside` goes on. An error where the server crashed in it, with what became of the way back, or
    /// went out of service otherwise.
    pub(super) async fn first_minute<T>(
        &mut self,
        plan: &RestartPlan,
        guarded: Option<Guarded>,
        beside: impl Future<Output = T>,
    ) -> Result<T> {
        let watched = guarded.filter(|g| g.has_way_back() && !self.asked_for.args.no_watch);
        let Some(guarded) = watched else {
            return Ok(beside.await);
        };
        self.progress.line("  watch the first minute");
        let deps = self.deps().await;
        let (events, told) = mpsc::channel(QUEUE);
        let cancel = self.cancel.clone();
        let (rig, site, gpus) = (self.site.rig, self.site.clone(), self.ground.gpus.clone());
        let settled = async move {
            sleep(Duration::from_millis(forecast::SETTLES_MS)).await;
            outlook::cards(&gpus, &site.tenant().await, &rig.profile.cards).await
        };
        let work = async move {
            let guard = ramp::guard(guarded, &deps, events, cancel);
            tokio::join!(guard, beside, settled)
        };
        let (crashed, beside, (gpus, owned)) = self.follow(plan, told, work).await;
        let Some(outcome) = crashed else {
            self.still_there(plan).await?;
            if let Some((foretold, record)) = self.foretold.take().zip(self.record.as_mut()) {
                record.came(foretold, &gpus, &owned.cards);
            }
            return Ok(beside);
        };
        if let Some(step) = self.steps.last_mut() {
            let took_s = step.took_s;
            *step = Step::of(plan.to.context, &outcome);
            step.took_s = took_s;
        }
        self.settle(plan, outcome)?;
        Ok(beside)
    }

    /// Waits until what a deadline brings back answers a token; false if that takes too long.
    async fn came_back(&self, plan: &RestartPlan) -> bool {
        let clock = self.ground.clock;
        let begun = clock.now();
        let patience = self.ground.limits.stuck_after.as_millis();
        while u128::from(clock.now().since(begun)) < patience && !self.cancelled() {
            if let Ok(stand) = self.site.stand().await
                && stand.running().map(|config| config.context) == plan.production
                && let Ok((engine, _)) = self.site.rig.server().await
                && token(engine.as_ref()).await.is_ok()
            {
                return true;
            }
            sleep(LOOK).await;
        }
        false
    }

    /// An error where what the restart brought is not in service any more.
    async fn still_there(&self, plan: &RestartPlan) -> Result<()> {
        let stand = self.site.stand().await?;
        let asked = thousands(plan.to.context);
        let why = "somebody stopped it or brought another value";
        match stand.status {
            Status::Running { ref config, .. } if config.as_ref().is_none_or(|c| *c == plan.to) => {
                Ok(())
            }
            _ if plan.deadline_s.is_some() && self.came_back(plan).await => {
                let back = plan.production.map_or("?".to_string(), thousands);
                Err(Stop::new(
                    Ending::RolledBack,
                    format!(
                        "{asked} was not kept in time: the production value {back} came back by itself"
                    ),
                ))
            }
            Status::Running { .. } => Err(Stop::new(
                self.ending().await?,
                format!("{asked} went out of service in its first minute: {why}"),
            )),
            Status::Stopped { .. } => Err(Stop::new(
                Ending::Halted,
                format!("{asked} went out of service in its first minute: {why}; see vramp status"),
            )),
        }
    }
}
