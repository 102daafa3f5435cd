//! A deadline that is given to, renewed for, or taken from the trial that runs.

use super::{Ground, cards};
use crate::service::{Deadline, ServiceError};
use std::time::Duration;

/// Gives the running trial `seconds` from now, or takes its deadline away. Gives when it ends then, Unix milliseconds, as the service
/// says it.
///
/// # Errors
/// Nothing could carry it, or it is too late: the last one has passed.
pub async fn set_deadline(
    ground: &Ground,
    seconds: Option<u64>,
) -> Result<Option<i64>, ServiceError> {
    let service = &ground.service;
    match seconds {
        Some(seconds) => {
            let pids = service.pids().await?;
            let snapshot = ground.gpus.borrow().clone();
            let levels = cards::levels(&snapshot, &ground.cards, &pids);
            let levels = levels.iter();
            let levels = levels.filter_map(|level| Some((level.card, *level.bytes.known()?)));
            let deadline = Deadline {
                after: Duration::from_secs(seconds),
                levels: levels.collect(),
            };
            service.arm(&deadline).await?;
        }
        None => service.disarm().await?,
    }
    Ok(service.standing().await?.deadline_unix_ms)
}
