//! Writes a file whole or not at all.

use crate::profile::ProfileError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

/// Replaces the content of the existing `file`, keeping its mode and owner; through a symbolic link, the file it names.
pub(super) fn whole(file: &Path, bytes: &[u8]) -> Result<(), ProfileError> {
    replace(file, bytes).map_err(|error| ProfileError::File {
        tried: "write".into(),
        path: file.to_path_buf(),
        what: error.to_string(),
        advice: "The file is as it was; is its directory writable, and is there room on the disk?"
            .into(),
    })
}

fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(file)?;
    let before = fs::metadata(&target)?;
    let directory = target.parent().unwrap_or(Path::new("/"));
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = directory.join(name);
    let written = (|| {
        let mut out = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)?;
        out.set_permissions(before.permissions())?;
        let now = out.metadata()?;
        if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
            chown(&temporary, Some(before.uid()), Some(before.gid()))?;
        }
        out.write_all(bytes)?;
        out.sync_all()?;
        fs::rename(&temporary, &target)
    })();
    if let Err(error) = written {
        // What is left of a failed attempt is of no use; that it cannot be removed changes nothing for the caller.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(directory)?.sync_all()
}
