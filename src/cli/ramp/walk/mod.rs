//! The walk: one restart after the other, each with its way back, up to the trial.

mod after;

use super::super::rig::{Rig, Stand, stranger};
use super::super::{Common, Failure};
use super::Locked;
use super::alone::alone;
use super::args::RampArgs;
use super::document::{Ending, Step};
use super::progress::Progress;
use super::record::Record;
use crate::clock::Clock;
use crate::confirm::{Confirmed, Pending};
use crate::engine::{Engine, EngineError, Facts};
use crate::gpu;
use crate::ramp::{self, Ground, Intent, Known, Lock, Outcome, Purpose, RestartPlan, WayOut};
use crate::runtime::{self, Which};
use crate::service::{Config, Service};
use crate::units::thousands;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How often the cards are read.
const GPU_PERIOD: Duration = Duration::from_secs(1);
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

/// The service as it was looked at before a step.
struct Seen {
    stand: Stand,
    server: Option<(Arc<dyn Engine>, Facts)>,
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
    rig: &'a Rig,
    service: Arc<dyn Service>,
    ground: Ground,
    lock: Locked,
    cancel: watch::Receiver<bool>,
    progress: Progress,
    record: Option<Record>,
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
        let service = rig
            .service
            .clone()
            .ok_or_else(|| Failure::wrong_use("the profile does not say how the server is run"))?;
        let clock = Clock::default();
        let (gpus, cards) = gpu::watch::watch(gpu::source_on(&rig.host), clock, GPU_PERIOD);
        let mut ground = Ground::new(
            &rig.profile,
            Arc::clone(&rig.host),
            Arc::clone(&service),
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
            rig,
            service,
            ground,
            lock: Arc::new(lock),
            cancel,
            progress,
            record: None,
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
        self.simulated = match self.rig.server().await {
            Ok((_, facts)) => facts.simulated,
            Err(_) => false,
        };
        self.record = Some(Record::open(
            self.rig,
            self.asked_for.which,
            self.simulated,
        )?);
        let ended = self.walk().await;
        if let Some(record) = &mut self.record {
            record.last_good(self.rig, self.service.as_ref()).await;
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
            let context = self.start(&seen, to).await?;
            self.measure(context).await?;
            seen = self.look().await?;
        }
        let from = seen.stand.running().map(|config| config.context);
        for context in contexts(from, to, &self.asked_for.args.ladder) {
            self.change(context).await?;
            self.measure(context).await?;
        }
        if let Some(typed) = self.asked_for.args.confirm {
            self.keep(to, typed).await?;
        }
        self.ending().await
    }

    /// What is in service, when nothing failed.
    async fn ending(&self) -> Result<Ending> {
        let stand = self.stand().await?;
        Ok(match stand.trial() {
            Some(_) => Ending::Trial,
            None => Ending::Production,
        })
    }

    async fn stand(&self) -> Result<Stand> {
        Stand::of(self.service.as_ref())
            .await
            .map_err(Stop::refused)
    }

    /// Takes up the restart that an earlier vramp left, the way the operator named. `None`: there is none.
    async fn recover(&mut self) -> Result<Option<Ending>> {
        let Some(intent) = self.rig.intent().await.map_err(Stop::refused)? else {
            return Ok(None);
        };
        let to = intent.plan.to.context;
        let ways = [WayOut::GoOn, WayOut::RollBack];
        let typed = self.asked_for.args.recover.as_deref();
        let Some(way) = ways.into_iter().find(|way| Some(way.word()) == typed) else {
            let back = intent.plan.on_failure.as_ref();
            let back = back.map_or("nothing".to_string(), |t| thousands(t.config.context));
            return Err(Stop::refused(format!(
                "an unfinished restart to {} by {} stands at the step \"{}\". Finish it with --recover go-on, or bring {back} back with --recover roll-back",
                thousands(to),
                intent.by,
                intent.step.words()
            )));
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
                self.ending().await.map(Some)
            }
        }
    }

    /// Looks at the service, and refuses where what answers is not the service's own or cannot be come back to.
    async fn look(&mut self) -> Result<Seen> {
        let stand = self.stand().await?;
        let server = self.rig.server().await;
        let (name, url) = (self.service.name(), &self.rig.profile.endpoint.url);
        if !stand.runs() {
            let there = matches!(
                server,
                Ok(_)
                    | Err(EngineError::Loading
                        | EngineError::Denied { .. }
                        | EngineError::Strange { .. }
                        | EngineError::Status { .. })
            );
            if there {
                return Err(Stop::refused(format!(
                    "{url} answers, though {name} does not run: vramp did not start that server and does not stop it. Stop it yourself, or correct the url of the profile"
                )));
            }
        } else if let Some(what) = stranger(self.service.as_ref()).await {
            return Err(Stop::refused(format!(
                "{what} at {url}, and that is not {name}, which runs too: stop one of them yourself, or correct the url of the profile"
            )));
        } else if stand.running().is_none() {
            return Err(Stop::refused(format!(
                "{name} runs, and what it was started with is not known: there would be no way back. Stop it yourself, and vramp starts it"
            )));
        }
        let server = server.ok();
        if let Some((_, facts)) = &server {
            self.simulated = facts.simulated;
        }
        Ok(Seen { stand, server })
    }

    async fn known(&self, stand: &Stand) -> Result<Known> {
        let running = stand.running().cloned();
        let good = ramp::load_last_good(self.rig.host.as_ref(), &self.rig.dir)
            .await
            .map_err(Stop::refused)?;
        Ok(Known {
            last_good: good
                .filter(|good| ramp::fits(good, Some(&stand.standing.launch), running.as_ref())),
            running,
            production: stand.standing.production,
        })
    }

    async fn plan(&self, stand: &Stand, purpose: Purpose, context: u64) -> Result<RestartPlan> {
        let to = Config {
            context,
            launch: stand.standing.launch.clone(),
        };
        let known = self.known(stand).await?;
        let deadline = self.rig.profile.confirm_within_s;
        Ok(RestartPlan::new(purpose, to, known, deadline))
    }

    /// Nothing runs: the production value comes first, and what is asked for afterwards has a way back.
    async fn start(&mut self, seen: &Seen, to: u64) -> Result<u64> {
        let ladder = &self.rig.profile.ladder;
        let below: Vec<u64> = ladder.iter().copied().filter(|step| *step <= to).collect();
        let production = seen.stand.standing.production;
        let context = ramp::start_context(production, &below).unwrap_or(to);
        let plan = self.plan(&seen.stand, Purpose::Start, context).await?;
        self.progress.plan(&plan);
        let outcome = self.carry_out(Job::Start(plan.clone()), &plan).await;
        self.settle(&plan, outcome)?;
        Ok(context)
    }

    /// One step to another context.
    async fn change(&mut self, context: u64) -> Result<()> {
        if self.cancelled() {
            return Err(Stop::interrupted("between two steps"));
        }
        if let Some(record) = &mut self.record {
            record.last_good(self.rig, self.service.as_ref()).await;
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
        self.progress.plan(&plan);
        let confirmed =
            confirm(plan.clone()).ok_or_else(|| Stop::refused("it was not confirmed"))?;
        let outcome = self.carry_out(Job::Restart(confirmed), &plan).await;
        self.settle(&plan, outcome)
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
        let deps = self
            .ground
            .deps(Arc::clone(&self.lock), self.simulated)
            .await;
        let (events, mut told) = mpsc::channel(QUEUE);
        let cancel = self.cancel.clone();
        let work = async {
            match job {
                Job::Restart(plan) => ramp::run(plan, &deps, events, cancel).await,
                Job::Start(plan) => ramp::start(plan, &deps, events, cancel).await,
                Job::Recover(found) => ramp::resume(found, &deps, events, cancel).await,
            }
        };
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
        let (outcome, ()) = tokio::join!(work, show);
        self.steps.push(Step::of(plan.to.context, &outcome));
        outcome
    }

    fn cancelled(&self) -> bool {
        *self.cancel.borrow()
    }
}

/// The contexts to restart at, in order: the steps between `from` and `to`, then `to`. None where it runs already.
fn contexts(from: Option<u64>, to: u64, ladder: &[u64]) -> Vec<u64> {
    if from == Some(to) {
        return Vec::new();
    }
    let from = from.unwrap_or(0);
    let (low, high) = (from.min(to), from.max(to));
    let mut steps: Vec<u64> = ladder
        .iter()
        .copied()
        .filter(|step| (low + 1..high).contains(step))
        .collect();
    steps.sort_unstable();
    steps.dedup();
    if to < from {
        steps.reverse();
    }
    steps.push(to);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_lie_between_what_runs_and_what_is_asked_for() {
        let ladder = [131_072, 32_768, 65_536, 65_536];
        assert_eq!(contexts(Some(32_768), 131_072, &ladder), [65_536, 131_072]);
        assert_eq!(contexts(Some(32_768), 100_000, &ladder), [65_536, 100_000]);
        assert_eq!(contexts(Some(131_072), 32_768, &ladder), [65_536, 32_768]);
        assert_eq!(contexts(Some(32_768), 131_072, &[]), [131_072]);
        assert!(contexts(Some(4096), 4096, &ladder).is_empty());
        assert_eq!(contexts(None, 65_536, &ladder), [32_768, 65_536]);
    }
}
