//! Changes of single values in a profile file. Every other byte stays: comments, order, quotes, line ends.
//!
//! The file is never written from its parsed form. The parser gives the place of a value; the bytes there are replaced, the result
//! is read again, and only if it says exactly what was wanted is it written.

mod launch;
mod text;

use super::check::check_launch;
use super::error::ProfileError;
use super::load::{self, Loaded};
use super::{Launch, Profile, ServiceSpec};
use crate::host::write_atomic;
use std::path::Path;
use text::{Edit, add_after, apply};
use toml_edit::{Document, Item};

/// Makes `context` (tokens per request) the production value of `profile` in `file`.
///
/// # Errors
/// An unreadable or wrong file, an unknown profile, a file that cannot be written. The file is then as it was.
pub fn set_production(file: &Path, profile: &str, context: u64) -> Result<(), ProfileError> {
    let (text, loaded) = current(file, profile)?;
    let edits = |item: &Item| {
        let digits = context.to_string();
        match item.get("production") {
            Some(old) => Some(vec![Edit::new(old.span()?, digits)]),
            None => Some(vec![add_after(&text, item, "url", "production", &digits)?]),
        }
    };
    let expected = Profile {
        production: Some(context),
        ..loaded.profile
    };
    change(file, &text, &expected, edits)
}

/// Replaces the command and the environment of `profile`'s process in `file`. Where the order of the environment alone differs, the
/// file's order stays.
///
/// # Errors
/// As [`set_production`]; also a command that [`check_launch`] refuses, and a profile without a process.
pub fn set_launch(
    file: &Path,
    profile: &str,
    argv: &[String],
    env: &[(String, String)],
) -> Result<(), ProfileError> {
    let (text, loaded) = current(file, profile)?;
    let mut expected = loaded.profile;
    let ServiceSpec::Process { launch, .. } = &mut expected.service else {
        return Err(refused(
            file,
            format!("[profile.{profile}] has no process whose command could be changed"),
        ));
    };
    let old = launch.clone();
    *launch = Launch {
        argv: argv.to_vec(),
        env: env.to_vec(),
        ..old.clone()
    };
    check_launch(launch).map_err(|why| refused(file, why))?;
    let edits = |item: &Item| {
        let process = item.get("process")?;
        let mut edits = launch::argv(&text, process.get("argv")?, &old.argv, argv)?;
        edits.extend(launch::env(&text, process, &old.env, env)?);
        Some(edits)
    };
    change(file, &text, &expected, edits)
}

fn refused(file: &Path, message: String) -> ProfileError {
    ProfileError::Refused {
        path: file.to_path_buf(),
        message,
    }
}

/// The file as it is, and what it says now.
fn current(file: &Path, profile: &str) -> Result<(String, Loaded), ProfileError> {
    let text = load::text(file)?;
    let loaded = load::parse(file, &text, Some(profile))?;
    loaded
        .map(|loaded| (text, loaded))
        .ok_or_else(|| refused(file, "it has no profile".into()))
}

/// Applies `edits` of the profile's table and writes the file, if it then reads as `expected`.
fn change(
    file: &Path,
    text: &str,
    expected: &Profile,
    edits: impl FnOnce(&Item) -> Option<Vec<Edit>>,
) -> Result<(), ProfileError> {
    let by_hand = || {
        refused(
            file,
            format!(
                "the form of [profile.{}] is too unusual to change one value in place; nothing was written. Change it by hand",
                expected.name
            ),
        )
    };
    let document = Document::parse(text).map_err(|_| by_hand())?;
    let item = document
        .get("profile")
        .and_then(|profiles| profiles.get(expected.name.as_str()))
        .ok_or_else(by_hand)?;
    let edited = edits(item)
        .and_then(|edits| apply(text, edits))
        .ok_or_else(by_hand)?;
    match load::parse(file, &edited, Some(&expected.name)) {
        Ok(Some(after)) if same(&after.profile, expected) => write_atomic(file, edited.as_bytes())
            .map_err(|error| ProfileError::Unwritten {
                what: error.to_string(),
            }),
        _ => Err(by_hand()),
    }
}

/// Equal but for the order of the environment.
fn same(a: &Profile, b: &Profile) -> bool {
    let sorted = |profile: &Profile| {
        let mut profile = profile.clone();
        if let ServiceSpec::Process { launch, .. } = &mut profile.service {
            launch.env.sort();
        }
        profile
    };
    sorted(a) == sorted(b)
}

#[cfg(test)]
mod tests;
