//! The threads that a run lives on: one with its own runtime, which measures and does nothing else, and one that tells what happened,
//! so that whoever listens may block without being in any figure.

use super::client::awake;
use std::future::Future;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::watch;
use tokio::task::LocalSet;

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

/// Starts a thread with a runtime of its own and runs `work` on it. What it tells goes to `sink`, in order, on another thread that is
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_unpark(awake::note)
        .build()?;
    let (stop, told) = watch::channel(false);
    let thread = std::thread::Builder::new()
        .name(name.to_string())
        .spawn(move || {
            let local = LocalSet::new();
            // A task of its own: the future that the set is driven by is polled at every wake-up of any task.
            let work = local.spawn_local(work(Reporter(events), Stop(told)));
            // A panic of the work was reported by the hook.
            let _ = local.block_on(&runtime, work);
            // Name look-ups that were given up run on threads of the runtime; the end does not wait for them.
            runtime.shutdown_background();
            let _ = reporter.join();
        })?;
    Ok(Handle { stop, thread })
}
