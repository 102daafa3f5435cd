//! The thread that a run lives on: its own runtime of one thread, which nothing else uses.

use std::future::Future;
use std::io;
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

/// Starts a thread with a runtime of its own and runs `work` on it.
pub fn spawn<F>(name: &str, work: impl FnOnce(Stop) -> F + Send + 'static) -> io::Result<Handle>
where
    F: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let (stop, told) = watch::channel(false);
    let thread = std::thread::Builder::new()
        .name(name.to_string())
        .spawn(move || {
            let local = LocalSet::new();
            local.block_on(&runtime, work(Stop(told)));
            // Name look-ups that were given up run on threads of the runtime; the end does not wait for them.
            runtime.shutdown_background();
        })?;
    Ok(Handle { stop, thread })
}
