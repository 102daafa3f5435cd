//! Keeping a trial on a host that may be lost in the middle: what is not known is not claimed.

use crate::host::Host;
use crate::service::{Config, Service};
use crate::units::thousands;
use std::time::Duration;
use tokio::time::sleep;

/// How often, and how many times, a lost host is looked for.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 30;

/// Makes the running trial what a reboot brings; gives how it was written. Only the operator's confirmation may lead here.
///
/// # Errors
/// What is true of the value instead, to be read after its number: `is not kept: …`, or `may be kept or not: …`.
pub async fn keep(
    host: &dyn Host,
    service: &dyn Service,
    config: &Config,
) -> Result<String, String> {
    let losses = host.losses();
    let error = match service.confirm(config).await {
        Ok(how) => return Ok(how),
        Err(error) => error,
    };
    if host.losses() == losses {
        return Err(format!("is not kept: {error}"));
    }
    let unknown = format!(
        "may be kept or not: {error}. The connection was lost while it was written; vramp status says what a reboot brings once {} is back",
        host.name()
    );
    if !is_back(host).await {
        return Err(unknown);
    }
    // It may have been done in part: confirming again leaves what is done and finishes the rest.
    match service.confirm(config).await {
        Ok(how) => Ok(format!(
            "{how}; the connection was lost meanwhile, and it was proven anew"
        )),
        Err(again) => match service.standing().await {
            Ok(standing) if standing.production == Some(config.context) => Err(format!(
                "is what a reboot brings, but that is not finished: {again}"
            )),
            Ok(standing) => Err(format!(
                "is not kept: {again}; a reboot brings {}",
                standing
                    .production
                    .map_or("nothing known".to_string(), thousands)
            )),
            Err(_) => Err(unknown),
        },
    }
}

async fn is_back(host: &dyn Host) -> bool {
    for _ in 0..LOOKS {
        if host.boot_id().await.is_ok() {
            return true;
        }
        sleep(LOOK).await;
    }
    false
}
