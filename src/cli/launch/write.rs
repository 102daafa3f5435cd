//! The diff, the backup, the file.

use super::Failure;
use crate::host::{read_file, write_atomic};
use crate::units::clean;
use similar::TextDiff;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The changed lines alone: what stands around them may hold keys.
pub(super) fn diff(name: &str, old: &[u8], new: &[u8]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (old, new) = (text(old), text(new));
    let diff = TextDiff::from_lines(&old, &new);
    let mut unified = diff.unified_diff();
    let shown = unified
        .context_radius(0)
        .missing_newline_hint(false)
        .header(name, name)
        .to_string();
    shown
        .lines()
        .map(|line| format!("{}\n", clean(line)))
        .collect()
}

/// Bytes to standard output as they are.
pub(super) fn bytes(bytes: &[u8]) -> Result<i32, Failure> {
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(error)),
        _ => Ok(0),
    }
}

/// Writes the new text over the old one, if that is still there; gives the backup.
pub(super) fn write(path: &Path, old: &[u8], new: &[u8]) -> Result<PathBuf, Failure> {
    let name = clean(&path.display().to_string());
    let failed = |what: &str, why: &dyn std::fmt::Display| {
        Failure::new(format!("{what} {name}: {why}; the file is as it was"))
    };
    let now = read_file(path).map_err(|error| failed("cannot read", &error))?;
    if now.as_deref() != Some(old) {
        return Err(failed(
            "did not write",
            &"it has changed in the meantime, or is no file",
        ));
    }
    let backup = backup(path).map_err(|error| failed("cannot keep a backup of", &error))?;
    write_atomic(path, new).map_err(|error| failed("cannot write", &error))?;
    Ok(backup)
}

/// A copy beside the file, with its mode and, where that is allowed, its owner; under a name that nothing loads.
fn backup(path: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let target = std::fs::canonicalize(path)?;
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let mut number = 0_u32;
    let backup = loop {
        let more = match number {
            0 => String::new(),
            n => format!("-{n}"),
        };
        let backup = target.with_file_name(format!("{name}.vramp-{stamp}{more}.bak"));
        if !backup.exists() {
            break backup;
        }
        number += 1;
    };
    std::fs::copy(&target, &backup)?;
    let about = std::fs::metadata(&target)?;
    // Only root may give files away; the copy is then the caller's, with the same mode.
    let _ = std::os::unix::fs::chown(&backup, Some(about.uid()), Some(about.gid()));
    std::fs::File::open(&backup)?.sync_all()?;
    Ok(backup)
}
