//! Slow or stuck: whether a start that says nothing is given more time.

use super::run::Run;
use super::{Event, StartFailure, Step, cards, failure};
use crate::clock::Now;
use crate::engine::start::{Known, Pace, Signs, pace};
use std::time::Duration;

/// A server that has told why it fails gets this long without progress to end by itself; some never do.
const FAILING: Duration = Duration::from_secs(30);

impl Run<'_> {
    /// Fails if the start does not get on any more; tells before that it seems so, and when it gets on again.
    pub(super) async fn patient(&mut self, now: Now) -> Result<(), StartFailure> {
        let still_ms = self.tail.still_for(now);
        let still = Duration::from_millis(still_ms);
        let patience = self.deps.limits.stuck_after;
        if self.tail.failing() && still >= FAILING.min(patience) {
            let what = "the server neither ended nor went on after that";
            return Err(failure::from_log(
                Step::Watch,
                what,
                &self.tail,
                &Known::default(),
            ));
        }
        let cards = cards::loads(&self.deps.gpus.borrow(), &self.deps.cards);
        let busy = || cards.iter().filter_map(|card| card.busy_pct);
        let signs = Signs {
            still_s: still.as_secs_f64(),
            patience_s: patience.as_secs_f64(),
            phase: self.tail.phase(),
            collective: self.tail.collective(),
            busy: busy().min().zip(busy().max()),
        };
        let pace = pace(&signs);
        match pace {
            Pace::Moving | Pace::Slow => {}
            Pace::Stalled if still < patience => {}
            Pace::Stalled | Pace::Stuck => {
                let what = format!(
                    "no progress in the log or on the cards for {} s",
                    still.as_secs()
                );
                let known = Known {
                    still_s: Some(signs.still_s),
                    patience_s: Some(signs.patience_s),
                    cards,
                    ..Known::default()
                };
                return Err(failure::from_log(Step::Watch, &what, &self.tail, &known));
            }
        }
        let lingers = pace == Pace::Stalled || still >= patience / 2;
        if lingers != self.warned {
            self.warned = lingers;
            let why = match pace {
                Pace::Stalled => " while the ranks meet: they seem to wait for each other",
                _ => "",
            };
            let words = lingers.then(|| {
                format!(
                    "no progress in the log or on the cards for {} s{why}; it is given {} s",
                    still.as_secs(),
                    patience.as_secs()
                )
            });
            self.send(Event::Still(words)).await;
        }
        Ok(())
    }
}
