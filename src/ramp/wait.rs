//! The wait for the cards, and what the operator is asked when they do not let go.

use super::cards::{Held, Release};
use super::holders::{self, Occupied};
use super::left_over::LeftOver;
use super::run::Run;
use super::{Event, StartFailure, Step, failure};
use crate::confirm::Confirmed;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, sleep_until};

/// What the operator chose while cards stay occupied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardsChoice {
    /// As long as before once more.
    WaitOn,
    /// End these processes of the stopped server, then wait on.
    End(Vec<LeftOver>),
    /// This leg has failed.
    GiveUp,
}

/// Where the operator's choices come from.
#[derive(Clone)]
pub struct Answers(Arc<Mutex<mpsc::Receiver<Confirmed<CardsChoice>>>>);

impl Answers {
    /// With the end that sends them.
    pub fn new() -> (mpsc::Sender<Confirmed<CardsChoice>>, Answers) {
        let (sender, receiver) = mpsc::channel(1);
        (sender, Answers(Arc::new(Mutex::new(receiver))))
    }
}

impl Run<'_> {
    /// No start before every card has let go. Only readings made after the stop count. When the time is up the operator is asked, where
    /// there is one; cards that let go meanwhile need no answer any more.
    pub(super) async fn wait_cards(&mut self) -> Result<(), StartFailure> {
        if self.on_disk.levels.is_empty() {
            return Ok(());
        }
        let deps = self.deps;
        let stopped = deps.clock.now();
        let patience = deps.limits.release_after;
        let mut answers = match &deps.answers {
            Some(answers) => Some(answers.0.lock().await),
            None => None,
        };
        let mut release = Release::new(self.on_disk.levels.clone());
        let mut gpus = deps.gpus.clone();
        let mut held = Vec::new();
        let mut told = Vec::new();
        let mut begun = Instant::now();
        // What was asked, until it is answered.
        let mut asked: Option<StartFailure> = None;
        loop {
            let snapshot = gpus.borrow_and_update().clone();
            if snapshot.at.mono_ms >= stopped.mono_ms {
                held = release.held(&snapshot);
                if held.is_empty() {
                    return Ok(());
                }
                let above: Vec<(u32, u64)> = held
                    .iter()
                    .filter_map(|one| Some((one.card, one.above?)))
                    .collect();
                if above != told {
                    self.send(Event::CardsHeld(above.clone())).await;
                    told = above;
                }
            }
            let answer = async {
                match answers.as_mut() {
                    Some(answers) => answers.recv().await,
                    None => None,
                }
            };
            tokio::select! {
                // A reading that is there counts before the time that is up.
                biased;
                changed = gpus.changed() => if changed.is_err() {
                    let occupied = self.occupied(&held, begun).await;
                    return Err(not_free("the cards are read no more", &occupied));
                },
                answer = answer, if asked.is_some() => {
                    let choice = answer.map(Confirmed::into_inner);
                    let Some(choice) = choice.filter(|choice| *choice != CardsChoice::GiveUp) else {
                        // Also where nobody is left who could answer.
                        return Err(asked.take().unwrap_or_else(|| failure::by_operator(Step::WaitCards)));
                    };
                    if let CardsChoice::End(left_overs) = choice {
                        self.end_left_overs(&left_overs).await;
                    }
                    asked = None;
                    begun = Instant::now();
                },
                () = sleep_until(begun + patience), if asked.is_none() => {
                    let occupied = self.occupied(&held, begun).await;
                    let what = format!("the cards were not free within {} s", patience.as_secs());
                    let failure = not_free(&what, &occupied);
                    let Some(answers) = answers.as_mut() else {
                        return Err(failure);
                    };
                    // An answer to an earlier question is none to this one.
                    while answers.try_recv().is_ok() {}
                    asked = Some(failure);
                    self.send(Event::CardsOccupied(occupied)).await;
                },
            }
        }
    }

    async fn occupied(&self, held: &[Held], since: Instant) -> Occupied {
        let host = self.deps.host.as_ref();
        let grace = self.deps.limits.stop_grace;
        let seconds = (since.elapsed().as_secs(), grace.as_secs());
        holders::look(host, held, &self.on_disk.members, seconds).await
    }
}

fn not_free(what: &str, occupied: &Occupied) -> StartFailure {
    let words = match occupied.held.as_slice() {
        [] => "no card was read since the stop".to_string(),
        held => holders::words(held),
    };
    StartFailure {
        held: occupied.held.clone(),
        ..failure::advised(
            Step::WaitCards,
            format!("{what}: {words}"),
            "Nothing is started on occupied cards. See what holds them, and end it by hand if it is a left-over",
        )
    }
}

#[cfg(test)]
#[path = "wait_tests.rs"]
mod tests;
