//! Carries a restart out: the machine says what follows, the steps touch the world, the intent is on disk before each.

use super::intent::{self, OnDisk};
use super::machine::{self, End, Next, Running, Seen, State};
use super::tail::Tail;
use super::{
    Deps, Event, Intent, Leg, Outcome, Purpose, RestartPlan, StartFailure, Step, Target,
    TargetKind, WayOut, failure,
};
use crate::clock::Now;
use crate::confirm::Confirmed;
use crate::engine::Engine;
use crate::service::{Config, ProcessId, Status};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Carries out a confirmed restart to its end.
///
/// Steps and the end reach `events` for certain, log lines as far as it has room. `cancel` turning true ends the forward leg as
/// a failure does; on the way back it changes nothing. An unfinished restart that is on disk is replaced, one that cannot be
/// understood refuses this one.
///
/// Dropping the future at any moment leaves the intent on disk and is what a killed cockpit does.
pub async fn run(
    plan: Confirmed<RestartPlan>,
    deps: &Deps,
    events: mpsc::Sender<Event>,
    cancel: watch::Receiver<bool>,
) -> Outcome {
    begin(plan.into_inner(), deps, events, cancel).await
}

/// Starts a server where none runs. Nothing can be lost by it, so it needs no confirmation; refused as soon as anything of the
/// service runs.
pub async fn start(
    plan: RestartPlan,
    deps: &Deps,
    events: mpsc::Sender<Event>,
    cancel: watch::Receiver<bool>,
) -> Outcome {
    let why = match deps.service.status().await {
        Ok(Status::Stopped { .. }) if plan.purpose == Purpose::Start && plan.from.is_none() => None,
        Ok(_) => Some("a first start is for a service that does not run".to_string()),
        Err(error) => Some(error.to_string()),
    };
    match why {
        Some(why) => refuse(failure::at(Step::Validate, why), &events).await,
        None => begin(plan, deps, events, cancel).await,
    }
}

async fn begin(
    plan: RestartPlan,
    deps: &Deps,
    events: mpsc::Sender<Event>,
    cancel: watch::Receiver<bool>,
) -> Outcome {
    if let Err(error) = intent::read(deps.host.as_ref(), &deps.dir).await {
        return refuse(failure::at(Step::Validate, error), &events).await;
    }
    let target = plan.on_failure.clone();
    let on_disk = OnDisk {
        intent: Intent {
            version: intent::VERSION,
            plan,
            leg: Leg::Forward,
            step: Step::Validate,
            since_unix_ms: deps.clock.now().unix_ms,
            by: deps.by.clone(),
            failure: None,
            simulated: deps.simulated,
        },
        levels: Vec::new(),
        members: Vec::new(),
        log_from: None,
    };
    let first = Next::Take(State::Forward(Step::Validate));
    let mut run = Run::new(deps, on_disk, target, events, cancel);
    run.untouched = true;
    run.drive(first).await
}

/// Takes up the unfinished restart that [`super::find`] found, the confirmed way. It is refused, and the intent left, if another
/// one is on disk by now or the service does not say what runs.
pub async fn resume(
    found: Confirmed<(Intent, WayOut)>,
    deps: &Deps,
    events: mpsc::Sender<Event>,
    cancel: watch::Receiver<bool>,
) -> Outcome {
    let (intent, way) = found.into_inner();
    let on_disk = match intent::read(deps.host.as_ref(), &deps.dir).await {
        Ok(Some(on_disk)) if on_disk.intent == intent => on_disk,
        Ok(_) => {
            let changed = "the unfinished restart is not the one on disk any more; look again";
            return refuse(failure::at(intent.step, changed), &events).await;
        }
        Err(error) => return refuse(failure::at(intent.step, error), &events).await,
    };
    let runs = match deps.service.status().await {
        Ok(Status::Running { config, .. }) => Some(config),
        Ok(Status::Stopped { .. }) => None,
        Err(error) => return refuse(failure::at(intent.step, error), &events).await,
    };
    let plan = &intent.plan;
    let target_config = plan.on_failure.as_ref().map(|target| &target.config);
    let running = match &runs {
        None => Running::Nothing,
        Some(Some(config)) if *config == plan.to => Running::Asked,
        Some(Some(config)) if Some(config) == target_config => Running::Target,
        Some(_) => Running::Other,
    };
    let why = match &intent.failure {
        Some(cause) => failure::at(intent.step, cause),
        None => failure::at(
            intent.step,
            format!("interrupted at the step: {}", intent.step.words()),
        ),
    };
    let first = machine::enter(
        (intent.leg, intent.step),
        way,
        running,
        target_config.is_some(),
        why,
    );
    // Nothing was stopped, and what runs is to be proven as it is.
    let untouched = matches!(first, Next::Take(State::Back(Step::Prove, _)));
    let left_alone = runs.flatten().or_else(|| plan.from.clone());
    let target = match left_alone {
        Some(config) if untouched && Some(&config) != target_config => Some(Target {
            kind: TargetKind::Previous,
            config,
        }),
        _ => plan.on_failure.clone(),
    };
    Run::new(deps, on_disk, target, events, cancel)
        .drive(first)
        .await
}

async fn refuse(failure: StartFailure, events: &mpsc::Sender<Event>) -> Outcome {
    let outcome = Outcome::Refused { failure };
    let _ = events.send(Event::Ended(outcome.clone())).await;
    outcome
}

/// One restart on its way.
pub(super) struct Run<'a> {
    pub(super) deps: &'a Deps,
    pub(super) on_disk: OnDisk,
    pub(super) target: Option<Target>,
    /// The process of the present leg, once it is started.
    pub(super) process: Option<ProcessId>,
    /// Reads log lines.
    pub(super) reader: Option<Arc<dyn Engine>>,
    pub(super) tail: Tail,
    pub(super) log_at: u64,
    /// It was told that the start seems to hang, and not since that it gets on.
    pub(super) warned: bool,
    /// The step is taken again, because the host was lost in the middle of it: it may have been done.
    pub(super) again: bool,
    /// The order to stop was not given yet.
    pub(super) untouched: bool,
    /// The deadline that stood when ours was armed, Unix milliseconds; `None` where none was armed.
    pub(super) armed_over: Option<Option<i64>>,
    events: mpsc::Sender<Event>,
    pub(super) cancel: watch::Receiver<bool>,
    begun: Now,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        deps: &'a Deps,
        on_disk: OnDisk,
        target: Option<Target>,
        events: mpsc::Sender<Event>,
        cancel: watch::Receiver<bool>,
    ) -> Run<'a> {
        let begun = deps.clock.now();
        Run {
            deps,
            on_disk,
            target,
            process: None,
            reader: deps.reader.clone(),
            tail: Tail::new(None, begun),
            log_at: 0,
            warned: false,
            again: false,
            untouched: false,
            armed_over: None,
            events,
            cancel,
            begun,
        }
    }

    pub(super) async fn drive(mut self, mut next: Next) -> Outcome {
        let end = loop {
            let state = match next {
                Next::Take(state) => state,
                Next::End(end) => break end,
            };
            let seen = match self.take(&state).await {
                Seen::Failed(failure) if self.untouched => Seen::Untouched(failure),
                seen => seen,
            };
            next = machine::next(state, seen, self.target.is_some());
        };
        let outcome = self.finish(end).await;
        self.send(Event::Ended(outcome.clone())).await;
        outcome
    }

    /// Takes a step; again from its beginning where it failed while the host was lost.
    async fn take(&mut self, state: &State) -> Seen {
        self.again = false;
        loop {
            if let Err(failure) = self.reach(state.leg(), state.step()).await {
                return Seen::Failed(failure);
            }
            let losses = self.deps.host.losses();
            let seen = self.take_once(state).await;
            let lost = self.deps.host.losses() > losses;
            let given_up = state.leg() == Leg::Forward && *self.cancel.borrow();
            if !(lost && matches!(seen, Seen::Failed(_))) || given_up {
                return seen;
            }
            self.again = true;
        }
    }

    async fn take_once(&mut self, state: &State) -> Seen {
        let (leg, step) = (state.leg(), state.step());
        if let Err(error) = self.put_on_disk(state).await {
            if leg == Leg::Forward {
                return Seen::Failed(failure::at(step, error));
            }
            // A server that is down is worse: an earlier intent still stands, and the way back can be taken up from it.
            self.note(&error.to_string());
        }
        let config = self.config(leg).clone();
        let context = config.context;
        self.send(Event::Step { leg, step, context }).await;
        let mut cancel = self.cancel.clone();
        let stopped = async move {
            if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
                // Nobody is left who could cancel.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = stopped, if leg == Leg::Forward => Seen::Failed(failure::by_operator(step)),
            seen = self.step(leg, step, &config) => seen.unwrap_or_else(Seen::Failed),
        }
    }

    async fn put_on_disk(&mut self, state: &State) -> Result<(), super::RampError> {
        self.on_disk.intent.leg = state.leg();
        self.on_disk.intent.step = state.step();
        if let State::Back(_, failure) = state {
            self.on_disk.intent.failure = Some(failure.cause.clone());
        }
        if state.step() == Step::Start && !self.again {
            // Without it the log of the start is read from where it ends when it is looked at.
            self.on_disk.log_from = self.deps.service.log_end().await.ok();
        }
        intent::write(self.deps.host.as_ref(), &self.deps.dir, &self.on_disk).await
    }

    /// The intent goes with the end, but for a halt with a way back left to be taken by the operator's key.
    async fn finish(&mut self, end: End) -> Outcome {
        let keep = matches!(end, End::Halted { .. }) && self.target.is_some();
        self.aftermath(&end).await;
        let outcome = match (end, &self.target) {
            (End::Ready(facts), _) => Outcome::Ready {
                facts,
                took_ms: self.deps.clock.now().since(self.begun),
            },
            (End::Refused(failure), _) => Outcome::Refused { failure },
            (End::RolledBack(failure, facts), Some(to)) => Outcome::RolledBack {
                failure,
                to: to.clone(),
                facts,
            },
            // The machine rolls back only to a target.
            (End::RolledBack(failure, _), None) => Outcome::Halted {
                failure,
                back: None,
            },
            (End::Halted { failure, back }, _) => Outcome::Halted { failure, back },
        };
        if keep {
            return outcome;
        }
        if let Err(error) = intent::remove(self.deps.host.as_ref(), &self.deps.dir).await {
            self.note(&format!(
                "{error}; the next start of vramp will ask about it"
            ));
        }
        outcome
    }

    /// The configuration of a leg. Without a target the way back only stops.
    fn config(&self, leg: Leg) -> &Config {
        match (&self.target, leg) {
            (Some(target), Leg::Back) => &target.config,
            _ => &self.on_disk.intent.plan.to,
        }
    }

    pub(super) async fn send(&self, event: Event) {
        // Without a listener the restart goes on: it is not the screen's.
        let _ = self.events.send(event).await;
    }

    /// A line that may be left out when nobody has room for it.
    pub(super) fn line(&self, line: String) {
        let _ = self.events.try_send(Event::Log(line));
    }

    /// A remark of our own among the lines.
    pub(super) fn note(&self, text: &str) {
        self.line(format!("vramp: {text}"));
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "kill_tests.rs"]
mod kill_tests;
