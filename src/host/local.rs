//! This machine.

use super::{Host, HostError, Output};
use async_trait::async_trait;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

/// The machine that vramp itself runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

#[async_trait]
impl Host for Local {
    fn name(&self) -> String {
        "localhost".to_string()
    }

    async fn run(&self, argv: &[String]) -> Result<Output, HostError> {
        let tried = || format!("run {}", argv.join(" "));
        let Some((program, arguments)) = argv.split_first() else {
            return Err(failed(tried(), "the command is empty"));
        };
        let output = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| failed(tried(), error))?;
        Ok(Output {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: output.stderr,
        })
    }

    async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, HostError> {
        let path = path.to_path_buf();
        blocking("read a file", move || read_file(&path)).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        let (path, bytes) = (path.to_path_buf(), bytes.to_vec());
        blocking("write a file", move || write_atomic(&path, &bytes)).await
    }

    async fn remove(&self, path: &Path) -> Result<(), HostError> {
        let path = path.to_path_buf();
        blocking("remove a file", move || remove_file(&path)).await
    }

    async fn boot_id(&self) -> Result<String, HostError> {
        boot_id()
    }
}

/// The kernel's name for this boot.
pub fn boot_id() -> Result<String, HostError> {
    let path = "/proc/sys/kernel/random/boot_id";
    fs::read_to_string(path)
        .map(|text| text.trim().to_string())
        .map_err(|error| failed(format!("read {path}"), error))
}

/// Reads a file whole; `None` if it does not exist.
pub fn read_file(path: &Path) -> Result<Option<Vec<u8>>, HostError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(format!("read {}", path.display()), error)),
    }
}

/// Writes a file whole or not at all: a temporary file beside it, synced, renamed over it, and the folder synced. A power cut
/// leaves the old text or the new one. Mode and owner of an existing file stay; a symbolic link stays one, its target is
/// written.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let tried = || format!("write {}", path.display());
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(failed(tried(), error)),
    };
    let temporary = temporary_beside(&target);
    let result = write_beside(&target, &temporary, bytes);
    if result.is_err() {
        // What is left of the attempt is of no use; that it may not be removable changes nothing.
        let _ = fs::remove_file(&temporary);
    }
    result.map_err(|error| failed(tried(), error))
}

fn write_beside(target: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = match fs::metadata(target) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        // Nobody else reads the new text before it has the old one's mode.
        .mode(if old.is_some() { 0o600 } else { 0o666 })
        .open(temporary)?;
    file.write_all(bytes)?;
    if let Some(old) = old {
        let new = file.metadata()?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        // After the owner: a change of owner clears bits of the mode.
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    fs::rename(temporary, target)?;
    sync_folder(target)
}

/// Removes a file and syncs its folder; one that does not exist is no error.
pub fn remove_file(path: &Path) -> Result<(), HostError> {
    match fs::remove_file(path) {
        Ok(()) => {
            sync_folder(path).map_err(|error| failed(format!("remove {}", path.display()), error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(format!("remove {}", path.display()), error)),
    }
}

/// A rename is on disk only when the folder is.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn temporary_beside(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = target
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    target.with_file_name(format!(
        ".{name}.{}-{}.tmp",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ))
}

async fn blocking<T: Send + 'static>(
    tried: &str,
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(failed(tried.to_string(), error)))
}

fn failed(tried: String, what: impl ToString) -> HostError {
    HostError::Failed {
        tried,
        what: what.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_write_keeps_the_mode_and_the_link_and_leaves_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("real.toml");
        let link = dir.path().join("link.toml");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();

        write_atomic(&link, b"new").unwrap();

        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o7777,
            0o640
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_failed_write_says_where_and_leaves_the_old_text() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("in"), "").unwrap();
        let error = write_atomic(&folder, b"text").unwrap_err().to_string();
        assert!(error.contains("folder"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write_atomic(&dir.path().join("no/such/file"), b"").is_err());
    }

    #[tokio::test]
    async fn commands_are_argument_vectors() {
        let argv = ["printf", "%s|", "a b", "$HOME"].map(str::to_string);
        let output = Local.run(&argv).await.unwrap();
        assert_eq!(output.stdout, b"a b|$HOME|");
        assert_eq!(output.code, Some(0));
        let error = Local.run(&["no-such-program".to_string()]).await;
        assert!(error.unwrap_err().to_string().contains("no-such-program"));
    }

    #[tokio::test]
    async fn what_does_not_exist_reads_as_none_and_is_removed_already() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(Local.read(&path).await, Ok(None));
        assert_eq!(Local.remove(&path).await, Ok(()));
        Local.write(&path, b"x").await.unwrap();
        assert_eq!(Local.read(&path).await, Ok(Some(b"x".to_vec())));
        Local.remove(&path).await.unwrap();
        assert!(!path.exists());
        assert_eq!(Local.boot_id().await.unwrap().len(), 36);
    }
}
