//! One cockpit works on a service at a time.

use super::RampError;
use crate::clock;
use crate::host::{Host, HostError, Locked, Unlock};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// The right to change a service: the kernel's lock on the file `lock` in its state directory, on the service's own host. The kernel takes
/// it back when its holder ends, however that happens; nothing is left to be cleared away. On another host it also ends with the
/// connection, and is taken again by [`Lock::ensure`].
pub struct Lock {
    host: Arc<dyn Host>,
    path: PathBuf,
    text: String,
    held: Mutex<Box<dyn Unlock>>,
}

impl Lock {
    /// Takes the lock of a service's state directory (made if missing, for the owner alone), or says who holds it.
    pub async fn take(host: &Arc<dyn Host>, dir: &Path, who: &str) -> Result<Lock, RampError> {
        let path = dir.join("lock");
        let made = host.make_dir(dir).await;
        made.map_err(|error| disk(host.as_ref(), error))?;
        let since = clock::date_time(clock::unix_ms());
        let text = format!("{who}, pid {}, since {since}", std::process::id());
        let held = lock(host.as_ref(), &path, &text).await?;
        Ok(Lock {
            host: Arc::clone(host),
            path,
            text,
            held: Mutex::new(held),
        })
    }

    /// That it is still ours: it is taken again where it went with the connection.
    pub async fn ensure(&self) -> Result<(), RampError> {
        let mut held = self.held.lock().await;
        if !held.held() {
            *held = lock(self.host.as_ref(), &self.path, &self.text).await?;
        }
        Ok(())
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

async fn lock(host: &dyn Host, path: &Path, text: &str) -> Result<Box<dyn Unlock>, RampError> {
    match host.lock(path, text).await {
        Ok(Locked::Ours(held)) => Ok(held),
        Ok(Locked::Held(holder)) if holder.is_empty() => Err(RampError::Locked {
            holder: "one that has not said who it is yet".to_string(),
        }),
        Ok(Locked::Held(holder)) => Err(RampError::Locked { holder }),
        Err(error) => Err(disk(host, error)),
    }
}

fn disk(host: &dyn Host, error: HostError) -> RampError {
    RampError::Disk {
        tried: format!("lock the service on {}", host.name()),
        what: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    fn local() -> Arc<dyn Host> {
        Arc::new(Local)
    }

    #[tokio::test]
    async fn the_second_one_is_told_who_holds_it_and_gets_it_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/b");
        let first = Lock::take(&local(), &state, "ada@rig").await.unwrap();
        let error = Lock::take(&local(), &state, "bob@rig")
            .await
            .unwrap_err()
            .to_string();
        let pid = std::process::id();
        assert!(
            error.contains(&format!("ada@rig, pid {pid}, since ")),
            "{error}"
        );
        drop(first);
        assert!(Lock::take(&local(), &state, "bob@rig").await.is_ok());
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
        let error = Lock::take(&local(), dir.path(), "ada@rig")
            .await
            .unwrap_err();
        assert_eq!(
            error,
            RampError::Locked {
                holder: "eve@rig, pid 1".to_string()
            }
        );
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(Lock::take(&local(), dir.path(), "ada@rig").await.is_ok());
    }
}
