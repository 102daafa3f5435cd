//! The actor that restarts the server, on a thread of its own: a stop may block for long, and the screen must not.

use super::Say;
use crate::app::msg::Msg;
use crate::confirm::Confirmed;
use crate::ramp::{
    self, Answers, CardsChoice, Event, Ground, Guarded, Intent, Lock, Outcome, RestartPlan, WayOut,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
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

/// The hand on a restart.
pub struct Restart {
    cancel: watch::Sender<bool>,
    choices: mpsc::Sender<Confirmed<CardsChoice>>,
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
        let (choices, answers) = Answers::new();
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
                    () = carry_out(job, ground, lock, simulated, (cancelled, answers), guards, say) => {}
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
            choices,
            abandon: Some(abandon),
            guarding,
            thread: Some(thread),
        })
    }

    /// The operator gives it up: it goes back.
    pub fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    /// What the operator chose while the cards stay occupied. A question has one answer, so there is room for it; one that comes after
    /// the end of the restart has nothing to answer.
    pub fn choose(&self, choice: Confirmed<CardsChoice>) {
        let _ = self.choices.try_send(choice);
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
    (cancelled, answers): (watch::Receiver<bool>, Answers),
    guarding: Arc<AtomicBool>,
    say: Say,
) {
    let guards = Arc::clone(&guarding);
    let (events, mut reported) = mpsc::channel(QUEUE);
    let mut deps = ground.deps(lock, simulated).await;
    deps.answers = Some(answers);
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
