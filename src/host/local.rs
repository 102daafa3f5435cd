//! This machine.

use super::{Ended, FileStat, Host, HostError, Lines, Locked, Output, child, failed, lock, tried};
use async_trait::async_trait;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::process::Command;

/// The machine that vramp itself runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

#[async_trait]
impl Host for Local {
    fn name(&self) -> String {
        "localhost".to_string()
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn run_with(&self, argv: &[String], input: &[u8]) -> Result<Output, HostError> {
        child::run(command(argv)?, input)
            .await
            .map_err(|error| failed(tried(argv), error))
    }

    async fn stream(&self, argv: &[String]) -> Result<Lines, HostError> {
        let meaning = |status: std::process::ExitStatus, stderr: Vec<u8>| {
            Ok(Ended {
                code: status.code(),
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
            })
        };
        child::follow(command(argv)?, false, None, Box::new(meaning))
            .map_err(|error| failed(tried(argv), error))
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

    async fn stat(&self, path: &Path) -> Result<Option<FileStat>, HostError> {
        let path = path.to_path_buf();
        blocking("look at a file", move || stat_file(&path)).await
    }

    async fn backup(&self, path: &Path) -> Result<PathBuf, HostError> {
        let path = path.to_path_buf();
        blocking("back a file up", move || backup_file(&path)).await
    }

    async fn make_dir(&self, path: &Path) -> Result<(), HostError> {
        let path = path.to_path_buf();
        blocking("make a folder", move || {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&path)
                .map_err(|error| failed(format!("make the folder {}", path.display()), error))
        })
        .await
    }

    async fn lock(&self, path: &Path, who: &str) -> Result<Locked, HostError> {
        let (path, who) = (path.to_path_buf(), who.to_string());
        blocking("lock a file", move || lock::lock(&path, &who)).await
    }

    async fn boot_id(&self) -> Result<String, HostError> {
        boot_id()
    }
}

fn command(argv: &[String]) -> Result<Command, HostError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(failed(tried(argv), "the command is empty"));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
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

/// What kind of file it is; `None` if it does not exist.
fn stat_file(path: &Path) -> Result<Option<FileStat>, HostError> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(FileStat {
            is_dir: meta.is_dir(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            size: meta.len(),
            modified_unix_s: meta.mtime(),
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(format!("look at {}", path.display()), error)),
    }
}

/// Copies a file beside itself under a new name, with mode, owner and time.
fn backup_file(path: &Path) -> Result<PathBuf, HostError> {
    let fail = |error: io::Error| failed(format!("back up {}", path.display()), error);
    let stamp = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut source = File::open(path).map_err(fail)?;
    let meta = source.metadata().map_err(fail)?;
    let mut count = 0;
    let (copy, mut file) = loop {
        let more = if count == 0 {
            String::new()
        } else {
            format!("-{count}")
        };
        let copy = path.with_file_name(format!("{name}.vramp-{stamp}{more}"));
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&copy);
        match made {
            Ok(file) => break (copy, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => count += 1,
            Err(error) => return Err(fail(error)),
        }
    };
    let filled = (|| {
        io::copy(&mut source, &mut file)?;
        let new = file.metadata()?;
        if (meta.uid(), meta.gid()) != (new.uid(), new.gid()) {
            fchown(&file, Some(meta.uid()), Some(meta.gid()))?;
        }
        file.set_permissions(meta.permissions())?;
        file.set_modified(meta.modified()?)?;
        file.sync_all()?;
        sync_folder(&copy)
    })();
    match filled {
        Ok(()) => Ok(copy),
        Err(error) => {
            // Half a backup is none.
            let _ = fs::remove_file(&copy);
            Err(fail(error))
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Streamed;
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
    async fn a_command_reads_what_it_is_given_and_a_signal_is_no_exit_code() {
        let argv = |words: &[&str]| words.iter().map(|w| w.to_string()).collect::<Vec<_>>();
        // More than a pipe holds, both ways.
        let input = vec![b'x'; 1 << 20];
        let output = Local.run_with(&argv(&["cat"]), &input).await.unwrap();
        assert_eq!(output.stdout, input);
        // A command that does not read is no error.
        let output = Local.run_with(&argv(&["true"]), &input).await.unwrap();
        assert_eq!(output.code, Some(0));
        let output = Local.run(&argv(&["sh", "-c", "kill -9 $$"])).await.unwrap();
        assert_eq!(output.code, None);
        assert!(Local.run(&[]).await.is_err());
    }

    #[tokio::test]
    async fn lines_come_one_by_one_and_end_with_the_exit() {
        let script = "echo one; printf 'two\\r\\n'; echo; printf last; echo oh >&2; exit 7";
        let argv = ["sh", "-c", script].map(str::to_string);
        let mut lines = Local.stream(&argv).await.unwrap();
        for expected in ["one", "two", "", "last"] {
            assert_eq!(
                lines.next().await,
                Some(Streamed::Line(expected.to_string()))
            );
        }
        let ended = Ended {
            code: Some(7),
            stderr: "oh\n".to_string(),
        };
        assert_eq!(lines.next().await, Some(Streamed::Ended(ended)));
        assert_eq!(lines.next().await, None);
    }

    #[tokio::test]
    async fn a_stream_that_is_dropped_ends_its_command() {
        let argv = ["sh", "-c", "echo $$; exec sleep 600"].map(str::to_string);
        let mut lines = Local.stream(&argv).await.unwrap();
        let Some(Streamed::Line(pid)) = lines.next().await else {
            panic!("no line");
        };
        let proc = PathBuf::from(format!("/proc/{pid}"));
        assert!(proc.exists());
        drop(lines);
        for _ in 0..500 {
            if !proc.exists() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("process {pid} is still there");
    }

    #[tokio::test]
    async fn a_backup_has_all_of_the_file_and_spares_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("unit.service");
        fs::write(&file, "first").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let before = Local.stat(&file).await.unwrap().unwrap();
        assert_eq!((before.mode, before.size, before.is_dir), (0o640, 5, false));
        let one = Local.backup(&file).await.unwrap();
        fs::write(&file, "second").unwrap();
        let two = Local.backup(&file).await.unwrap();
        assert_ne!(one, two);
        assert_eq!(fs::read(&one).unwrap(), b"first");
        assert_eq!(fs::read(&two).unwrap(), b"second");
        assert_eq!(Local.stat(&one).await.unwrap(), Some(before));
        let gone = dir.path().join("gone");
        assert_eq!(Local.stat(&gone).await, Ok(None));
        assert!(Local.backup(&gone).await.is_err());
        assert!(Local.stat(dir.path()).await.unwrap().unwrap().is_dir);
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
