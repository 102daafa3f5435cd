//! Commands that print what the program knows of itself.

use super::{Common, ConfigCommand, Failure, help};
use crate::{profile, theme};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Prints a text as it is. A reader that has enough is no failure.
pub fn text(text: &str) -> Result<i32, Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(error)),
        _ => Ok(0),
    }
}

/// Writes a document as JSON to a file, or to standard output for `-`.
pub fn json(document: &impl Serialize, path: &Path) -> Result<i32, Failure> {
    let mut out = serde_json::to_string_pretty(document).map_err(Failure::new)?;
    out.push('\n');
    if path == Path::new("-") {
        return text(&out);
    }
    crate::host::write_atomic(path, out.as_bytes()).map_err(Failure::new)?;
    Ok(0)
}

/// The names of the shipped themes, or one of them as a file.
pub fn themes(name: Option<&str>) -> Result<i32, Failure> {
    match name {
        None => text(
            &theme::SHIPPED
                .iter()
                .map(|(name, _)| format!("{name}\n"))
                .collect::<String>(),
        ),
        Some(name) => match theme::SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, file)) => text(file),
            None => Err(Failure::wrong_use(format!(
                "there is no theme {name:?}; vramp themes lists them"
            ))),
        },
    }
}

/// Where profiles are, what they may look like, what is wrong with them.
pub fn config(common: &Common, what: &ConfigCommand) -> Result<i32, Failure> {
    match what {
        ConfigCommand::Example => text(profile::EXAMPLE),
        ConfigCommand::Path => match common.config.clone().or_else(profile::default_path) {
            Some(path) => text(&format!("{}\n", path.display())),
            None => Err(Failure::new(
                "cannot find your configuration directory; set HOME or XDG_CONFIG_HOME",
            )),
        },
        ConfigCommand::Check => {
            match profile::load(common.config.as_deref(), common.profile.as_deref()) {
                Ok(Some(loaded)) => text(&format!(
                    "{}: {} {} in order\n",
                    loaded.path.display(),
                    loaded.names.join(", "),
                    if loaded.names.len() == 1 { "is" } else { "are" }
                )),
                Ok(None) => Err(Failure::wrong_use(
                    "there is no profile yet; vramp init writes one",
                )),
                Err(error) => Err(Failure::wrong_use(error)),
            }
        }
    }
}

/// Completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<i32, Failure> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "vramp", &mut out);
    text(&String::from_utf8_lossy(&out))
}

/// The manual page.
pub fn man() -> Result<i32, Failure> {
    let mut out = Vec::new();
    clap_mangen::Man::new(help::command())
        .render(&mut out)
        .map_err(Failure::new)?;
    text(&String::from_utf8_lossy(&out))
}
