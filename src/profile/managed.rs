//! Services that another program runs: systemd, compose, commands of the operator.

use super::error::{ProfileError, meant};
use super::load::beside;
use super::section::Section;
use super::{ComposeSpec, ServiceSpec};
use crate::service::command::Commands;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a command of the operator may take.
const COMMAND_TIMEOUT_S: u64 = 300;

/// A service that another program runs.
/// `local`: it runs on this machine.
pub(super) fn managed(
    section: &Section<'_>,
    profile: &Section<'_>,
    path: &Path,
    local: bool,
) -> Result<ServiceSpec, ProfileError> {
    let kind = section.string("kind", "systemd, compose or command")?;
    match kind.as_deref() {
        Some("systemd") => systemd(section, profile),
        Some("compose") => compose(section, profile, path, local),
        Some("command") => command(section, profile),
        Some(other) => Err(section.at(
            "kind",
            format!(
                "unknown kind {other:?}{}",
                meant(other, ["systemd", "compose", "command"])
            ),
        )),
        None => Err(section
            .invalid("a service needs its kind: kind = \"systemd\", \"compose\" or \"command\"")),
    }
}

fn command(section: &Section<'_>, profile: &Section<'_>) -> Result<ServiceSpec, ProfileError> {
    section.only(&[
        "kind",
        "show",
        "status",
        "trial",
        "restart",
        "stop",
        "confirm",
        "discard",
        "logs",
        "slots",
        "command_timeout",
        "stuck_after",
        "release_after",
    ])?;
    if profile.names().iter().any(|name| name == "production") {
        return Err(profile.at(
            "production",
            "the production value of a command service is what its show command prints; remove this entry",
        ));
    }
    let optional = |key: &str| match section.strings(key)? {
        Some(argv) if argv.first().is_none_or(String::is_empty) => Err(section.at(
            key,
            format!("{key} is empty; its first part is the program"),
        )),
        found => Ok(found),
    };
    let needed = |key: &str| {
        optional(key)?.ok_or_else(|| {
            section.invalid(format!(
                "a command service needs {key}, a command as a list: {key} = [\"program\", \"argument\"]"
            ))
        })
    };
    let with_context = |key: &str| {
        let argv = needed(key)?;
        let has = |name: &str| argv.iter().any(|word| word.contains(name));
        if has("{context}") || has("{context_total}") {
            return Ok(argv);
        }
        Err(section.at(
            key,
            format!(
                "{key} must say where the context length goes: {{context}} or {{context_total}}"
            ),
        ))
    };
    Ok(ServiceSpec::Command(Box::new(Commands {
        show: needed("show")?,
        status: needed("status")?,
        trial: with_context("trial")?,
        restart: needed("restart")?,
        stop: needed("stop")?,
        confirm: with_context("confirm")?,
        discard: optional("discard")?,
        logs: optional("logs")?,
        slots: section
            .integer("slots", 1..4097, "a whole number from 1 to 4096")?
            .unwrap_or(1),
        limit: Duration::from_secs(
            section
                .integer("command_timeout", 1..86_401, "seconds, from 1 to 86400")?
                .unwrap_or(COMMAND_TIMEOUT_S),
        ),
    })))
}

fn compose(
    section: &Section<'_>,
    profile: &Section<'_>,
    path: &Path,
    local: bool,
) -> Result<ServiceSpec, ProfileError> {
    if section.names().iter().any(|name| name == "confirm_within") {
        return Err(section.at(
            "confirm_within",
            "no trial of a compose service can have a deadline: nothing outside vramp would bring the production value back; remove this entry",
        ));
    }
    section.only(&[
        "kind",
        "command",
        "service",
        "project",
        "directory",
        "files",
        "sudo",
        "stuck_after",
        "stop_grace",
        "release_after",
    ])?;
    if profile.names().iter().any(|name| name == "production") {
        return Err(profile.at(
            "production",
            "the production value of a compose service is the one in its project's files; remove this entry",
        ));
    }
    let command = section.strings("command")?.ok_or_else(|| {
        section.invalid("a compose service needs the command that runs compose: command = [\"docker\", \"compose\"], [\"docker-compose\"] or [\"podman-compose\"]")
    })?;
    let last = command.last().map_or("", String::as_str);
    let base = last.rsplit('/').next().unwrap_or(last);
    let plugin = last == "compose" && command.len() > 1;
    if !plugin && !["docker-compose", "podman-compose"].contains(&base) {
        return Err(section.at(
            "command",
            format!("{last:?} is not compose; the command is a list that ends with it: [\"docker\", \"compose\"], [\"docker-compose\"] or [\"podman-compose\"]"),
        ));
    }
    let service = section
        .string("service", "the name of a service")?
        .ok_or_else(|| {
            section
                .invalid("a compose service needs its name in the compose file: service = \"vllm\"")
        })?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !service.chars().all(plain) || service.starts_with(['-', '.']) {
        return Err(section.at(
            "service",
            format!("{service:?} is no name that a compose service may have"),
        ));
    }
    let directory = match section.string("directory", "a folder")? {
        Some(text) if local => Some(beside(path, &text)),
        Some(text) if !text.starts_with('/') => {
            return Err(section.at(
                "directory",
                "on another host the folder must be named in full, from the root",
            ));
        }
        other => other.map(PathBuf::from),
    };
    let files = section.strings("files")?.unwrap_or_default();
    if directory.is_none() && files.iter().any(|file| !file.starts_with('/')) {
        return Err(section.at(
            "files",
            "files count from the project's folder, which is not named; add directory = \"/the/folder\"",
        ));
    }
    Ok(ServiceSpec::Compose(Box::new(ComposeSpec {
        command,
        service,
        project: section.string("project", "the name of a compose project")?,
        directory,
        files: files.iter().map(PathBuf::from).collect(),
        sudo: section.flag("sudo")?.unwrap_or(false),
    })))
}

fn systemd(section: &Section<'_>, profile: &Section<'_>) -> Result<ServiceSpec, ProfileError> {
    section.only(&[
        "kind",
        "unit",
        "user",
        "sudo",
        "confirm_within",
        "stuck_after",
        "stop_grace",
        "release_after",
    ])?;
    if profile.names().iter().any(|name| name == "production") {
        return Err(profile.at(
            "production",
            "the production value of a systemd service is the one in its unit; remove this entry",
        ));
    }
    let unit = section
        .string("unit", "the name of a unit")?
        .ok_or_else(|| {
            section.invalid("a systemd service needs its unit: unit = \"qwen.service\"")
        })?;
    let unit = match unit.rsplit_once('.') {
        Some((_, "service")) => unit,
        _ => format!("{unit}.service"),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    if !unit.chars().all(plain) || unit.starts_with(['-', '.']) || unit.contains("@.") {
        return Err(section.at(
            "unit",
            format!("{unit:?} is no unit that can run; write it as systemctl names it, an instance with its name: vllm@qwen.service"),
        ));
    }
    let user = section.flag("user")?.unwrap_or(false);
    let sudo = section.flag("sudo")?.unwrap_or(false);
    if user && sudo {
        return Err(section.at(
            "sudo",
            "a unit of the user's own manager needs no sudo; remove one of the two",
        ));
    }
    Ok(ServiceSpec::Systemd { unit, user, sudo })
}
