//! Whether a launch could be started, without changing anything.

use super::{Rendered, ServiceError};
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Checks program, directory and environment names of a filled-in launch.
pub fn launch(rendered: &Rendered, cwd: Option<&Path>) -> Result<(), ServiceError> {
    let refuse = |what: String, advice: &str| {
        Err(ServiceError::Failed {
            tried: "check the launch".to_string(),
            what,
            advice: advice.to_string(),
        })
    };
    if let Some(cwd) = cwd
        && !cwd.is_dir()
    {
        return refuse(
            format!("the working directory {} is not there", cwd.display()),
            "Correct cwd in the profile",
        );
    }
    let odd = |name: &str| name.is_empty() || name.contains(['=', '\0']);
    if let Some((name, _)) = rendered.env.iter().find(|(name, _)| odd(name)) {
        return refuse(
            format!("{name:?} is no name for an environment variable"),
            "Correct env in the profile",
        );
    }
    let values = rendered.env.iter().map(|(_, value)| value);
    if let Some(text) = rendered
        .argv
        .iter()
        .chain(values)
        .find(|text| text.contains('\0'))
    {
        return refuse(
            format!("{text:?} contains a zero byte"),
            "Correct the launch in the profile",
        );
    }
    let Some(program) = rendered.argv.first().filter(|program| !program.is_empty()) else {
        return refuse(
            "the command is empty".to_string(),
            "Name the program in argv of the profile",
        );
    };
    if find(program, search_path(rendered), cwd).is_none() {
        return refuse(
            format!("the program {program:?} is not found, or may not be run"),
            "Correct argv in the profile, or install the program",
        );
    }
    Ok(())
}

/// Checks that a file can be written, or made where it is missing.
pub fn writable(file: &Path) -> Result<(), ServiceError> {
    let existing = file.ancestors().find(|path| path.exists());
    let existing = existing.unwrap_or(Path::new("."));
    let result = if existing == file {
        access(file, Access::WRITE_OK)
    } else if existing.is_dir() {
        access(existing, Access::WRITE_OK | Access::EXEC_OK)
    } else {
        Err(rustix::io::Errno::NOTDIR)
    };
    result.map_err(|error| ServiceError::Failed {
        tried: format!("see whether {} can be written", file.display()),
        what: error.to_string(),
        advice: "Make it writable, or name another place in the profile".to_string(),
    })
}

/// The program that the system would run: by path as it is (a relative one from the working directory), by name along `PATH`.
fn find(program: &str, search: Option<OsString>, cwd: Option<&Path>) -> Option<PathBuf> {
    let here = cwd.unwrap_or(Path::new(""));
    let runs = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(here.join(program)).filter(runs);
    }
    std::env::split_paths(&search?)
        .map(|folder| here.join(folder).join(program))
        .find(runs)
}

fn search_path(rendered: &Rendered) -> Option<OsString> {
    let own = rendered.env.iter().rev().find(|(name, _)| name == "PATH");
    own.map(|(_, value)| OsString::from(value))
        .or_else(|| std::env::var_os("PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(argv: &[&str], env: &[(&str, &str)], cwd: Option<&str>) -> Result<(), String> {
        let rendered = Rendered {
            argv: argv.iter().map(|text| text.to_string()).collect(),
            env: env
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        };
        launch(&rendered, cwd.map(Path::new)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_could_not_start_is_said_before_anything_is_stopped() {
        assert_eq!(launched(&["sh"], &[], None), Ok(()));
        assert_eq!(launched(&["/bin/sh"], &[], Some("/tmp")), Ok(()));
        assert_eq!(launched(&["./sh"], &[], Some("/bin")), Ok(()));
        for (argv, env, cwd, word) in [
            (&[][..], &[][..], None, "empty"),
            (&[""], &[], None, "empty"),
            (&["no-such-program"], &[], None, "no-such-program"),
            (&["sh"], &[("PATH", "/no/such/folder")], None, "not found"),
            (&["./sh"], &[], Some("/tmp"), "not found"),
            (&["/etc/passwd"], &[], None, "may not be run"),
            (&["sh"], &[], Some("/no/such/folder"), "/no/such/folder"),
            (&["sh"], &[("A=B", "1")], None, "environment variable"),
            (&["sh", "a\0b"], &[], None, "zero byte"),
        ] {
            let error = launched(argv, env, cwd).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_file_in_folders_yet_to_be_made_is_writable_where_they_can_be_made() {
        let dir = tempfile::tempdir().unwrap();
        assert!(writable(&dir.path().join("a/b/server.log")).is_ok());
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(writable(&file).is_ok());
        let error = writable(&file.join("server.log")).unwrap_err();
        assert!(error.to_string().contains("file/server.log"), "{error}");
    }
}
