//! One cockpit works on a service at a time.

use super::RampError;
use crate::clock;
use crate::host::{Host, HostError, Locked, Unlock};
use std::path::Path;

/// The right to change a service: the kernel's lock on the file `lock` in its state directory, on the service's own host. The kernel takes
/// it back when its holder ends, however that happens; nothing is left to be cleared away.
#[derive(Debug)]
pub struct Lock {
    held: Box<dyn Unlock>,
}

impl Lock {
    /// Takes the lock of a service's state directory (made if missing, for the owner alone), or says who holds it.
    pub async fn take(host: &dyn Host, dir: &Path, who: &str) -> Result<Lock, RampError> {
        let path = dir.join("lock");
        let disk = |error: HostError| RampError::Disk {
            tried: format!("lock the service on {}", host.name()),
            what: error.to_string(),
        };
        host.make_dir(dir).await.map_err(disk)?;
        let since = clock::date_time(clock::unix_ms());
        let text = format!("{who}, pid {}, since {since}", std::process::id());
        match host.lock(&path, &text).await.map_err(disk)? {
            Locked::Ours(held) => Ok(Lock { held }),
            Locked::Held(holder) if holder.is_empty() => Err(RampError::Locked {
                holder: "one that has not said who it is yet".to_string(),
            }),
            Locked::Held(holder) => Err(RampError::Locked { holder }),
        }
    }

    /// Whether it is still ours: on another host it ends with the connection.
    pub fn held(&self) -> bool {
        self.held.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[tokio::test]
    async fn the_second_one_is_told_who_holds_it_and_gets_it_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/b");
        let first = Lock::take(&Local, &state, "ada@rig").await.unwrap();
        let error = Lock::take(&Local, &state, "bob@rig")
            .await
            .unwrap_err()
            .to_string();
        let pid = std::process::id();
        assert!(
            error.contains(&format!("ada@rig, pid {pid}, since ")),
            "{error}"
        );
        drop(first);
        assert!(Lock::take(&Local, &state, "bob@rig").await.is_ok());
    }

    #[tokio::test]
    async fn another_process_holds_it_until_it_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        std::fs::write(&path, "eve@rig\u{1b}[2J, pid 1").unwrap();
        let mut other = Command::new("flock")
            .arg("--no-fork")
            .arg(&path)
            .args(["sh", "-c", "echo held; exec sleep 60"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(other.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let error = Lock::take(&Local, dir.path(), "ada@rig").await.unwrap_err();
        assert_eq!(
            error,
            RampError::Locked {
                holder: "eve@rig, pid 1".to_string()
            }
        );
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(Lock::take(&Local, dir.path(), "ada@rig").await.is_ok());
    }
}
