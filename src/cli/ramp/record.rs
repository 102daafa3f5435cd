//! What a walk leaves on record: the session of the profile, as the cockpit keeps it, and the last good beside the service.

use super::super::Failure;
use super::super::rig::Rig;
use crate::app::evidence;
use crate::app::forecast::Foretold;
use crate::app::model::{Tried, TriedOutcome, Who};
use crate::app::question::{Decided, KeepPlan, Served as At};
use crate::clock::unix_ms;
use crate::engine::{Facts, Phase};
use crate::gpu::Snapshot;
use crate::memory::Measured;
use crate::ramp::{self, Event, Leg, Served, Step};
use crate::runtime::{self, Which, keeper};
use crate::service::{Config, Service, Status};
use crate::store::{self, EventKind, Store, StoreError};
use std::collections::BTreeMap;

/// The session, open.
pub struct Record {
    store: Store,
    pub session: i64,
    who: Who,
    tried: BTreeMap<u64, Tried>,
    /// What runs, and since when it is proven.
    proven: Option<(Config, i64)>,
    /// The context of the newest start, how far it has come, and what its log says of memory.
    start: (Option<u64>, Option<Phase>),
    measured: Option<Measured>,
    /// What serves, tokens per request, since a restart made it ready.
    served: Option<u64>,
    /// What could not be kept, in words.
    pub faults: Vec<String>,
}

impl Record {
    /// # Errors
    /// The database cannot be opened or read.
    pub fn open(rig: &Rig, which: Which, simulated: bool) -> Result<Record, Failure> {
        let who = runtime::who();
        let ((store, session), restored) =
            runtime::session(&rig.places, &rig.profile, &who, which, simulated)
                .map_err(Failure::new)?;
        Ok(Record {
            store,
            session,
            who,
            tried: restored.tried.into_iter().map(|t| (t.context, t)).collect(),
            proven: None,
            start: (None, None),
            measured: None,
            served: None,
            faults: Vec::new(),
        })
    }

    /// A disk that fails stops no restart; it is said.
    fn kept(&mut self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.faults.push(error.to_string());
        }
    }

    fn event(&mut self, kind: EventKind, context: Option<u64>, text: String) {
        let event = store::Event {
            at_unix_ms: unix_ms(),
            kind,
            text,
            context,
        };
        let result = self.store.add_event(self.session, &event);
        self.kept(result);
    }

    fn tried(&mut self, context: u64, change: impl FnOnce(&mut Tried)) {
        let tried = self
            .tried
            .entry(context)
            .or_insert_with(|| Tried::new(context));
        change(tried);
        let tried = tried.clone();
        let result = self.store.record_config(self.session, &tried);
        self.kept(result);
    }

    /// The contexts on record.
    pub fn tried_so_far(&self) -> Vec<Tried> {
        self.tried.values().cloned().collect()
    }

    /// Marks on the memory chart, as a restart goes on. `from`: what it stops.
    pub fn told(&mut self, event: &Event, from: Option<u64>) {
        match event {
            Event::Step { leg, step, .. }
                if *step == Step::Stop && (from.is_some() || *leg == Leg::Back) =>
            {
                (self.proven, self.served) = (None, None);
                self.event(EventKind::Stop, from, String::new());
            }
            Event::Step { step, context, .. } if *step == Step::Start => {
                self.start = (Some(*context), Some(Phase::Starting));
                self.measured = None;
                self.event(EventKind::Start, Some(*context), String::new());
            }
            Event::Phase { phase, .. } if self.start.1 != Some(*phase) => {
                self.start.1 = Some(*phase);
                self.event(EventKind::Phase, self.start.0, phase.words().to_string());
            }
            Event::Measured(measured) => self.measured = Some(*measured),
            _ => {}
        }
    }

    /// `config` is in service, proven with a token and a sensible answer. `took_ms`: where it is what was asked for.
    pub fn serves(&mut self, config: &Config, facts: &Facts, took_ms: Option<u64>) {
        let now = unix_ms();
        self.proven = Some((config.clone(), now));
        self.event(EventKind::Ready, Some(config.context), String::new());
        let served = facts.context.effective.known().copied();
        let context = served.unwrap_or(config.context);
        self.served = Some(context);
        let measured = self.measured.take();
        self.tried(context, |tried| {
            tried.serves(facts, Some(config.clone()));
            tried.measured = measured.or(tried.measured);
            tried.smoke_unix_ms = Some(now);
            if let Some(took_ms) = took_ms {
                tried.outcome = TriedOutcome::Served;
                tried.start_ms = Some(took_ms);
            }
        });
        let result = self.store.save_facts(self.session, facts);
        self.kept(result);
    }

    /// Sets the forecast of the last restart beside what came: `gpus` once it has served for a moment, `cards` are the server's.
    pub fn came(&mut self, foretold: Foretold, gpus: &Snapshot, cards: &[u32]) {
        let Some(served) = self.served else { return };
        self.tried(served, |tried| {
            tried.forecast = Some(foretold.came(gpus, cards, tried.measured.as_ref()));
        });
    }

    /// A value was tried and did not serve.
    pub fn failed(&mut self, context: u64, why: &str) {
        self.event(EventKind::Failed, Some(context), String::new());
        self.tried(context, |tried| {
            tried.outcome = TriedOutcome::Failed(why.to_string());
        });
    }

    /// Anything else worth keeping.
    pub fn note(&mut self, text: &str) {
        self.event(EventKind::Note, None, text.to_string());
    }

    /// What runs was proven now, without a restart.
    pub fn proved(&mut self, config: &Config) {
        self.proven = Some((config.clone(), unix_ms()));
    }

    /// Whether what runs was proven in this walk.
    pub fn is_proven(&self) -> bool {
        self.proven.is_some()
    }

    /// Keeps what runs as the last good once it has served for long enough since it was proven.
    pub async fn last_good(&mut self, rig: &Rig, service: &dyn Service) {
        let Some((config, smoke)) = &self.proven else {
            return;
        };
        let stretch = Served {
            config: config.clone(),
            smoke_unix_ms: Some(*smoke),
            until_unix_ms: None,
        };
        let history = [stretch];
        let Some(good) = ramp::last_good(&history, unix_ms()) else {
            return;
        };
        let still = match service.status().await {
            Ok(Status::Running { config, .. }) => config.as_ref() == Some(good),
            _ => false,
        };
        if still && let Err(error) = ramp::save_last_good(rig.host.as_ref(), &rig.dir, good).await {
            self.faults.push(error.to_string());
        }
    }

    /// The decision, with everything that spoke for and against it. `how` it was written.
    pub fn decided(
        &mut self,
        plan: &KeepPlan,
        profile: &str,
        facts: Option<&Facts>,
        how: &str,
    ) -> String {
        let points = match self.store.session_points(self.session) {
            Ok(points) => points.into_iter().map(|stored| stored.point).collect(),
            Err(error) => {
                self.faults.push(error.to_string());
                Vec::new()
            }
        };
        let tried: Vec<&Tried> = self.tried.values().collect();
        let at = At {
            unix_ms: unix_ms(),
            facts,
            simulated: facts.is_some_and(|facts| facts.simulated),
            evidence: evidence::gather(&tried, &points, plan.previous),
        };
        let decided = Decided::new(plan, &self.who, profile, &at);
        let decision = keeper::decision(&decided, self.session);
        let result = self.store.add_decision(&decision).map(drop);
        self.kept(result);
        self.event(EventKind::Decision, Some(decided.value), String::new());
        let words = decided.words(how);
        self.note(&words);
        words
    }
}
