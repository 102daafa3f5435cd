//! The walk: one restart after the other, each with its way back, up to the trial.

mod after;
mod first_minute;

use super::super::rig::{Rig, Stand};
use super::super::{Common, Failure};
use super::Locked;
use super::alone::alone;
use super::args::RampArgs;
use super::document::{Ending, Step};
use super::outlook::{self, Outlook};
use super::progress::Progress;
use super::record::Record;
use super::site::{Seen, Site, contexts};
use crate::app::forecast::Foretold;
use crate::clock::Clock;
use crate::confirm::{Confirmed, Pending};
use crate::gpu;
use crate::ramp::{
    self, Deps, Event, Ground, Guarded, Intent, Lock, Outcome, Purpose, RestartPlan, WayOut,
};
use crate::runtime::{self, Which};
use crate::units::thousands;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How often the cards are read.
pub const GPU_PERIOD: Duration = Duration::from_secs(1);
/// Events that may wait for standard error.
const QUEUE: usize = 512;

/// Why it went no further.
#[derive(Debug)]
pub struct Stop {
    pub ending: Ending,
    pub reason: String,
}

impl Stop {
    fn new(ending: Ending, reason: impl ToString) -> Stop {
        Stop {
            ending,
            reason: reason.to_string(),
        }
    }

    /// Nothing was stopped.
    pub fn refused(reason: impl ToString) -> Stop {
        Stop::new(Ending::Refused, reason)
    }

    pub fn interrupted(when: &str) -> Stop {
        Stop::new(Ending::Interrupted, format!("interrupted {when}"))
    }
}

type Result<T> = std::result::Result<T, Stop>;

/// A restart to carry out.
enum Job {
    Restart(Confirmed<RestartPlan>),
    Start(RestartPlan),
    Recover(Confirmed<(Intent, WayOut)>),
}

/// What was asked for on the command line.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub common: &'a Common,
    /// Less work in the plans.
    pub quick: bool,
    pub args: &'a RampArgs,
    /// The session that it belongs to.
    pub which: Which,
}

pub struct Walk<'a> {
    asked_for: Asked<'a>,
    site: Site<'a>,
    ground: Ground,
    lock: Locked,
    cancel: watch::Receiver<bool>,
    progress: Progress,
    record: Option<Record>,
    /// What was forecast for the restart that goes on.
    foretold: Option<Foretold>,
    /// We have sent requests in this walk.
    asked: bool,
    pub simulated: bool,
    pub steps: Vec<Step>,
    /// Reads the cards for as long as the walk goes on.
    _cards: gpu::watch::Control,
}

impl<'a> Walk<'a> {
    /// # Errors
    /// The profile has no service.
    pub fn new(
        asked_for: Asked<'a>,
        rig: &'a Rig,
        lock: Lock,
        cancel: watch::Receiver<bool>,
        progress: Progress,
    ) -> std::result::Result<Self, Failure> {
        let site = Site::of(rig)?;
        let clock = Clock::default();
        let (gpus, cards) = gpu::watch::watch(gpu::source_on(&rig.host), clock, GPU_PERIOD);
        let mut ground = Ground::new(
            &rig.profile,
            Arc::clone(&rig.host),
            Arc::clone(&site.service),
            gpus,
            rig.dir.clone(),
            runtime::who().to_string(),
            clock,
        );
        if let Some(seconds) = asked_for.args.wait_cards {
            ground.limits.release_after = Duration::from_secs(seconds);
        }
        Ok(Walk {
            asked_for,
            site,
            ground,
            lock: Arc::new(lock),
            cancel,
            progress,
            record: None,
            foretold: None,
            asked: false,
            simulated: false,
            steps: Vec::new(),
            _cards: cards,
        })
    }

    /// To its end. The inner result says whether that is what was asked for.
    ///
    /// # Errors
    /// The record cannot be opened; nothing was stopped then.
    pub async fn go(&mut self) -> std::result::Result<Result<Ending>, Failure> {
        self.simulated = match self.site.rig.server().await {
            Ok((_, facts)) => facts.simulated,
            Err(_) => false,
        };
        self.record = Some(Record::open(
            self.site.rig,
            self.asked_for.which,
            self.simulated,
        )?);
        let ended = self.walk().await;
        if let Some(record) = &mut self.record {
            record
                .last_good(self.site.rig, self.site.service.as_ref())
                .await;
            for fault in &record.faults {
                self.progress.line(&format!("not kept on record: {fault}"));
            }
        }
        Ok(ended)
    }

    async fn walk(&mut self) -> Result<Ending> {
        let recovered = self.recover().await?;
        if self.asked_for.args.roll_back {
            return self.roll_back().await;
        }
        let Some(to) = self.asked_for.args.to else {
            return recovered.ok_or_else(|| {
                Stop::refused("no unfinished restart is on disk: there is nothing to recover")
            });
        };
        let mut seen = self.look().await?;
        if !seen.stand.runs() {
            self.start(&seen, to).await?;
            seen = self.look().await?;
        }
        let from = seen.stand.running().map(|config| config.context);
        for context in contexts(from, to, &self.asked_for.args.ladder) {
            self.change(context).await?;
        }
        if let Some(typed) = self.asked_for.args.confirm {
            self.keep(to, typed).await?;
        }
        self.ending().await
    }

    /// What is in service, when nothing failed.
    async fn ending(&self) -> Result<Ending> {
        let stand = self.site.stand().await?;
        Ok(match stand.trial() {
            Some(_) => Ending::Trial,
            None => Ending::Production,
        })
    }

    /// Takes up the restart that an earlier vramp left, the way the operator named. `None`: there is none.
    async fn recover(&mut self) -> Result<Option<Ending>> {
        let found = self.site.rig.intent().await.map_err(Stop::refused)?;
        let Some(intent) = found else {
            return Ok(None);
        };
        let to = intent.plan.to.context;
        let ways = [WayOut::GoOn, WayOut::RollBack];
        let typed = self.asked_for.args.recover.as_deref();
        let Some(way) = ways.into_iter().find(|way| Some(way.word()) == typed) else {
            self.site.finished().await?;
            return Ok(None);
        };
        self.progress.line(&format!(
            "unfinished restart to {}, at the step \"{}\": {}",
            thousands(to),
            intent.step.words(),
            way.word()
        ));
        let plan = intent.plan.clone();
        let confirmed = Pending::new((intent, way)).by_word(typed.unwrap_or_default(), way.word());
        let confirmed = confirmed.map_err(|_| Stop::refused("the way out was not confirmed"))?;
        let guarded = Guarded::found(&confirmed);
        let outcome = self.carry_out(Job::Recover(confirmed), &plan).await;
        match (way, &outcome) {
            (WayOut::RollBack, Outcome::RolledBack { to, facts, .. }) => {
                if let Some(record) = &mut self.record {
                    record.serves(&to.config, facts, None);
                }
                Ok(Some(Ending::RolledBack))
            }
            _ => {
                self.settle(&plan, outcome)?;
                self.first_minute(&plan, guarded, async {}).await?;
                self.ending().await.map(Some)
            }
        }
    }

    /// Looks at the service before a step.
    async fn look(&mut self) -> Result<Seen> {
        let seen = self.site.look().await?;
        if let Some(facts) = seen.facts() {
            self.simulated = facts.simulated;
        }
        Ok(seen)
    }

    async fn plan(&self, stand: &Stand, purpose: Purpose, context: u64) -> Result<RestartPlan> {
        let known = self.site.known(stand).await?;
        Ok(self.site.plan(stand, purpose, context, known))
    }

    /// Nothing runs: the production value comes first, and what is asked for afterwards has a way back.
    async fn start(&mut self, seen: &Seen, to: u64) -> Result<()> {
        let context = self.site.start_context(&seen.stand, to);
        let plan = self.plan(&seen.stand, Purpose::Start, context).await?;
        self.tell(seen, &plan).await;
        let outcome = self.carry_out(Job::Start(plan.clone()), &plan).await;
        self.settle(&plan, outcome)?;
        self.stay(&plan, None).await
    }

    /// One step to another context.
    async fn change(&mut self, context: u64) -> Result<()> {
        if self.cancelled() {
            return Err(Stop::interrupted("between two steps"));
        }
        if let Some(record) = &mut self.record {
            record
                .last_good(self.site.rig, self.site.service.as_ref())
                .await;
        }
        let seen = self.look().await?;
        let plan = self.plan(&seen.stand, Purpose::Change, context).await?;
        self.restart(seen, plan, |plan| {
            Pending::new(plan).by_number(context, context).ok()
        })
        .await
    }

    async fn restart(
        &mut self,
        seen: Seen,
        plan: RestartPlan,
        confirm: impl FnOnce(RestartPlan) -> Option<Confirmed<RestartPlan>>,
    ) -> Result<()> {
        if let Some((engine, _)) = &seen.server {
            alone(
                engine.as_ref(),
                self.asked_for.args,
                self.asked,
                self.ground.clock,
                &self.cancel,
                &self.progress,
            )
            .await?;
        }
        self.tell(&seen, &plan).await;
        let confirmed =
            confirm(plan.clone()).ok_or_else(|| Stop::refused("it was not confirmed"))?;
        let guarded = Guarded::of(&confirmed);
        let outcome = self.carry_out(Job::Restart(confirmed), &plan).await;
        self.settle(&plan, outcome)?;
        self.stay(&plan, Some(guarded)).await
    }

    /// What is about to be done, what it will cost, and what it changes.
    async fn tell(&mut self, seen: &Seen, plan: &RestartPlan) {
        let tried = self.record.as_ref().map(Record::tried_so_far);
        let (rig, tenant) = (self.site.rig, self.site.tenant().await);
        let outlook = Outlook::new(
            rig,
            seen.facts(),
            self.site.geometry(seen, &tenant).await,
            tried.unwrap_or_default(),
            outlook::cards(&self.ground.gpus, &tenant, &rig.profile.cards).await,
            self.ground.clock.now(),
            plan,
        );
        self.progress.plan(plan, &outlook);
        self.foretold = outlook.foretold;
    }

    async fn roll_back(&mut self) -> Result<Ending> {
        let seen = self.look().await?;
        let Some(production) = seen.stand.standing.production else {
            return Err(Stop::refused(
                "no production value is on record, so there is nothing to roll back to; name a context with --to",
            ));
        };
        if !seen.stand.runs() {
            self.start(&seen, production).await?;
        } else if seen.stand.trial().is_some() {
            let plan = self
                .plan(&seen.stand, Purpose::RollBack, production)
                .await?;
            let word = WayOut::RollBack.word();
            self.restart(seen, plan, |plan| {
                Pending::new(plan).by_word(word, word).ok()
            })
            .await?;
        } else {
            self.progress.line(&format!(
                "{} is the production value and in service: nothing to roll back",
                thousands(production)
            ));
        }
        self.ending().await
    }

    /// Carries a restart out, and tells what happens.
    async fn carry_out(&mut self, job: Job, plan: &RestartPlan) -> Outcome {
        self.asked = true;
        let deps = self.deps().await;
        let (events, told) = mpsc::channel(QUEUE);
        let cancel = self.cancel.clone();
        let work = async {
            match job {
                Job::Restart(plan) => ramp::run(plan, &deps, events, cancel).await,
                Job::Start(plan) => ramp::start(plan, &deps, events, cancel).await,
                Job::Recover(found) => ramp::resume(found, &deps, events, cancel).await,
            }
        };
        let outcome = self.follow(plan, told, work).await;
        self.steps.push(Step::of(plan.to.context, &outcome));
        outcome
    }

    async fn deps(&self) -> Deps {
        self.ground
            .deps(Arc::clone(&self.lock), self.simulated)
            .await
    }

    /// Tells and records what happens while `work` goes on.
    async fn follow<T>(
        &mut self,
        plan: &RestartPlan,
        mut told: mpsc::Receiver<Event>,
        work: impl Future<Output = T>,
    ) -> T {
        let from = plan.from.as_ref().map(|config| config.context);
        let (progress, record) = (&mut self.progress, &mut self.record);
        let show = async {
            while let Some(event) = told.recv().await {
                progress.event(&event);
                if let Some(record) = record.as_mut() {
                    record.told(&event, from);
                }
            }
        };
        tokio::join!(work, show).0
    }

    fn cancelled(&self) -> bool {
        *self.cancel.borrow()
    }
}
