//! The last good configuration: the newest that passed the smoke test and then served for a minute.

use super::RampError;
use crate::host::Host;
use crate::service::Config;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How long a configuration must serve after its smoke test.
pub const SERVES_MS: i64 = 60_000;

/// One stretch of service with one configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    pub config: Config,
    /// When the smoke test was passed; `None`: it was not.
    pub smoke_unix_ms: Option<i64>,
    /// When it was stopped or failed; `None`: it still serves.
    pub until_unix_ms: Option<i64>,
}

/// The newest of `history` (in any order) that passed the smoke test and then served for a minute.
pub fn last_good(history: &[Served], now_unix_ms: i64) -> Option<&Config> {
    history
        .iter()
        .filter_map(|served| {
            let smoke = served.smoke_unix_ms?;
            let until = served.until_unix_ms.unwrap_or(now_unix_ms);
            (until.saturating_sub(smoke) >= SERVES_MS).then_some((smoke, &served.config))
        })
        .max_by_key(|(smoke, _)| *smoke)
        .map(|(_, config)| config)
}

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct OnDisk {
    version: u32,
    config: Config,
}

/// Reads the last good of a service's state directory; `None` if none was ever kept.
pub async fn load(host: &dyn Host, dir: &Path) -> Result<Option<Config>, RampError> {
    let path = dir.join("last_good.json");
    let fail = |what: String| RampError::Disk {
        tried: format!("read the last good configuration in {}", path.display()),
        what,
    };
    let bytes = host
        .read(&path)
        .await
        .map_err(|error| fail(error.to_string()))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let found: OnDisk = serde_json::from_slice(&bytes).map_err(|error| fail(error.to_string()))?;
    if found.version != VERSION {
        return Err(fail(format!(
            "it has form {}, this vramp knows form {VERSION}",
            found.version
        )));
    }
    Ok(Some(found.config))
}

/// Keeps the last good beside the service.
pub async fn save(host: &dyn Host, dir: &Path, config: &Config) -> Result<(), RampError> {
    let path = dir.join("last_good.json");
    let fail = |what: String| RampError::Disk {
        tried: format!("write the last good configuration to {}", path.display()),
        what,
    };
    let bytes = serde_json::to_vec_pretty(&OnDisk {
        version: VERSION,
        config: config.clone(),
    })
    .map_err(|error| fail(error.to_string()))?;
    host.write(&path, &bytes)
        .await
        .map_err(|error| fail(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;
    use crate::profile::Launch;

    fn config(context: u64) -> Config {
        Config {
            context,
            launch: Launch {
                argv: vec![],
                env: vec![],
                cwd: None,
                slots: 1,
            },
        }
    }

    fn served(context: u64, smoke: Option<i64>, until: Option<i64>) -> Served {
        Served {
            config: config(context),
            smoke_unix_ms: smoke,
            until_unix_ms: until,
        }
    }

    #[test]
    fn the_newest_that_served_a_minute_after_its_smoke_test() {
        let history = [
            served(1, Some(0), Some(60_000)),
            served(2, Some(100_000), Some(160_000)),
            // Stopped too early, not asked, and too young.
            served(3, Some(200_000), Some(259_999)),
            served(4, None, Some(900_000)),
            served(5, Some(950_000), None),
        ];
        assert_eq!(last_good(&history, 1_009_999), Some(&config(2)));
        assert_eq!(last_good(&history, 1_010_000), Some(&config(5)));
        assert_eq!(last_good(&[], 0), None);
    }

    #[tokio::test]
    async fn it_is_kept_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(load(&Local, dir.path()).await, Ok(None));
        save(&Local, dir.path(), &config(7)).await.unwrap();
        assert_eq!(load(&Local, dir.path()).await, Ok(Some(config(7))));
        std::fs::write(dir.path().join("last_good.json"), "{\"version\":2}").unwrap();
        assert!(load(&Local, dir.path()).await.is_err());
    }
}
