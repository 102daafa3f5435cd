//! A restart whose host is out of reach: it waits. Nothing of that is a failure of the server.

use super::failure;
use super::run::Run;
use super::{Leg, StartFailure, Step};
use std::time::Duration;
use tokio::time::sleep;

/// Between two looks whether the host is back.
const LOOK: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Waits until the host answers and the lock is ours again. The operator may give up the forward leg meanwhile.
    pub(super) async fn reach(&mut self, leg: Leg, step: Step) -> Result<(), StartFailure> {
        let mut told = String::new();
        loop {
            let host = self.deps.host.as_ref();
            let why = match host.boot_id().await {
                Err(error) if error.is_lost() => error.to_string(),
                // Other errors are for the step to meet.
                _ => match self.deps.lock.ensure().await {
                    Ok(()) => break,
                    Err(error) => error.to_string(),
                },
            };
            // The seconds until the next attempt are no news.
            let news = why.split(" (").next().unwrap_or_default().to_string();
            if news != told {
                self.note(&format!(
                    "{why}. The server is left as it is; the restart goes on afterwards"
                ));
                told = news;
            }
            if leg == Leg::Forward && *self.cancel.borrow() {
                return Err(failure::by_operator(step));
            }
            sleep(LOOK).await;
        }
        if !told.is_empty() {
            self.note(&format!("{} is back", self.deps.host.name()));
        }
        Ok(())
    }
}
