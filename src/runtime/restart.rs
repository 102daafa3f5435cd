//! The actor that restarts the server, on a thread of its own: a stop may block for long, and the screen must not.

use super::Say;
use crate::app::msg::Msg;
use crate::clock::Clock;
use crate::confirm::Confirmed;
use crate::engine::{self, Endpoint, Engine, EngineError};
use crate::gpu::Snapshot;
use crate::host::Host;
use crate::profile::Profile;
use crate::ramp::{
    self, Deps, Detect, Event, Guarded, Intent, Limits, Lock, Outcome, RestartPlan, WayOut,
};
use crate::service::Service;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Events that may wait for the screen.
const QUEUE: usize = 512;

/// What is asked for.
pub enum Job {
    Restart(Confirmed<RestartPlan>),
    /// Nothing runs, so nothing can be lost.
    Start(RestartPlan),
    Recover(Confirmed<(Intent, WayOut)>),
}

/// What a restart works with, as far as it does not change.
#[derive(Clone)]
pub struct Ground {
    pub endpoint: Endpoint,
    pub host: Arc<dyn Host>,
    pub service: Arc<dyn Service>,
    pub gpus: watch::Receiver<Snapshot>,
    pub dir: PathBuf,
    pub by: String,
    pub clock: Clock,
    pub limits: Limits,
    pub cards: Vec<u32>,
}

impl Ground {
    /// For the service of `profile`.
    pub fn new(
        profile: &Profile,
        host: Arc<dyn Host>,
        service: Arc<dyn Service>,
        gpus: watch::Receiver<Snapshot>,
        dir: PathBuf,
        by: String,
        clock: Clock,
    ) -> Self {
        Ground {
            endpoint: profile.endpoint.clone(),
            host,
            service,
            gpus,
            dir,
            by,
            clock,
            limits: Limits {
                stuck_after: Duration::from_secs(profile.stuck_after_s),
                release_after: Duration::from_secs(profile.release_after_s),
            },
            cards: profile.cards.clone(),
        }
    }
}

/// The hand on a restart.
pub struct Restart {
    cancel: watch::Sender<bool>,
    abandon: Option<oneshot::Sender<()>>,
    /// It is over, and its first minute is watched.
    guarding: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Restart {
    /// Begins. What happens arrives as messages, the end for certain.
    ///
    /// # Errors
    /// No thread can be started; in words.
    pub fn begin(
        job: Job,
        ground: Ground,
        lock: Arc<Lock>,
        simulated: bool,
        say: Say,
    ) -> Result<Self, String> {
        let (cancel, cancelled) = watch::channel(false);
        let (abandon, abandoned) = oneshot::channel();
        let guarding = Arc::new(AtomicBool::new(false));
        let guards = Arc::clone(&guarding);
        let work = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = say.blocking_send(Msg::RampFailed(format!(
                        "cannot begin the restart: {error}"
                    )));
                    return;
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    _ = abandoned => {}
                    () = carry_out(job, ground, lock, simulated, cancelled, guards, say) => {}
                }
            });
            // A file operation under way ends by itself; nobody waits for it.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new()
            .name("restart".into())
            .spawn(work)
            .map_err(|error| format!("cannot start a thread for the restart: {error}"))?;
        Ok(Restart {
            cancel,
            abandon: Some(abandon),
            guarding,
            thread: Some(thread),
        })
    }

    /// The operator gives it up: it goes back.
    pub fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    /// Whether nothing is under way: another restart may begin, for which this one is to be abandoned.
    pub fn is_over(&self) -> bool {
        self.guarding.load(Ordering::Acquire)
            || self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Lets go of it where it is, as the death of the cockpit would: the intent stays on disk.
    pub fn abandon(mut self) {
        if let Some(abandon) = self.abandon.take() {
            let _ = abandon.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn carry_out(
    job: Job,
    ground: Ground,
    lock: Arc<Lock>,
    simulated: bool,
    cancelled: watch::Receiver<bool>,
    guarding: Arc<AtomicBool>,
    say: Say,
) {
    let guards = Arc::clone(&guarding);
    let (events, mut reported) = mpsc::channel(QUEUE);
    let reader = match ground.endpoint.kind {
        Some(_) => engine::detect(&ground.endpoint).await.ok().map(Arc::from),
        None => None,
    };
    let deps = Deps {
        host: ground.host,
        service: ground.service,
        detect: Arc::new(Finder(ground.endpoint)),
        reader,
        gpus: ground.gpus,
        cards: ground.cards,
        limits: ground.limits,
        smoke: Some(super::server::smoke_question()),
        lock,
        dir: ground.dir,
        by: ground.by,
        simulated,
        clock: ground.clock,
    };
    let work = async move {
        let (sent, may_cancel) = (events.clone(), cancelled.clone());
        let (outcome, guarded) = match job {
            Job::Restart(plan) => {
                let guarded = Guarded::of(&plan);
                let outcome = ramp::run(plan, &deps, sent, may_cancel).await;
                (outcome, Some(guarded))
            }
            Job::Start(plan) => (ramp::start(plan, &deps, sent, may_cancel).await, None),
            Job::Recover(found) => {
                let guarded = Guarded::found(&found);
                (ramp::resume(found, &deps, sent, may_cancel).await, guarded)
            }
        };
        if let (Outcome::Ready { .. }, Some(guarded)) = (outcome, guarded) {
            guards.store(true, Ordering::Release);
            ramp::guard(guarded, &deps, events, cancelled).await;
        }
    };
    let forward = async {
        while let Some(event) = reported.recv().await {
            if matches!(event, Event::Step { .. }) {
                guarding.store(false, Ordering::Release);
            }
            let _ = say.send(Msg::Ramp(event)).await;
        }
    };
    let ((), ()) = tokio::join!(work, forward);
}

/// Finds the engine at the endpoint of the profile.
struct Finder(Endpoint);

#[async_trait]
impl Detect for Finder {
    async fn detect(&self) -> Result<Box<dyn Engine>, EngineError> {
        engine::detect(&self.0).await
    }
}
