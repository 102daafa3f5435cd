//! A source on a thread of its own. A call into a driver can block for seconds or for good; nobody ever waits for this thread.

use super::{CardState, Snapshot, Source};
use crate::clock::Clock;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The hand on a running reader. Dropping it stops the reader.
#[derive(Debug)]
pub struct Control {
    wish: Arc<Wish>,
}

#[derive(Debug)]
struct Wish {
    now: Mutex<Pace>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    period: Duration,
    stop: bool,
}

impl Control {
    /// Reads every `period` from now on, the next time at once.
    pub fn set_period(&self, period: Duration) {
        self.wish.change(|pace| pace.period = period);
    }

    /// How often it reads.
    pub fn period(&self) -> Duration {
        self.wish.lock().period
    }

    /// Ends the reader after the call that it is in. Does not wait for it.
    pub fn stop(&self) {
        self.wish.change(|pace| pace.stop = true);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Wish {
    fn lock(&self) -> MutexGuard<'_, Pace> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Pace)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until the next reading is due, `took` after the last one began. False: stop.
    fn wait(&self, took: Duration) -> bool {
        let pace = self.lock();
        let period = pace.period;
        // A slow driver gets some rest between two readings.
        let rest = period.saturating_sub(took).max(period / 4);
        let (pace, _) = self
            .changed
            .wait_timeout_while(pace, rest, |pace| !pace.stop && pace.period == period)
            .unwrap_or_else(PoisonError::into_inner);
        !pace.stop
    }
}

/// Reads `source` every `period` on its own thread. The receiver has the newest snapshot only; before the first one it has an empty one
/// of the moment of this call. How old a snapshot is, and what that means, says [`Snapshot::aged`].
pub fn watch(
    source: Box<dyn Source>,
    clock: Clock,
    period: Duration,
) -> (watch::Receiver<Snapshot>, Control) {
    let (sender, receiver) = watch::channel(Snapshot {
        at: clock.now(),
        ..Snapshot::default()
    });
    let wish = Arc::new(Wish {
        now: Mutex::new(Pace {
            period,
            stop: false,
        }),
        changed: Condvar::new(),
    });
    let control = Control { wish: wish.clone() };
    let sender = Arc::new(sender);
    let reader = {
        let sender = sender.clone();
        move || read_on(source, clock, &wish, &sender)
    };
    if let Err(error) = std::thread::Builder::new().name("gpu".into()).spawn(reader) {
        sender.send_modify(|snapshot| {
            snapshot.fault = Some(format!("the GPU reader cannot be started: {error}"));
        });
    }
    (receiver, control)
}

fn read_on(
    mut source: Box<dyn Source>,
    clock: Clock,
    wish: &Wish,
    sender: &watch::Sender<Snapshot>,
) {
    loop {
        let began = clock.now();
        match catch_unwind(AssertUnwindSafe(|| source.read(began))) {
            Ok(snapshot) => {
                // Nobody listens any more.
                if sender.send(snapshot).is_err() {
                    return;
                }
            }
            Err(panic) => {
                sender.send_modify(|snapshot| give_up(snapshot, panic.as_ref()));
                return;
            }
        }
        let took = Duration::from_millis(clock.now().since(began));
        if !wish.wait(took) {
            return;
        }
    }
}

/// The last snapshot of a reader that broke.
fn give_up(snapshot: &mut Snapshot, panic: &(dyn Any + Send)) {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("for an unknown reason");
    let fault = format!("the GPU reader stopped: {what}");
    for card in &mut snapshot.cards {
        card.state = CardState::Unknown(fault.clone());
    }
    snapshot.fault = Some(fault);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Now;
    use std::sync::mpsc;
    use std::time::Instant;

    const SHORT: Duration = Duration::from_millis(5);
    const LONG: Duration = Duration::from_secs(600);

    struct Fake<F>(F);

    impl<F: FnMut(Now) -> Snapshot + Send> Source for Fake<F> {
        fn read(&mut self, at: Now) -> Snapshot {
            (self.0)(at)
        }
    }

    /// A source that counts its readings in the snapshot's source text.
    fn counting() -> Box<dyn Source> {
        let mut n = 0;
        Box::new(Fake(move |at| {
            n += 1;
            Snapshot {
                at,
                source: n.to_string(),
                ..Snapshot::default()
            }
        }))
    }

    fn wait_for(receiver: &watch::Receiver<Snapshot>, what: impl Fn(&Snapshot) -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !what(&receiver.borrow()) {
            assert!(Instant::now() < until, "{:?}", *receiver.borrow());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn it_reads_again_and_again_until_stopped() {
        let (receiver, control) = watch(counting(), Clock::default(), SHORT);
        wait_for(&receiver, |seen| {
            seen.source.parse::<u32>().is_ok_and(|n| n > 3)
        });
        control.stop();
        // The thread drops its sender when it ends.
        wait_for(&receiver, |_| receiver.has_changed().is_err());
    }

    #[test]
    fn a_new_pace_holds_at_once() {
        let (receiver, control) = watch(counting(), Clock::default(), LONG);
        wait_for(&receiver, |seen| seen.source == "1");
        control.set_period(SHORT);
        wait_for(&receiver, |seen| seen.source == "3");
        assert_eq!(control.period(), SHORT);
    }

    #[test]
    fn dropping_the_control_ends_a_waiting_reader() {
        let (receiver, control) = watch(counting(), Clock::default(), LONG);
        wait_for(&receiver, |seen| seen.source == "1");
        drop(control);
        wait_for(&receiver, |_| receiver.has_changed().is_err());
    }

    #[test]
    fn a_source_that_hangs_holds_nobody_up() {
        let (release, hang) = mpsc::channel::<()>();
        let source = Fake(move |at| {
            let _ = hang.recv();
            Snapshot {
                at,
                ..Snapshot::default()
            }
        });
        let clock = Clock::default();
        let began = Instant::now();
        let (receiver, control) = watch(Box::new(source), clock, SHORT);
        let later = Now {
            mono_ms: clock.now().mono_ms + 10_000,
            unix_ms: 0,
        };
        let fault = receiver.borrow().aged(later, SHORT).fault;
        assert!(fault.is_some_and(|fault| fault.contains("has not answered")));
        drop((control, receiver));
        assert!(began.elapsed() < Duration::from_secs(5));
        drop(release);
    }

    #[test]
    fn a_source_that_breaks_says_so_and_keeps_the_last_figures() {
        let mut first = counting();
        let mut n = 0;
        let source = Fake(move |at| {
            n += 1;
            assert!(n < 2, "no such card");
            first.read(at)
        });
        let (receiver, _control) = watch(Box::new(source), Clock::default(), SHORT);
        wait_for(&receiver, |seen| {
            seen.fault.as_deref() == Some("the GPU reader stopped: no such card")
        });
        assert_eq!(receiver.borrow().source, "1");
    }
}
