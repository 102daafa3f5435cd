//! One cockpit works on a service at a time.

use super::RampError;
use crate::clock;
use crate::units;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The right to change a service. The kernel takes it back when its holder ends, however that happens; nothing is left to be
/// cleared away.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a service's state directory (made if missing, for the owner alone), or says who holds it.
    pub fn try_lock(dir: &Path, who: &str) -> Result<Lock, RampError> {
        let path = dir.join("lock");
        let disk = |error: std::io::Error| RampError::Disk {
            tried: format!("lock {}", path.display()),
            what: error.to_string(),
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(disk)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(disk)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(RampError::Locked {
                    holder: holder(&mut file),
                });
            }
            Err(error) => return Err(disk(error.into())),
        }
        let since = clock::date_time(clock::unix_ms());
        let text = format!("{who}, pid {}, since {since}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(disk)?;
        Ok(Lock { _file: file })
    }
}

/// What the holder wrote of itself.
fn holder(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.take(300).read_to_end(&mut bytes);
    let text = units::clean(&String::from_utf8_lossy(&bytes));
    if read.is_err() || text.is_empty() {
        return "one that has not said who it is yet".to_string();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn the_second_one_is_told_who_holds_it_and_gets_it_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/b");
        let first = Lock::try_lock(&state, "ada@rig").unwrap();
        let error = Lock::try_lock(&state, "bob@rig").unwrap_err().to_string();
        let pid = std::process::id();
        assert!(
            error.contains(&format!("ada@rig, pid {pid}, since ")),
            "{error}"
        );
        drop(first);
        assert!(Lock::try_lock(&state, "bob@rig").is_ok());
    }

    #[test]
    fn another_process_holds_it_until_it_is_killed() {
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
        let error = Lock::try_lock(dir.path(), "ada@rig").unwrap_err();
        assert_eq!(
            error,
            RampError::Locked {
                holder: "eve@rig, pid 1".to_string()
            }
        );
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(Lock::try_lock(dir.path(), "ada@rig").is_ok());
    }
}
