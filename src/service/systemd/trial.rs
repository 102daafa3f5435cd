//! What lies over a unit's files: the trial, which a reboot takes away, and the lasting change of a unit that is not ours to edit.
//!
//! Drop-ins of one unit are merged by file name over all folders, and the last name wins. So a trial is one only if its file is the
//! last in the manager's own list; a same-named file in `/etc` would hide it.

use super::files::{Override, failed};
use super::manager::{Folders, Manager, Shown};
use crate::service::ServiceError;
use crate::units::thousands;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Behind the letters that make it sort last.
const TRIAL: &str = "-vramp-trial.conf";
/// Tried in this order; each sorts behind the one before.
const LETTERS: [&str; 4] = ["zzz", "zzzz", "zzzzzz", "zzzzzzzzz"];
/// The lasting drop-in.
const LASTING: &str = "zz-vramp-context.conf";

/// The trials of a unit among its drop-ins: there is one at most, unless somebody made more by hand.
pub fn of(shown: &Shown, folders: &Folders, unit: &str) -> Vec<PathBuf> {
    let folder = folder(&folders.runtime, unit);
    let drop_ins = shown.list("DropInPaths").into_iter().map(PathBuf::from);
    drop_ins
        .filter(|path| path.parent() == Some(&folder) && is_trial(path))
        .collect()
}

pub fn is_trial(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(TRIAL)
        .is_some_and(|letters| letters.chars().all(|c| c == 'z'))
}

fn folder(root: &Path, unit: &str) -> PathBuf {
    root.join(format!("{unit}.d"))
}

/// Where a trial will lie, so that it is the last of all drop-ins.
///
/// # Errors
/// The unit has a drop-in that sorts behind every name a trial may have.
pub fn place(shown: &Shown, folders: &Folders, unit: &str) -> Result<PathBuf, ServiceError> {
    let ours = of(shown, folders, unit);
    let others: Vec<PathBuf> = shown
        .list("DropInPaths")
        .into_iter()
        .map(PathBuf::from)
        .filter(|path| !ours.contains(path))
        .collect();
    let name = |path: &PathBuf| path.file_name().map(|n| n.to_os_string());
    let last = others.iter().filter_map(name).max();
    let fits = LETTERS
        .iter()
        .map(|letters| format!("{letters}{TRIAL}"))
        .find(|own| {
            last.as_ref()
                .is_none_or(|last| last.as_os_str() < OsStr::new(own))
        });
    let Some(own) = fits else {
        let last = last.unwrap_or_default();
        return Err(ServiceError::Failed {
            tried: format!("plan a trial of {unit}"),
            what: format!(
                "its drop-in {} sorts behind every name that a trial may have, so it would override the trial",
                last.to_string_lossy()
            ),
            advice: "Give that file a name that sorts earlier".to_string(),
        });
    };
    Ok(folder(&folders.runtime, unit).join(own))
}

/// Where a lasting change lies that cannot be made in the file itself.
pub fn lasting_place(folders: &Folders, unit: &str) -> PathBuf {
    folder(&folders.lasting, unit).join(LASTING)
}

/// The environment file beside a drop-in.
pub fn variables(drop_in: &Path) -> PathBuf {
    drop_in.with_extension("env")
}

/// Writes `what` as the drop-in `path`, its environment file first. The manager has not read it yet.
pub async fn write(
    manager: &Manager,
    path: &Path,
    what: &Override,
    comment: &str,
) -> Result<(), ServiceError> {
    let mut text = format!("# {comment}\n[Service]\n").into_bytes();
    match what {
        Override::Command(lines) => text.extend(lines),
        Override::Variable(line) => {
            let file = variables(path);
            manager.write(&file, line.as_bytes()).await?;
            let name = file.to_string_lossy().replace('%', "%%");
            text.extend(format!("EnvironmentFile={name}\n").into_bytes());
        }
    }
    manager.write(path, &text).await
}

/// The comment of a trial.
pub fn comment(context: u64) -> String {
    format!(
        "Written by vramp: a trial of {} tokens a request. A reboot takes it away.",
        thousands(context)
    )
}

/// Proves after a reload that the manager takes `path` last.
pub async fn prove_last(manager: &Manager, unit: &str, path: &Path) -> Result<(), ServiceError> {
    let shown = manager.show().await?;
    let drop_ins = shown.list("DropInPaths");
    if drop_ins.last().map(Path::new) == Some(path) {
        return Ok(());
    }
    let what = match drop_ins.last() {
        Some(last) => format!("the manager takes {last} after {}", path.display()),
        None => format!("the manager does not read {}", path.display()),
    };
    Err(failed(
        unit,
        what,
        "Remove or rename what overrides the trial, then try again",
    ))
}

/// Removes a drop-in with its environment file. The manager has not read that yet.
pub async fn remove(manager: &Manager, path: &Path) -> Result<(), ServiceError> {
    manager.remove(path).await?;
    manager.remove(&variables(path)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(drop_ins: &str) -> Shown {
        Shown::parse(&format!("DropInPaths={drop_ins}\n"))
    }

    fn folders() -> Folders {
        Folders {
            runtime: "/run/systemd/system".into(),
            lasting: "/etc/systemd/system".into(),
            editable: vec!["/etc/systemd/system".into()],
        }
    }

    fn placed(drop_ins: &str) -> Result<String, String> {
        place(&shown(drop_ins), &folders(), "a.service")
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_trial_takes_a_name_that_sorts_last() {
        assert_eq!(placed("").unwrap(), "zzz-vramp-trial.conf");
        let others =
            "/etc/systemd/system/a.service.d/10-x.conf /usr/lib/systemd/system/a.service.d/zz.conf";
        assert_eq!(placed(others).unwrap(), "zzz-vramp-trial.conf");
        // The same name in /etc hides the one in /run.
        let same = "/etc/systemd/system/a.service.d/zzz-vramp-trial.conf";
        assert_eq!(placed(same).unwrap(), "zzzz-vramp-trial.conf");
        let later = "/etc/systemd/system/a.service.d/zzz-zzz.conf";
        assert_eq!(placed(later).unwrap(), "zzzz-vramp-trial.conf");
        let error = placed("/etc/systemd/system/service.d/~last.conf").unwrap_err();
        assert!(error.contains("~last.conf"), "{error}");
        // An earlier trial of our own is written over.
        let own = "/run/systemd/system/a.service.d/zzz-vramp-trial.conf";
        assert_eq!(placed(own).unwrap(), "zzz-vramp-trial.conf");
        let both = format!("{own} {same}");
        assert_eq!(
            of(&shown(&both), &folders(), "a.service"),
            [PathBuf::from(own)]
        );
    }
}
