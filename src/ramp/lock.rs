//! One cockpit works on a service at a time.

use super::RampError;
use crate::clock;
use crate::host::{Host, HostError, Locked, Output, Unlock};
use crate::units;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Of a holder that has written nothing of himself.
const UNNAMED: &str = "one that has not said who it is yet";
/// Characters of a holder's own words that are shown.
const WORDS: usize = 300;

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
            holder: UNNAMED.to_string(),
        }),
        Ok(Locked::Held(holder)) => Err(RampError::Locked { holder }),
        Err(error) => Err(disk(host, error)),
    }
}

/// Who holds the lock of a service's state directory, in his own words, without taking it: as the kernel of the service's host lists it.
/// `None`: nobody.
pub async fn holder(host: &dyn Host, dir: &Path) -> Result<Option<String>, RampError> {
    let path = dir.join("lock");
    let fail = |error: HostError| RampError::Disk {
        tried: format!("see who holds the lock of the service on {}", host.name()),
        what: error.to_string(),
    };
    let Some(text) = host.read(&path).await.map_err(fail)? else {
        return Ok(None);
    };
    let said = |output: Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let run = async |argv: &[&str]| {
        let argv: Vec<String> = argv.iter().map(|word| word.to_string()).collect();
        host.run(&argv).await.map(said).map_err(fail)
    };
    let file = run(&["stat", "-L", "-c", "%d %i", "--", &path.to_string_lossy()]).await?;
    let table = run(&["cat", "/proc/locks"]).await?;
    let text: String = String::from_utf8_lossy(&text).chars().take(WORDS).collect();
    let text = units::clean(text.trim_end());
    Ok(
        is_held(&table, &file, &text).then(|| match text.is_empty() {
            true => UNNAMED.to_string(),
            false => text,
        }),
    )
}

/// Whether the table of the kernel (`proc_locks(5)`) has a lock for writing on the file of `stat`'s `device inode`. File systems that have
/// devices of their own for parts of them (btrfs, overlays) show another device there; then the process that the holder named must fit.
fn is_held(table: &str, file: &str, holder: &str) -> bool {
    let Some((device, inode)) = file.trim().split_once(' ') else {
        return false;
    };
    let device: u64 = device.parse().unwrap_or(0);
    // As the C library takes the number of a device apart.
    let major = (device >> 8) & 0xfff | (device >> 32) & !0xfff;
    let minor = device & 0xff | (device >> 12) & !0xff;
    let device = format!("{major:02x}:{minor:02x}");
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, "WRITE", pid, at, ..] = words.as_slice() else {
            return false;
        };
        let Some((its_device, its_inode)) = at.rsplit_once(':') else {
            return false;
        };
        let named = format!("pid {pid},");
        its_inode == inode && (its_device == device || holder.contains(&named))
    })
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
    async fn a_look_says_who_holds_it_and_takes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a");
        assert_eq!(holder(&Local, &state).await, Ok(None), "there is no lock");
        let held = Lock::take(&local(), &state, "ada@rig").await.unwrap();
        let found = holder(&Local, &state).await.unwrap().unwrap();
        let pid = std::process::id();
        assert!(
            found.starts_with(&format!("ada@rig, pid {pid}, since ")),
            "{found}"
        );
        drop(held);
        assert_eq!(holder(&Local, &state).await, Ok(None), "the file remains");
        assert!(Lock::take(&local(), &state, "bob@rig").await.is_ok());
    }

    #[test]
    fn the_kernels_table_is_read_by_inode_and_device() {
        let table = "1: FLOCK  ADVISORY  WRITE 8308 fe:00:6701231 0 EOF\n\
                     2: FLOCK  ADVISORY  READ 8308 fe:00:77 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 9 fe:00:78 0 EOF\n";
        // 0xfe00 is device fe:00.
        assert!(is_held(table, "65024 6701231\n", ""));
        assert!(!is_held(table, "65025 6701231", "ada@rig, pid 1, since"));
        assert!(is_held(table, "65025 6701231", "ada@rig, pid 8308, since"));
        assert!(!is_held(table, "65024 77", ""), "a lock for reading");
        assert!(!is_held(table, "65024 78", ""), "one that waits for it");
        assert!(!is_held(table, "65024 670123", "") && !is_held(table, "", ""));
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
