//! Profiles for servers that were found running.

use crate::discover::{Candidate, Compose, Home, Surroundings};
use crate::engine::Kind;
use crate::launch::{self, Found, GivenAs, Meaning, Number};
use std::fmt::Write as _;

/// The least context of a ladder where nothing is known.
const LOWEST: u64 = 8_192;
/// Most steps of a ladder.
const STEPS: usize = 5;

/// A server with what is needed to write its profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    pub candidate: Candidate,
    /// Where a process runs that nothing manages.
    pub surroundings: Surroundings,
    /// `ssh:user@host` of another host.
    pub host: Option<String>,
    /// Whether whoever runs vramp is root on that host, and their number.
    pub uid: Option<u32>,
}

/// A commented file with one profile for each server; the first is the default.
pub fn found_text(servers: &[Discovered], when: &str) -> String {
    let names = names(servers);
    let mut text = format!(
        "# vramp.toml, written by vramp init on {when}. Every entry that a profile may have, with its meaning: vramp config example\n"
    );
    if let Some(first) = names.first() {
        let _ = writeln!(text, "default = {}", quoted(first));
    }
    for (name, server) in names.iter().zip(servers) {
        text.push('\n');
        profile(&mut text, name, server);
    }
    text
}

fn profile(text: &mut String, name: &str, server: &Discovered) {
    let one = &server.candidate;
    let key = toml_edit::Key::new(name).to_string();
    let _ = writeln!(text, "# {}", summary(one));
    let _ = writeln!(text, "[profile.{key}]");
    let _ = writeln!(text, "url = {}", quoted(&one.url));
    if let Some(host) = &server.host {
        let _ = writeln!(text, "host = {}", quoted(host));
    }
    if let Some(kind) = one.engine() {
        let _ = writeln!(text, "engine = {}", quoted(kind.name()));
    }
    if matches!(one.answer, Err(crate::engine::EngineError::Denied { .. })) {
        text.push_str(
            "# It asks for a key. Export it under this name before vramp starts, or name another:\nkey_env = \"VRAMP_API_KEY\"\n",
        );
    }
    let limit = one
        .answer
        .as_ref()
        .ok()
        .and_then(|facts| facts.context.model_limit.known().copied());
    let steps: Vec<String> = ladder(one.context(), limit)
        .iter()
        .map(|n| match n % 1024 {
            0 => quoted(&format!("{}K", n / 1024)),
            _ => n.to_string(),
        })
        .collect();
    let _ = writeln!(
        text,
        "# The context lengths to offer, per request{}.\nladder = [{}]",
        limit.map_or(String::new(), |n| format!(
            "; the model's own limit is {}",
            crate::units::thousands(n)
        )),
        steps.join(", ")
    );
    service(text, &key, server);
}

fn service(text: &mut String, key: &str, server: &Discovered) {
    let one = &server.candidate;
    match &one.home {
        Home::Unit(unit) if unit.user.is_none() || unit.user == server.uid => {
            let _ = writeln!(
                text,
                "\n[profile.{key}.service]\nkind = \"systemd\"\nunit = {}",
                quoted(&unit.name)
            );
            if unit.user.is_some() {
                text.push_str("user = true\n");
            } else if server.uid != Some(0) {
                text.push_str(
                    "# Restarting a unit of the system needs root. sudo must ask for no password; vramp doctor tells whether it does.\nsudo = true\n",
                );
            }
        }
        Home::Unit(unit) => {
            let _ = writeln!(
                text,
                "# {} belongs to the manager of user {}. Only that user can restart it, so this profile looks and measures.",
                unit.name,
                unit.user.unwrap_or_default()
            );
        }
        Home::Loose if server.host.is_some() => text.push_str(
            "# It was started by hand, and vramp starts a process on its own machine alone. Let systemd run it, or add commands of your own\n# (a service of kind \"command\"); until then this profile looks and measures: vramp config example\n",
        ),
        Home::Loose => process(text, key, server),
        Home::Container(container) if container.compose.is_some() => {
            if let Some(compose) = &container.compose {
                let _ = writeln!(
                    text,
                    "\n[profile.{key}.service]\nkind = \"compose\"\ncommand = [{}]\nservice = {}\nproject = {}\ndirectory = {}",
                    compose_command(container.engine, compose).join(", "),
                    quoted(&compose.service),
                    quoted(&compose.project),
                    quoted(&compose.directory)
                );
            }
        }
        Home::Container(container) => {
            let _ = writeln!(
                text,
                "# It runs in the container {} ({}). A service of kind \"command\" can restart it by commands of your own: vramp config example",
                container.name, container.image
            );
        }
        Home::ForeignContainer(id) => {
            let _ = writeln!(
                text,
                "# It runs in a container ({}) that neither docker nor podman lists here. A service of kind \"command\" can restart it by\n# commands of your own: vramp config example",
                id.get(..12).unwrap_or(id)
            );
        }
        Home::Unknown => text.push_str(
            "# Who runs it could not be seen. Run vramp init as root, or add how it is run: vramp config example\n",
        ),
    }
}

/// How the compose is called that made a container: the first version is a program of its own.
fn compose_command(engine: &str, compose: &Compose) -> Vec<String> {
    let first = compose
        .version
        .as_deref()
        .is_some_and(|v| v.starts_with("1."));
    let words: &[&str] = match engine {
        "podman" => &["podman-compose"],
        _ if first => &["docker-compose"],
        _ => &["docker", "compose"],
    };
    words.iter().map(|word| quoted(word)).collect()
}

/// The command of a process that somebody started, with the placeholder where its context goes.
fn process(text: &mut String, key: &str, server: &Discovered) {
    let one = &server.candidate;
    let Some((argv, slots)) = template(one) else {
        text.push_str(
            "# Its command does not tell where its context length goes, so this profile looks and measures. To let vramp restart it, add\n# how it is run: vramp config example\n",
        );
        return;
    };
    if let Some(context) = one.context() {
        let at = "\n# The context lengths to offer";
        if let Some(found) = text.rfind(at) {
            text.insert_str(found + 1, &format!("production = {context}\n"));
        }
    }
    let _ = writeln!(
        text,
        "\n# It was started by hand. vramp stops only what it has started itself: end it once, and start it here.\n[profile.{key}.process]\nargv = ["
    );
    for word in &argv {
        let _ = writeln!(text, "  {},", quoted(word));
    }
    text.push_str("]\n");
    if let Some(directory) = &server.surroundings.directory {
        let _ = writeln!(text, "cwd = {}", quoted(&directory.to_string_lossy()));
    }
    if slots > 1 {
        let _ = writeln!(text, "slots = {slots}");
    }
    if !server.surroundings.env.is_empty() {
        let _ = writeln!(text, "\n[profile.{key}.process.env]");
        for (name, value) in &server.surroundings.env {
            let name = toml_edit::Key::new(name.as_str()).to_string();
            let _ = writeln!(text, "{name} = {}", quoted(value));
        }
    }
}

/// The command with a placeholder for the context, and the slots that share it.
fn template(one: &Candidate) -> Option<(Vec<String>, u64)> {
    // A number of its own marks the place, whether the argument was there or not.
    let context = one.context().unwrap_or(LOWEST);
    let edit = launch::set_in_argv(&one.argv, &[], None, Number::PerRequest(context)).ok()?;
    let server = launch::find_in_argv(&edit.argv, &[], None)?;
    let (placeholder, slots) = match server.meaning {
        Meaning::Total { slots } if slots > 1 => ("{context_total}", slots),
        Meaning::UnknownSlots => return None,
        _ => ("{context}", 1),
    };
    let Found {
        given_as: GivenAs::Argument(_),
        place: Some(place),
        ..
    } = server.in_force()?
    else {
        return None;
    };
    // Braces that are there already would be taken for placeholders.
    let mut argv: Vec<String> = edit.argv;
    if argv.iter().any(|word| word.contains(['{', '}'])) {
        return None;
    }
    let number: usize = place.file.strip_prefix("argument ")?.parse().ok()?;
    let word = argv.get_mut(number)?;
    word.get(place.span.clone())?;
    word.replace_range(place.span.clone(), placeholder);
    Some((argv, slots))
}

/// One line on what was found.
pub fn summary(one: &Candidate) -> String {
    let engine = one.engine().map_or("an inference server", Kind::name);
    let mut words = format!("{engine} at {}", one.url);
    match &one.answer {
        Ok(facts) => {
            if let Some(model) = facts.model.known() {
                let _ = write!(words, ", serving {}", crate::units::clean(model));
            }
            if facts.simulated {
                words.push_str(", SIMULATED");
            }
        }
        Err(error) => {
            let _ = write!(words, ", which does not answer as one ({error})");
        }
    }
    if let Some(context) = one.context() {
        let _ = write!(words, ", context {}", crate::units::thousands(context));
    }
    let home = match &one.home {
        Home::Unit(unit) => match unit.user {
            Some(user) => format!("unit {} of user {user}", unit.name),
            None => format!("unit {}", unit.name),
        },
        Home::Container(container) => match &container.compose {
            Some(compose) => format!(
                "service {} of the compose project {}",
                compose.service, compose.project
            ),
            None => format!("container {}", container.name),
        },
        Home::ForeignContainer(_) => "in a container".to_string(),
        Home::Loose => match one.pid {
            Some(pid) => format!("process {pid}, started by hand"),
            None => "started by hand".to_string(),
        },
        Home::Unknown => "a process that may not be looked at".to_string(),
    };
    let _ = write!(words, ": {home}");
    words
}

/// Doublings from what is served to the model's limit.
fn ladder(context: Option<u64>, limit: Option<u64>) -> Vec<u64> {
    let start = context.filter(|n| *n > 0).unwrap_or(LOWEST);
    let top = limit.unwrap_or(u64::MAX).max(start);
    let mut steps: Vec<u64> = std::iter::successors(Some(start), |n| n.checked_mul(2))
        .take_while(|n| *n <= top)
        .take(STEPS)
        .collect();
    if steps.is_empty() {
        steps.push(start);
    }
    steps
}

/// A name for each: the unit's, the compose service's, else the model's; two alike are told apart by their port.
fn names(servers: &[Discovered]) -> Vec<String> {
    let plain: Vec<String> = servers.iter().map(|one| name(&one.candidate)).collect();
    plain
        .iter()
        .zip(servers)
        .map(|(name, server)| {
            if plain.iter().filter(|other| *other == name).count() < 2 {
                return name.clone();
            }
            let port = server.candidate.url.rsplit(':').next().unwrap_or_default();
            format!("{name}-{port}")
        })
        .collect()
}

fn name(one: &Candidate) -> String {
    let model = || {
        let model = one.answer.as_ref().ok()?.model.known()?;
        Some(model.rsplit('/').next().unwrap_or(model).to_string())
    };
    let from = match &one.home {
        Home::Unit(unit) => Some(unit.name.trim_end_matches(".service").to_string()),
        Home::Container(container) => Some(
            container
                .compose
                .as_ref()
                .map_or(&container.name, |compose| &compose.service)
                .clone(),
        ),
        _ => model(),
    };
    let from = from.unwrap_or_else(|| one.engine().map_or("server", Kind::name).to_string());
    let safe: String = from
        .chars()
        .map(|c| match c {
            'A'..='Z' => c.to_ascii_lowercase(),
            'a'..='z' | '0'..='9' | '-' | '_' => c,
            _ => '-',
        })
        .take(40)
        .collect();
    match safe.trim_matches('-') {
        "" => "server".to_string(),
        name => name.to_string(),
    }
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

#[cfg(test)]
#[path = "found_tests.rs"]
mod tests;
