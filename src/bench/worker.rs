//! The threads that a run lives on: one with its own connections, which measures and does nothing else, and one that tells what happened,
//! so that whoever listens may block without being in any figure.

use super::client::Driver;
use std::future::Future;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::watch;

/// A run under way. Dropping it lets the run go on.
#[derive(Debug)]
pub struct Handle {
    stop: watch::Sender<bool>,
    thread: std::thread::JoinHandle<()>,
}

impl Handle {
    /// Cancels the requests in flight and ends the run; what was measured is still reported. Returns at once.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether the run is over.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the run.
    pub fn join(self) {
        // A panic of the thread was reported by the hook; there is nothing to add here.
        let _ = self.thread.join();
    }
}

/// Told when the operator stops a run.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Ends when the run is to stop; never if its handle was dropped.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A stop that a test gives by hand.
#[cfg(test)]
pub fn stopping() -> (watch::Sender<bool>, Stop) {
    let (stop, told) = watch::channel(false);
    (stop, Stop(told))
}

/// Events that may wait to be told.
const WAITING: usize = 256;

/// Where the measuring thread leaves its events.
#[derive(Debug)]
pub struct Reporter<E>(SyncSender<E>);

impl<E> Reporter<E> {
    /// Tells an event that must arrive.
    pub fn tell(&self, event: E) {
        // The telling thread ends before this one only if the listener panicked, which the hook has reported.
        let _ = self.0.send(event);
    }

    /// Tells an event that a newer one will replace: dropped if the listener is far behind.
    pub fn tell_latest(&self, event: E) {
        let _ = self.0.try_send(event);
    }
}

/// Starts a thread that reads its own connections and runs `work` on it. What it tells goes to `sink`, in order, on another thread that is
/// in no runtime. The run is over when all of it was told.
pub fn spawn<E, F>(
    name: &str,
    mut sink: Box<dyn FnMut(E) + Send>,
    work: impl FnOnce(Reporter<E>, Stop) -> F + Send + 'static,
) -> io::Result<Handle>
where
    E: Send + 'static,
    F: Future<Output = ()> + 'static,
{
    let (events, told_events): (SyncSender<E>, Receiver<E>) = sync_channel(WAITING);
    let reporter = std::thread::Builder::new()
        .name(format!("{name}-tells"))
        .spawn(move || told_events.into_iter().for_each(&mut sink))?;
    let (stop, told) = watch::channel(false);
    let (ready, started) = sync_channel(1);
    let thread = std::thread::Builder::new()
        .name(name.to_string())
        .spawn(move || {
            let driver = match Driver::new() {
                Ok(driver) => driver,
                Err(error) => return drop(ready.send(Err(error))),
            };
            // Whoever started this waits for nothing else.
            let _ = ready.send(Ok(()));
            driver.drive(work(Reporter(events), Stop(told)));
            let _ = reporter.join();
        })?;
    // Without an answer the thread is gone, which its end tells as well as a run of nothing.
    started.recv().unwrap_or(Ok(()))?;
    Ok(Handle { stop, thread })
}
