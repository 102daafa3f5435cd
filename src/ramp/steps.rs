//! The steps of a restart, one by one.

use super::ask::{PAGE, answer, detect, up};
use super::cards;
use super::machine::Seen;
use super::run::Run;
use super::tail::Tail;
use super::{Event, Leg, Purpose, StartFailure, Step, failure};
use crate::engine::start::{Known, Progress};
use crate::engine::{Facts, Phase};
use crate::gpu::Snapshot;
use crate::memory::Measured;
use crate::service::{Config, Port, ProcessId, ServiceError, Status};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often process, log and cards are looked at during a start.
const LOOK: Duration = Duration::from_millis(250);
/// How long the running server may take for one token before it is stopped: others may be using it.
const TOKEN: Duration = Duration::from_secs(60);
/// How long the first reading of the cards may take.
const FIRST_READING: Duration = Duration::from_secs(5);

type Result<T> = std::result::Result<T, StartFailure>;

impl Run<'_> {
    pub(super) async fn step(&mut self, leg: Leg, step: Step, config: &Config) -> Result<Seen> {
        match step {
            Step::Validate => self.validate().await?,
            Step::Stop => self.stop(leg).await?,
            Step::WaitCards => self.wait_cards().await?,
            Step::Start => self.start(config).await?,
            Step::Watch => self.watch().await?,
            Step::Prove => return self.prove(config).await,
        }
        Ok(Seen::Passed)
    }

    /// All that can go wrong is to go wrong here, while nothing is stopped yet.
    async fn validate(&mut self) -> Result<()> {
        let fail = |cause: String| failure::at(Step::Validate, cause);
        let plan = self.on_disk.intent.plan.clone();
        let service = &self.deps.service;
        if plan.purpose == Purpose::Change && self.target.is_none() {
            return Err(fail(
                "no configuration is known to come back to".to_string(),
            ));
        }
        let way_back = self.target.as_ref().map(|target| &target.config);
        for config in [Some(&plan.to), way_back].into_iter().flatten() {
            service
                .validate(config)
                .await
                .map_err(|error| fail(error.to_string()))?;
        }
        let status = service
            .status()
            .await
            .map_err(|error| fail(error.to_string()))?;
        let look_again = |what: &str| Err(fail(format!("{what}; look again and plan anew")));
        let running = match (status, &plan.from) {
            (Status::Running { .. }, None) => return look_again("the server runs by now"),
            (Status::Stopped { .. }, Some(_)) => {
                return look_again("the server does not run any more");
            }
            (Status::Running { config, .. }, Some(from))
                if config.as_ref().is_some_and(|config| config != from) =>
            {
                return look_again("the server runs with another configuration by now");
            }
            (Status::Running { .. }, Some(_)) => true,
            (Status::Stopped { .. }, None) => false,
        };
        self.measure_levels().await?;
        if running {
            self.meet_running(plan.purpose).await?;
        }
        self.arm_before()
            .await
            .map_err(|error| fail(error.to_string()))
    }

    async fn measure_levels(&mut self) -> Result<()> {
        let fail = |cause: String| failure::at(Step::Validate, cause);
        let snapshot = self.first_snapshot().await;
        let wanted = &self.deps.cards;
        let there = |index: &&u32| snapshot.cards.iter().any(|card| card.index == **index);
        if snapshot.cards.is_empty() {
            let why = snapshot.fault.as_deref().unwrap_or("none is read");
            self.note(&format!("no card is waited for: {why}"));
        } else if let Some(missing) = wanted.iter().find(|index| !there(index)) {
            return Err(fail(format!("card {missing} of the profile is not there")));
        }
        // Also of a server that has crashed: its workers may outlive it, and the stop will end them.
        let pids = self.deps.service.pids().await;
        let pids = pids.map_err(|error| fail(error.to_string()))?;
        let levels = cards::levels(&snapshot, wanted, &pids);
        for level in &levels {
            if let Some(why) = level.bytes.absent() {
                self.note(&format!(
                    "what card {} holds without the server cannot be told ({why}); it is waited for until its memory falls no more",
                    level.card
                ));
            }
        }
        self.on_disk.levels = levels;
        Ok(())
    }

    /// The reading of the cards, or the first one if none was made yet.
    async fn first_snapshot(&self) -> Snapshot {
        let mut gpus = self.deps.gpus.clone();
        let read = gpus.wait_for(|shot| !shot.cards.is_empty() || shot.fault.is_some());
        match timeout(FIRST_READING, read).await {
            Ok(Ok(shot)) => shot.clone(),
            _ => self.deps.gpus.borrow().clone(),
        }
    }

    /// A server that is to be left for another value must answer now, or its failure would be laid on the new value. One that
    /// is rolled back may be broken.
    async fn meet_running(&mut self, purpose: Purpose) -> Result<()> {
        let met = async {
            let engine = detect(self.deps.detect.as_ref()).await?;
            let probe = answer(TOKEN, engine.probe()).await?;
            if probe.output_tokens == 0 {
                return Err("its answer has no token".to_string());
            }
            Ok(engine)
        };
        match met.await {
            Ok(engine) => self.reader = Some(engine),
            Err(why) if purpose == Purpose::Change => {
                return Err(failure::advised(
                    Step::Validate,
                    format!("the running server does not answer as it should: {why}"),
                    "See its log; roll back to the production value if it is broken",
                ));
            }
            Err(why) => self.note(&format!("the running server does not answer: {why}")),
        }
        Ok(())
    }

    /// On the way back the trial goes with the stop: whoever starts the service from then on brings the production value.
    async fn stop(&mut self, leg: Leg) -> Result<()> {
        self.process = None;
        self.remember_members().await;
        let service = &self.deps.service;
        let fail = |error: ServiceError| failure::at(Step::Stop, error);
        self.untouched = false;
        service.stop().await.map_err(fail)?;
        if leg == Leg::Back {
            service.discard_trial().await.map_err(fail)?;
        }
        Ok(())
    }

    async fn start(&mut self, config: &Config) -> Result<()> {
        if self.again
            && let Ok(Status::Running {
                id,
                config: Some(running),
                ..
            }) = self.deps.service.status().await
            && running == *config
        {
            // Nothing ran before the step: this is what it started when the host was lost.
            self.process = Some(id);
            return Ok(());
        }
        let id = self
            .deps
            .service
            .start(config)
            .await
            .map_err(|error| failure::at(Step::Start, error))?;
        self.process = Some(id);
        Ok(())
    }

    /// Until the server says that it is up. There is no fixed limit: a start fails when its process ends, when its log says why
    /// it fails, or when nothing gets on any more.
    async fn watch(&mut self) -> Result<()> {
        let id = self.process(Step::Watch).await?;
        self.log_at = match self.on_disk.log_from {
            Some(from) => from,
            None => self.deps.service.log_end().await.unwrap_or(0),
        };
        let kind = self.reader.as_ref().map(|engine| engine.kind());
        self.tail = Tail::new(kind, self.deps.clock.now());
        self.warned = false;
        self.phase(Phase::Starting, Progress::default()).await;
        let mut high = self.deps.gpus.borrow().clone();
        let mut asking = Box::pin(up(Arc::clone(&self.deps.detect)));
        loop {
            let found = tokio::select! {
                found = &mut asking => Some(found),
                () = sleep(LOOK) => None,
            };
            self.read_log().await;
            self.alive(Step::Watch, &id).await?;
            match found {
                Some(true) => break,
                Some(false) => asking = Box::pin(up(Arc::clone(&self.deps.detect))),
                None => {}
            }
            let now = self.deps.clock.now();
            if cards::grown(&mut high, &self.deps.gpus.borrow()) {
                self.tail.progressed(now);
            }
            self.patient(now).await?;
        }
        self.phase(Phase::Listening, Progress::default()).await;
        Ok(())
    }

    /// One real token from the new process, which holds the port, at the context that was asked for, and an answer that makes
    /// sense.
    async fn prove(&mut self, config: &Config) -> Result<Seen> {
        let id = self.process(Step::Prove).await?;
        let fail = |cause: String| failure::at(Step::Prove, cause);
        let proof = self.proof(config);
        let facts = tokio::select! {
            facts = proof => facts?,
            gone = self.gone(&id) => {
                self.read_log().await;
                let (what, known) = gone;
                return Err(failure::from_log(Step::Prove, &what, &self.tail, &known));
            }
        };
        match self.deps.service.port().await {
            Ok(Port::Ours | Port::Unknown(_)) => {}
            Ok(Port::Nobody) => {
                return Err(fail(
                    "something answers, but no process of this machine listens there".to_string(),
                ));
            }
            Ok(Port::Other(what)) => {
                return Err(fail(format!("another server answers: {what}")));
            }
            Err(error) => return Err(fail(error.to_string())),
        }
        self.read_log().await;
        self.alive(Step::Prove, &id).await?;
        let log = self.tail.diagnose(&Known::default());
        self.send(Event::Measured(Measured::of_start(&log))).await;
        Ok(Seen::Proven(Box::new(facts)))
    }

    async fn proof(&self, config: &Config) -> Result<Facts> {
        let fail = |cause: String| failure::at(Step::Prove, cause);
        let patience = self.deps.limits.stuck_after;
        let engine = detect(self.deps.detect.as_ref()).await.map_err(fail)?;
        let probe = answer(patience, engine.probe()).await.map_err(fail)?;
        if probe.output_tokens == 0 {
            return Err(fail(
                "the server answers without a single token".to_string(),
            ));
        }
        let facts = answer(PAGE, engine.facts()).await.map_err(fail)?;
        let expected = engine.expected_context(config.context, config.launch.slots);
        failure::check_context(&facts, config.context, expected)?;
        if let Some(smoke) = &self.deps.smoke {
            let asked = engine.ask(&smoke.question, smoke.max_tokens);
            let said = answer(patience, asked).await.map_err(fail)?;
            (smoke.judge)(&said.text, said.output_tokens)
                .map_err(|what| fail(format!("the answer to the smoke test: {what}")))?;
        }
        Ok(facts)
    }

    /// The process that is watched: the one started in this leg, or the one found running when the restart was taken up again.
    async fn process(&mut self, step: Step) -> Result<ProcessId> {
        if let Some(id) = &self.process {
            return Ok(id.clone());
        }
        match self.deps.service.status().await {
            Ok(Status::Running { id, .. }) => {
                self.process = Some(id.clone());
                Ok(id)
            }
            Ok(Status::Stopped { exit }) => Err(failure::at(step, failure::exit_words(exit))),
            Err(error) => Err(failure::at(step, error)),
        }
    }

    /// Fails if the process has ended, with the last words of its log.
    async fn alive(&mut self, step: Step, id: &ProcessId) -> Result<()> {
        let Some((what, known)) = self.has_gone(id).await else {
            return Ok(());
        };
        // What it wrote before its end.
        self.read_log().await;
        Err(failure::from_log(step, &what, &self.tail, &known))
    }

    async fn gone(&self, id: &ProcessId) -> (String, Known) {
        loop {
            if let Some(gone) = self.has_gone(id).await {
                return gone;
            }
            sleep(LOOK).await;
        }
    }

    /// How the process ended, in words and for the judgement; `None` while it runs or nothing can be told.
    pub(super) async fn has_gone(&self, id: &ProcessId) -> Option<(String, Known)> {
        match self.deps.service.status().await {
            Ok(Status::Running { id: now, .. }) if now == *id => None,
            Ok(Status::Running { .. }) => Some((
                "the server ended, and another process took its place at once".to_string(),
                Known::default(),
            )),
            Ok(Status::Stopped { exit }) => Some(self.ending(Some(id), exit).await),
            // A lost connection to the host says nothing of the server.
            Err(_) => None,
        }
    }

    /// Reads what is new in the log, shows it, and lets it tell of phases and failures.
    async fn read_log(&mut self) {
        while let Ok((lines, next)) = self.deps.service.log_since(self.log_at).await {
            if next == self.log_at {
                return;
            }
            self.log_at = next;
            let now = self.deps.clock.now();
            for line in lines {
                let phase = self.tail.take(&line, now);
                self.line(crate::units::clean(&line));
                if let Some((phase, progress)) = phase {
                    self.phase(phase, progress).await;
                }
            }
        }
    }

    async fn phase(&self, phase: Phase, progress: Progress) {
        self.send(Event::Phase { phase, progress }).await;
    }
}
