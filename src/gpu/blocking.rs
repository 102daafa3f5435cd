//! Asynchronous work on the thread of a source, which may block.

use std::future::Future;
use tokio::runtime::{Builder, Runtime};

/// A runtime that is made on the thread that reads, at the first reading.
#[derive(Debug, Default)]
pub(super) struct Blocking {
    runtime: Option<Runtime>,
}

impl Blocking {
    /// Runs it to its end.
    ///
    /// # Errors
    /// The machine gives no runtime: why, in words.
    pub(super) fn run<F: Future>(&mut self, work: F) -> Result<F::Output, String> {
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| format!("cannot start reading: {error}"))?,
        };
        let output = runtime.block_on(work);
        self.runtime = Some(runtime);
        Ok(output)
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // What was started is killed with its task; nobody waits for a connection.
            runtime.shutdown_background();
        }
    }
}
