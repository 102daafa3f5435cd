//! One cockpit works on a service: it alone restarts the server and writes the session.

use super::Place;
use crate::app::msg::Msg;
use crate::ramp::{Lock, RampError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// How often the lock on another host is looked after.
const KEEPS: Duration = Duration::from_secs(5);

/// The lock of the service, once it is ours. It is held as long as this cockpit lives: a second one is read-only.
pub type LockCell = Arc<OnceLock<Arc<Lock>>>;

/// Takes the lock, and looks after it where another host has it.
#[derive(Default)]
pub struct LockKeeper {
    keeps: bool,
}

impl LockKeeper {
    /// Holds it from here on, unless it is held by somebody else; that is said.
    pub async fn hold(&mut self, place: &Place, say: &Sender<Msg>) {
        if place.lock.get().is_some() {
            return;
        }
        let failed = match take(place).await {
            Ok(()) => None,
            Err(RampError::Locked { holder }) => Some(Msg::Locked(holder)),
            Err(error) => Some(Msg::RampFailed(error.to_string())),
        };
        if let Some(msg) = failed {
            // The runtime is gone only when the program ends.
            let _ = say.send(msg).await;
        }
        if !place.host.is_local() && !std::mem::replace(&mut self.keeps, true) {
            tokio::spawn(keep(place.clone(), say.clone()));
        }
    }
}

async fn take(place: &Place) -> Result<(), RampError> {
    let lock = Lock::take(&place.host, &place.state_dir, &place.who).await?;
    // Nobody else sets it.
    let _ = place.lock.set(Arc::new(lock));
    Ok(())
}

/// The lock on another host ends with the connection: it is taken again when that is back, unless somebody else was first.
async fn keep(place: Place, say: Sender<Msg>) {
    let mut told = None;
    while !say.is_closed() {
        tokio::time::sleep(KEEPS).await;
        let kept = match place.lock.get() {
            Some(lock) => lock.ensure().await,
            // Who was read-only from the start stays it.
            None if told.is_some() => return,
            None => take(&place).await,
        };
        if let Err(RampError::Locked { holder }) = kept
            && told.as_ref() != Some(&holder)
        {
            told = Some(holder.clone());
            let _ = say.send(Msg::Locked(holder)).await;
        }
    }
}
