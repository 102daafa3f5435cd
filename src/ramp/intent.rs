//! The intent on disk: `intent.json` in the service's state directory, on its host.

use super::cards::Level;
use super::{Intent, RampError};
use crate::host::Host;
use crate::service::ProcessId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The form of the file that this program writes.
pub const VERSION: u32 = 1;

/// The file: the intent, and what is needed to take the restart up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OnDisk {
    #[serde(flatten)]
    pub intent: Intent,
    /// The memory of each card without the server.
    pub levels: Vec<Level>,
    /// The processes of the servers that were stopped, as they were before the stop.
    #[serde(default)]
    pub members: Vec<ProcessId>,
    /// Where the log of the present start begins.
    pub log_from: Option<u64>,
}

/// The restart that a cockpit did not live to finish; `None` if there is none. A file that cannot be understood is an error: it
/// is shown, and never removed or written over.
pub async fn find(host: &dyn Host, dir: &Path) -> Result<Option<Intent>, RampError> {
    Ok(read(host, dir).await?.map(|found| found.intent))
}

pub(super) async fn read(host: &dyn Host, dir: &Path) -> Result<Option<OnDisk>, RampError> {
    let path = path(dir);
    let fail = |what: String| disk("read the unfinished restart in", &path, what);
    let bytes = host
        .read(&path)
        .await
        .map_err(|error| fail(error.to_string()))?;
    let Some(bytes) = bytes else { return Ok(None) };
    #[derive(Deserialize)]
    struct Form {
        version: u32,
    }
    let form: Form = serde_json::from_slice(&bytes).map_err(|error| {
        fail(format!(
            "it cannot be understood ({error}); see by hand what runs, then move it away"
        ))
    })?;
    if form.version != VERSION {
        return Err(fail(format!(
            "it has form {}, this vramp knows form {VERSION}; use the vramp that wrote it",
            form.version
        )));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        fail(format!(
            "it cannot be understood ({error}); see by hand what runs, then move it away"
        ))
    })
}

pub(super) async fn write(host: &dyn Host, dir: &Path, what: &OnDisk) -> Result<(), RampError> {
    let path = path(dir);
    let fail = |what: String| disk("write the intent to", &path, what);
    let bytes = serde_json::to_vec_pretty(what).map_err(|error| fail(error.to_string()))?;
    host.write(&path, &bytes)
        .await
        .map_err(|error| fail(error.to_string()))
}

/// Removes the intent.
pub async fn remove(host: &dyn Host, dir: &Path) -> Result<(), RampError> {
    let path = path(dir);
    host.remove(&path)
        .await
        .map_err(|error| disk("remove the intent", &path, error.to_string()))
}

/// Where the intent lies.
pub fn path(dir: &Path) -> PathBuf {
    dir.join("intent.json")
}

fn disk(tried: &str, path: &Path, what: String) -> RampError {
    RampError::Disk {
        tried: format!("{tried} {}", path.display()),
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;
    use crate::profile::Launch;
    use crate::ramp::{Leg, Purpose, RestartPlan, Step, Target, TargetKind};
    use crate::reading::Reading;
    use crate::service::Config;

    fn on_disk() -> OnDisk {
        let config = |context| Config {
            context,
            launch: Launch {
                argv: vec!["serve".to_string(), "{context}".to_string()],
                env: vec![("A".to_string(), "b".to_string())],
                cwd: None,
                slots: 2,
            },
        };
        OnDisk {
            intent: Intent {
                version: VERSION,
                plan: RestartPlan {
                    purpose: Purpose::Change,
                    from: Some(config(4096)),
                    to: config(8192),
                    on_failure: Some(Target {
                        kind: TargetKind::LastGood,
                        config: config(4096),
                    }),
                    production: Some(4096),
                    deadline_s: None,
                },
                leg: Leg::Forward,
                step: Step::Stop,
                since_unix_ms: 1_772_000_000_000,
                by: "ada@rig".to_string(),
                failure: None,
                simulated: false,
            },
            members: vec![ProcessId {
                pid: 4242,
                start_ticks: 99,
                boot_id: "boot".to_string(),
            }],
            levels: vec![Level {
                card: 0,
                bytes: Reading::Value(300 << 20),
            }],
            log_from: Some(17),
        }
    }

    #[tokio::test]
    async fn what_is_written_is_found_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(find(&Local, dir.path()).await, Ok(None));
        write(&Local, dir.path(), &on_disk()).await.unwrap();
        assert_eq!(read(&Local, dir.path()).await, Ok(Some(on_disk())));
        assert_eq!(find(&Local, dir.path()).await, Ok(Some(on_disk().intent)));
        remove(&Local, dir.path()).await.unwrap();
        assert_eq!(find(&Local, dir.path()).await, Ok(None));
    }

    #[tokio::test]
    async fn what_cannot_be_understood_is_said_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        for (text, word) in [
            ("{\"version\": 2, \"new\": true}", "form 2"),
            ("{\"version\": 1}", "cannot be understood"),
            ("half a fi", "cannot be understood"),
            ("", "cannot be understood"),
        ] {
            std::fs::write(path(dir.path()), text).unwrap();
            let error = find(&Local, dir.path()).await.unwrap_err().to_string();
            assert!(
                error.contains(word) && error.contains("intent.json"),
                "{error}"
            );
            assert_eq!(std::fs::read_to_string(path(dir.path())).unwrap(), text);
        }
    }

    #[tokio::test]
    async fn a_folder_that_is_not_there_is_said() {
        let error = write(&Local, Path::new("/no/such"), &on_disk()).await;
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("/no/such/intent.json")
        );
    }
}
