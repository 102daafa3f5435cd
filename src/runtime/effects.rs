//! Carries out what the core asks for, through the actors.

use super::keeper::{Keeper, RunFacts};
use super::restart::{Job as RestartJob, Restart};
use super::server::{Ask, LockCell, Place, Server};
use super::services::service;
use super::{Say, notify};
use crate::app::bench::Compared;
use crate::app::effect::{Effect, Save};
use crate::app::model::{Activity, Model};
use crate::app::msg::Msg;
use crate::app::question::KeepPlan;
use crate::bench::checks::{self, CheckJob};
use crate::bench::options::Options;
use crate::bench::plan::{Cell, Plan};
use crate::bench::{self, checks::Handle};
use crate::clock::Clock;
use crate::engine::Load;
use crate::gpu::Snapshot;
use crate::host::Host;
use crate::places::Places;
use crate::ramp::{self, Ground};
use crate::report::bench::{RunReport, compare};
use crate::service::Config;
use crate::store::{Store, StoreError};
use std::io::{self, Write};
use std::sync::Arc;
use tokio::sync::watch;

/// Runs that are offered for a comparison, the newest ones.
const RUNS: u32 = 500;

/// What only the loop itself can do.
pub enum Here {
    Suspend,
    Say(Box<Msg>),
}

/// The hands of the cockpit.
pub struct Hands {
    say: Say,
    places: Places,
    server: Option<Server>,
    keeper: Option<Keeper>,
    ground: Option<Ground>,
    lock: LockCell,
    bench: Option<Handle>,
    checks: Option<Handle>,
    restart: Option<Restart>,
    gpus: watch::Receiver<Snapshot>,
    /// The terminal has the operator's attention.
    watched: bool,
    /// The actor at work was found dead at the last look.
    dead: bool,
}

impl Hands {
    /// Starts the actors. Needs the runtime.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn new(
        model: &Model,
        host: Arc<dyn Host>,
        places: Places,
        store: Option<(Store, i64)>,
        say: Say,
        gpus: watch::Receiver<Snapshot>,
        clock: Clock,
    ) -> io::Result<Self> {
        let lock = LockCell::default();
        let keeper = match store {
            Some((store, session)) => Some(Keeper::start(
                store,
                session,
                places.reports(),
                say.clone(),
            )?),
            None => None,
        };
        let mut ground = None;
        let server = model.profile.as_ref().map(|profile| {
            let dir = places.service(profile);
            let service = service(profile, &host, dir.clone());
            ground = service.clone().map(|service| {
                Ground::new(
                    profile,
                    Arc::clone(&host),
                    service,
                    gpus.clone(),
                    dir.clone(),
                    model.who.to_string(),
                    clock,
                )
            });
            let place = Place {
                host,
                service,
                state_dir: dir,
                who: model.who.to_string(),
                lock: lock.clone(),
            };
            Server::start(profile, place, say.clone())
        });
        Ok(Hands {
            say,
            places,
            server,
            keeper,
            ground,
            lock,
            bench: None,
            checks: None,
            restart: None,
            gpus,
            watched: true,
            dead: false,
        })
    }

    /// The newest load of the server.
    pub fn load(&self) -> Option<watch::Receiver<Load>> {
        self.server.as_ref().map(|server| server.load.clone())
    }

    /// A second has begun.
    pub fn beat(&self) {
        if let Some(server) = &self.server {
            server.beat();
        }
    }

    /// The terminal got, or lost, the operator's attention.
    pub fn attention(&mut self, here: bool) {
        self.watched = here;
    }

    /// What an actor that died without a word left unsaid. Asked once a second: its last message is given that long to arrive.
    pub fn post_mortem(&mut self, model: &Model) -> Option<Msg> {
        let activity = model.running.as_ref().map(|running| running.activity);
        let dead = match activity {
            Some(Activity::Bench) => self.bench.as_ref().is_some_and(Handle::is_finished),
            Some(Activity::Checks) => self.checks.as_ref().is_some_and(Handle::is_finished),
            Some(Activity::Restart) => self.restart.as_ref().is_some_and(Restart::is_over),
            _ => false,
        };
        let dead_before = std::mem::replace(&mut self.dead, dead);
        if !(dead && dead_before) {
            return None;
        }
        self.dead = false;
        let what = activity.map_or("work", Activity::words);
        let why = format!(
            "the {what} stopped without a result: a fault of vramp itself, its log says more"
        );
        Some(match activity {
            Some(Activity::Restart) => Msg::RampFailed(why),
            _ => Msg::BenchFailed(why),
        })
    }

    /// Carries one effect out, or hands it back to the loop.
    pub fn carry_out(&mut self, effect: Effect, model: &Model) -> Option<Here> {
        match effect {
            Effect::Attach => self.ask(Ask::Attach),
            Effect::Watch => self.ask(Ask::Watch),
            Effect::LookAway => self.ask(Ask::Pause),
            Effect::Smoke => self.ask(Ask::Smoke),
            Effect::StartBench { plan, cells } => return self.start_bench(plan, cells, model),
            Effect::StopBench => {
                if let Some(bench) = &self.bench {
                    bench.stop();
                }
            }
            Effect::StartChecks { context } => return self.start_checks(context, model),
            Effect::StopChecks => {
                if let Some(checks) = &self.checks {
                    checks.stop();
                }
            }
            Effect::Restart(plan) => return self.restart(RestartJob::Restart(plan), model),
            Effect::StartAbsent(plan) => return self.restart(RestartJob::Start(plan), model),
            Effect::Recover(found) => return self.restart(RestartJob::Recover(found), model),
            Effect::CancelRestart => {
                if let Some(restart) = &self.restart {
                    restart.cancel();
                }
            }
            Effect::Cards(choice) => {
                if let Some(restart) = &self.restart {
                    restart.choose(choice);
                }
            }
            Effect::Deadline(seconds) => self.deadline(seconds),
            Effect::Keep(confirmed) => self.keep(confirmed.into_inner()),
            Effect::LastGood(config) => self.last_good(config),
            Effect::Save(save) => return self.save(save),
            Effect::KeepNothing => self.keeper = None,
            Effect::WriteReport => return self.report(model),
            Effect::ListRuns => self.record(Msg::Runs, |store| store.runs(RUNS)),
            Effect::CompareRuns { a, b } => self.compare(a, b),
            Effect::Copy(text) => {
                return Some(Here::Say(Box::new(Msg::Copied(notify::copy(&text)))));
            }
            Effect::Notify(notice) => {
                if !self.watched {
                    notify::ring(&notice.0);
                }
            }
            Effect::Suspend => return Some(Here::Suspend),
        }
        None
    }

    fn ask(&self, ask: Ask) {
        if let Some(server) = &self.server {
            server.ask(ask);
        }
    }

    fn save(&self, save: Save) -> Option<Here> {
        let kept = self
            .keeper
            .as_ref()
            .map_or(Ok(()), |keeper| keeper.save(save));
        kept.err()
            .map(|why| Here::Say(Box::new(Msg::StoreFailed(why))))
    }

    fn report(&self, model: &Model) -> Option<Here> {
        let asked = match &self.keeper {
            Some(keeper) => keeper.report(model.production()),
            None => Err("there is no session to report on".to_string()),
        };
        asked
            .err()
            .map(|why| Here::Say(Box::new(Msg::ReportWritten(Err(why)))))
    }

    fn start_bench(&mut self, plan: Plan, cells: Vec<Cell>, model: &Model) -> Option<Here> {
        let failed = |why: String| Some(Here::Say(Box::new(Msg::BenchFailed(why))));
        let (Some(profile), Some(facts), Some(server)) =
            (&model.profile, &model.rig.facts, &self.server)
        else {
            return failed("no server is attached".into());
        };
        let name = facts
            .model
            .known()
            .cloned()
            .or_else(|| profile.endpoint.model.clone());
        let Some(name) = name else {
            return failed("the server names no model: put model = \"…\" into the profile".into());
        };
        let seed = fastrand::u64(..);
        let facts_of_run = RunFacts {
            plan: plan.clone(),
            url: profile.endpoint.url.clone(),
            kind: facts.kind,
            version: facts.version.known().cloned(),
            model: name.clone(),
            context: model.served(),
            seed,
            simulated: model.simulated(),
        };
        if let Some(Err(why)) = self
            .keeper
            .as_ref()
            .map(|keeper| keeper.begin_run(facts_of_run))
        {
            return failed(why);
        }
        let job = bench::Job {
            endpoint: profile.endpoint.clone(),
            kind: facts.kind,
            model: name,
            options: Options::for_plan(&plan),
            plan,
            cells,
            context: model.served(),
            seed,
            simulated: model.simulated(),
            load: server.load.clone(),
            gpus: self.gpus.clone(),
        };
        let say = self.say.clone();
        let sink = Box::new(move |event: bench::Event| match event {
            // Live figures are worth nothing a moment later; all else must arrive.
            bench::Event::Live(_) => drop(say.try_send(Msg::Bench(event))),
            event => drop(say.blocking_send(Msg::Bench(event))),
        });
        match bench::run::start(job, sink) {
            Ok(handle) => {
                self.bench = Some(handle);
                None
            }
            Err(error) => failed(format!("the benchmark could not start: {error}")),
        }
    }

    fn start_checks(&mut self, context: u64, model: &Model) -> Option<Here> {
        let failed = |why: String| Some(Here::Say(Box::new(Msg::BenchFailed(why))));
        let (Some(profile), Some(facts)) = (&model.profile, &model.rig.facts) else {
            return failed("no server is attached".into());
        };
        let Some(name) = facts
            .model
            .known()
            .cloned()
            .or_else(|| profile.endpoint.model.clone())
        else {
            return failed("the server names no model: put model = \"…\" into the profile".into());
        };
        let job = CheckJob {
            endpoint: profile.endpoint.clone(),
            kind: facts.kind,
            model: name,
            context: Some(context),
            quick: model.settings.quick,
            seed: fastrand::u64(..),
            cards: model.cards().to_vec(),
            gpus: self.gpus.clone(),
        };
        let say = self.say.clone();
        let sink = Box::new(move |event: checks::Event| drop(say.blocking_send(Msg::Check(event))));
        match checks::start(job, sink) {
            Ok(handle) => {
                self.checks = Some(handle);
                None
            }
            Err(error) => failed(format!("the checks could not start: {error}")),
        }
    }

    fn restart(&mut self, job: RestartJob, model: &Model) -> Option<Here> {
        let failed = |why: String| Some(Here::Say(Box::new(Msg::RampFailed(why))));
        let Some(ground) = self.ground.clone() else {
            return failed("this server is only attached".into());
        };
        let Some(lock) = self.lock.get().cloned() else {
            return failed(
                "the lock of this service is not ours: another vramp works on it".into(),
            );
        };
        if self
            .restart
            .as_ref()
            .is_some_and(|restart| !restart.is_over())
        {
            return failed("another restart is still under way".into());
        }
        self.ask(Ask::Pause);
        if let Some(earlier) = self.restart.take() {
            // Its first minute is not over: this one takes the watch from it.
            earlier.abandon();
        }
        match Restart::begin(job, ground, lock, model.simulated(), self.say.clone()) {
            Ok(restart) => {
                self.restart = Some(restart);
                None
            }
            Err(why) => failed(why),
        }
    }

    /// Gives the trial another deadline, off this thread.
    fn deadline(&self, seconds: Option<u64>) {
        let Some(ground) = self.ground.clone() else {
            return;
        };
        let say = self.say.clone();
        tokio::spawn(async move {
            let set = ramp::set_deadline(&ground, seconds).await;
            let set = set.map(|at| (seconds, at));
            let _ = say
                .send(Msg::Deadline(set.map_err(|error| error.to_string())))
                .await;
        });
    }

    /// Makes the trial what a reboot brings, off this thread: a disk may hang.
    fn keep(&mut self, plan: KeepPlan) {
        // What is kept is what a start brings from now on: nothing else may come back in its place by itself.
        if let Some(watch) = self.restart.take_if(|restart| restart.is_over()) {
            watch.abandon();
        }
        let say = self.say.clone();
        let Some(ground) = self.ground.clone() else {
            return;
        };
        tokio::spawn(async move {
            let (host, service) = (ground.host.as_ref(), ground.service.as_ref());
            let kept = ramp::keep(host, service, &plan.config).await;
            let _ = say.send(Msg::Kept(kept)).await;
        });
    }

    /// Reads the record on a thread of its own: a disk may hang, and a cockpit that keeps nothing may read all the same.
    fn record<T: Send + 'static>(
        &self,
        told: fn(Result<T, String>) -> Msg,
        read: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) {
        let (say, path) = (self.say.clone(), self.places.database());
        tokio::task::spawn_blocking(move || {
            let found = Store::open(&path).and_then(|store| read(&store));
            let found = found.map_err(|error| error.to_string());
            let _ = say.blocking_send(told(found));
        });
    }

    fn compare(&self, a: i64, b: i64) {
        let told = |found: Result<Result<Box<Compared>, String>, String>| {
            Msg::Compared(found.and_then(|found| found))
        };
        self.record(told, move |store| {
            let gone = |id: i64| format!("run {id} is no longer on record; vramp runs lists them");
            let Some(first) = RunReport::read(store, a)? else {
                return Ok(Err(gone(a)));
            };
            let Some(second) = RunReport::read(store, b)? else {
                return Ok(Err(gone(b)));
            };
            let found = compare(&first, &second, |point| store.requests(point))?;
            Ok(Ok(Box::new(Compared::new(first, second, found))))
        });
    }

    fn last_good(&self, config: Config) {
        let Some(ground) = &self.ground else { return };
        let (host, dir) = (Arc::clone(&ground.host), ground.dir.clone());
        let say = self.say.clone();
        tokio::spawn(async move {
            if let Err(error) = ramp::save_last_good(host.as_ref(), &dir, &config).await {
                let _ = say.send(Msg::StoreFailed(error.to_string())).await;
            }
        });
    }

    /// Lets go of everything. A restart under way stays as it is, with its intent on disk. Only the demo's own server ends.
    pub async fn close(&mut self, model: &Model) {
        for handle in [self.bench.take(), self.checks.take()]
            .into_iter()
            .flatten()
        {
            handle.stop();
        }
        if let Some(restart) = self.restart.take() {
            restart.abandon();
        }
        if !model.unsaved.is_empty() {
            let _ = self.save(Save::Memory(model.unsaved.clone()));
        }
        self.keeper = None;
        if model.settings.demo
            && model.settings.read_only.is_none()
            && let Some(ground) = &self.ground
        {
            if let Err(error) = ground.service.stop().await {
                // The terminal may be gone, and standard error with it.
                let _ = writeln!(
                    io::stderr(),
                    "vramp: the demo's server could not be stopped: {error}"
                );
                tracing::error!("the demo's server could not be stopped: {error}");
            }
            if let Err(error) = ramp::forget(ground.host.as_ref(), &ground.dir).await {
                tracing::warn!("demo: {error}");
            }
        }
        tracing::info!(data = %self.places.data.display(), "closed");
    }
}
