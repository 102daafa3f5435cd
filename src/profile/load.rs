//! Finds `vramp.toml` and reads one profile from it.

use super::error::{ProfileError, meant};
use super::managed::managed;
use super::section::{Section, Source};
use super::{HostSpec, Launch, Profile, ServiceSpec, check_launch};
use crate::bench::plan::Plan;
use crate::engine::{Endpoint, Key, Kind, normalise_url};
use crate::host::Address;
use crate::units::{parse_context, parse_count, parse_seconds};
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};

/// The shipped example, with a comment for every entry.
pub const EXAMPLE: &str = include_str!("../../assets/vramp.example.toml");

/// Contexts offered when a profile names none.
pub const LADDER: [u64; 3] = [32_768, 65_536, 131_072];

pub(super) const STUCK_AFTER_S: u64 = 300;
pub(super) const RELEASE_AFTER_S: u64 = 60;

/// A profile from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub profile: Profile,
    /// Every profile of the file, in its order.
    pub names: Vec<String>,
    pub path: PathBuf,
}

/// Where `vramp.toml` is looked for without `--config`: the XDG configuration directory.
pub fn default_path() -> Option<PathBuf> {
    etcetera::base_strategy::Xdg::new()
        .ok()
        .map(|dirs| dirs.config_dir().join("vramp").join("vramp.toml"))
}

/// Reads the profile `name` (else the file's default, else its only one) from `path` (else [`default_path`]).
///
/// `Ok(None)`: neither a file nor a name was asked for, and there is no profile. Every profile of the file is checked; only the
/// chosen one's key is read.
///
/// # Errors
/// An unreadable or wrong file, an unknown name, several profiles and no choice, a key that is not there.
pub fn load(path: Option<&Path>, name: Option<&str>) -> Result<Option<Loaded>, ProfileError> {
    let asked = path.is_some() || name.is_some();
    let Some(path) = path.map(Path::to_path_buf).or_else(default_path) else {
        return Ok(None);
    };
    if !asked && !path.exists() {
        return Ok(None);
    }
    parse(&path, &text(&path)?, name)
}

/// The text of the file.
pub(super) fn text(path: &Path) -> Result<String, ProfileError> {
    let failed = |what: String, advice: &str| ProfileError::Unread {
        path: path.to_path_buf(),
        what,
        advice: advice.into(),
    };
    let bytes = std::fs::read(path).map_err(|error| {
        failed(
            error.to_string(),
            "Name another file with --config FILE, or write one with: vramp init",
        )
    })?;
    String::from_utf8(bytes).map_err(|error| {
        failed(
            format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()),
            "Save it as UTF-8",
        )
    })
}

/// [`load`] on a text that was read from `path`.
pub fn parse(path: &Path, text: &str, name: Option<&str>) -> Result<Option<Loaded>, ProfileError> {
    let source = Source { path, text };
    let document = toml_edit::Document::parse(text)
        .map_err(|error| source.invalid(error.span(), format!("not TOML: {}", error.message())))?;
    let root = Section::root(source, document.as_table());
    root.only(&["default", "profile"])?;
    let default = root.string("default", "the name of a profile")?;
    let profiles = root.section("profile")?;
    let names = profiles.as_ref().map_or_else(Vec::new, Section::names);
    let choice = |message: String| ProfileError::Refused {
        path: path.to_path_buf(),
        message,
    };
    let Some(profiles) = profiles.filter(|_| !names.is_empty()) else {
        return match (name, default) {
            (Some(name), _) => Err(choice(format!(
                "there is no profile {name:?}, the file has none; add [profile.{name}] or run: vramp init"
            ))),
            (None, Some(default)) => Err(root.at(
                "default",
                format!("the default is {default:?}, but the file has no profile"),
            )),
            (None, None) => Ok(None),
        };
    };
    let known = || names.iter().map(String::as_str);
    if let Some(default) = default.as_ref().filter(|name| !names.contains(name)) {
        return Err(root.at(
            "default",
            format!("there is no profile {default:?}{}", meant(default, known())),
        ));
    }
    let chosen = match (name, &default, names.as_slice()) {
        (Some(name), _, _) if !names.iter().any(|known| known == name) => {
            return Err(choice(format!(
                "there is no profile {name:?}{}",
                meant(name, known())
            )));
        }
        (Some(name), _, _) => name.to_string(),
        (None, Some(default), _) => default.clone(),
        (None, None, [only]) => only.clone(),
        (None, None, _) => {
            return Err(choice(format!(
                "it has {} profiles and no default; choose with --profile NAME or add: default = \"NAME\" (known are {})",
                names.len(),
                names.join(", ")
            )));
        }
    };
    let mut found = None;
    for name in &names {
        if let Some(section) = profiles.section(name)? {
            let mut profile = read(&section, name, path)?;
            if *name == chosen {
                profile.endpoint.key = key(&section, path)?;
                found = Some(profile);
            }
        }
    }
    Ok(found.map(|profile| Loaded {
        profile,
        names,
        path: path.to_path_buf(),
    }))
}

fn read(section: &Section<'_>, name: &str, path: &Path) -> Result<Profile, ProfileError> {
    section.only(&[
        "engine",
        "url",
        "model",
        "key_env",
        "key_file",
        "ladder",
        "production",
        "cards",
        "host",
        "ssh_config",
        "process",
        "service",
        "throughput",
        "long_context",
    ])?;
    let engine = section
        .string("engine", "sglang, vllm, llamacpp or openai")?
        .map(|text| {
            text.parse::<Kind>()
                .map_err(|why| section.at("engine", why))
        })
        .transpose()?;
    let url = section
        .string("url", "the server's address")?
        .ok_or_else(|| {
            section.invalid(format!(
                "[profile.{name}] needs url, the server's address, for example url = \"http://127.0.0.1:30000\""
            ))
        })?;
    let url = normalise_url(&url).map_err(|why| section.at("url", why))?;
    let process = section.section("process")?;
    let other = section.section("service")?;
    if let (Some(_), Some(other)) = (&process, &other) {
        return Err(other.invalid(format!(
            "[profile.{name}] has a process and a service; keep the one by which the server is run"
        )));
    }
    let run = process.as_ref().or(other.as_ref());
    let host = host(section, path)?;
    if let (Some(process), HostSpec::Ssh { .. }) = (&process, &host) {
        return Err(process.invalid(
            "vramp starts a process on its own machine alone; on another host let systemd or a command run the server: [profile.NAME.service]",
        ));
    }
    let local = host == HostSpec::Local;
    let limit = |key: &str| match run {
        Some(run) => run.integer(key, 1..86_401, "seconds, from 1 to 86400"),
        None => Ok(None),
    };
    Ok(Profile {
        name: name.to_string(),
        file: Some(path.to_path_buf()),
        endpoint: Endpoint {
            url,
            model: section.string("model", "the name that requests use")?,
            key: None,
            kind: engine,
        },
        host,
        engine,
        ladder: section
            .lengths("ladder", parse_context)?
            .unwrap_or_else(|| LADDER.to_vec()),
        production: section.length("production", parse_context)?,
        cards: section.numbers("cards", 0)?.unwrap_or_default(),
        throughput: plan(section, "throughput", Plan::throughput(false))?,
        long_context: plan(section, "long_context", Plan::long_context(false))?,
        stuck_after_s: limit("stuck_after")?.unwrap_or(STUCK_AFTER_S),
        stop_grace_s: limit("stop_grace")?,
        release_after_s: limit("release_after")?.unwrap_or(RELEASE_AFTER_S),
        confirm_within_s: match &other {
            Some(other) => other.time("confirm_within", parse_seconds)?,
            None => None,
        },
        service: match (&process, &other) {
            (Some(process), _) => process_service(process, path)?,
            (None, Some(other)) => managed(other, section, path, local)?,
            (None, None) => ServiceSpec::None,
        },
    })
}

/// Where the server runs.
fn host(section: &Section<'_>, path: &Path) -> Result<HostSpec, ProfileError> {
    let config = section.string("ssh_config", "a file")?;
    let address = match section.string("host", "ssh:USER@HOST or localhost")? {
        None => None,
        Some(text) if text == "localhost" || text == "local" => None,
        Some(text) => Some(
            text.parse::<Address>()
                .map_err(|why| section.at("host", why))?,
        ),
    };
    match (address, config) {
        (None, None) => Ok(HostSpec::Local),
        (None, Some(_)) => Err(section.at(
            "ssh_config",
            "ssh_config is for a host = \"ssh:…\", which is not there",
        )),
        (Some(address), config) => Ok(HostSpec::Ssh {
            address,
            config: config.map(|text| beside(path, &text)),
        }),
    }
}

fn process_service(section: &Section<'_>, path: &Path) -> Result<ServiceSpec, ProfileError> {
    section.only(&[
        "argv",
        "env",
        "cwd",
        "log",
        "slots",
        "start_when_absent",
        "stuck_after",
        "stop_grace",
        "release_after",
    ])?;
    let argv = section.strings("argv")?.ok_or_else(|| {
        section.invalid("a process needs argv, the command as a list: argv = [\"program\", \"--flag\", \"value\"]")
    })?;
    let launch = Launch {
        argv,
        env: match section.section("env")? {
            Some(env) => env.pairs()?,
            None => Vec::new(),
        },
        cwd: section
            .string("cwd", "a directory")?
            .map(|text| beside(path, &text)),
        slots: section
            .integer("slots", 1..4097, "a whole number from 1 to 4096")?
            .unwrap_or(1),
    };
    check_launch(&launch).map_err(|why| section.at("argv", why))?;
    Ok(ServiceSpec::Process {
        launch,
        log: section
            .string("log", "a file")?
            .map(|text| beside(path, &text)),
        start_when_absent: section.flag("start_when_absent")?.unwrap_or(false),
    })
}

fn plan(section: &Section<'_>, key: &str, default: Plan) -> Result<Plan, ProfileError> {
    let Some(section) = section.section(key)? else {
        return Ok(default);
    };
    section.only(&["inputs", "output", "concurrency"])?;
    let concurrency = section
        .numbers("concurrency", 1)?
        .unwrap_or(default.concurrency);
    if concurrency.is_empty() {
        return Err(section.at(
            "concurrency",
            "concurrency is empty; it needs at least one number",
        ));
    }
    Ok(Plan {
        inputs: section
            .lengths("inputs", parse_count)?
            .unwrap_or(default.inputs),
        output: section
            .length("output", parse_count)?
            .unwrap_or(default.output),
        concurrency,
        ..default
    })
}

/// The API key, from where the profile says. Its text appears in no error.
fn key(section: &Section<'_>, path: &Path) -> Result<Option<Key>, ProfileError> {
    let variable = section.string("key_env", "the name of an environment variable")?;
    let file = section.string("key_file", "a file that holds the key")?;
    let secret = match (variable, file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(section.at("key_file", "key_env and key_file are both given; keep one"));
        }
        (Some(variable), None) => std::env::var(&variable).map_err(|_| {
            section.at(
                "key_env",
                format!("the environment has no {variable} that could be read; export it before starting vramp"),
            )
        })?,
        (None, Some(file)) => {
            let file = beside(path, &file);
            std::fs::read_to_string(&file).map_err(|error| {
                section.at(
                    "key_file",
                    format!("cannot read the key from {}: {error}", file.display()),
                )
            })?
        }
    };
    let secret = secret.trim();
    if secret.is_empty() || secret.chars().any(char::is_control) {
        let which = if section.names().iter().any(|n| n == "key_env") {
            "key_env"
        } else {
            "key_file"
        };
        return Err(section.at(
            which,
            format!("{which} gives no key: it is empty or has more than one line"),
        ));
    }
    Ok(Some(Key::new(secret.to_string())))
}

/// A path as people write it: `~/` is the home directory, a relative one counts from the profile's own file.
pub(super) fn beside(file: &Path, text: &str) -> PathBuf {
    if let (Some(rest), Ok(home)) = (text.strip_prefix("~/"), etcetera::home_dir()) {
        return home.join(rest);
    }
    file.parent().unwrap_or(Path::new("")).join(text)
}
