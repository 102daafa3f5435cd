//! Profiles that nobody wrote: for a bare URL, for the demo, and one to start from.

use super::load::{LADDER, RELEASE_AFTER_S, STUCK_AFTER_S};
use super::{Profile, ServiceSpec};
use crate::bench::plan::Plan;
use crate::engine::{Endpoint, normalise_url};
use std::path::Path;

/// A server that vramp only looks at and measures: no restarts, nothing to configure.
///
/// # Errors
/// What is wrong with `url`, in words.
pub fn attach(url: &str) -> Result<Profile, String> {
    let url = normalise_url(url)?;
    // Each server has sessions of its own.
    let name = url
        .split_once("://")
        .map_or(url.as_str(), |(_, rest)| rest)
        .to_string();
    Ok(bare(&name, url))
}

/// The file of the profile `demo`: the simulated rig on `port` of this machine, run by the program `exe` itself; its cards and its log
/// live in `dir`.
pub fn demo_text(exe: &Path, dir: &Path, port: u16) -> String {
    let text = |path: &Path| toml_edit::Value::from(path.to_string_lossy().as_ref()).to_string();
    format!(
        r#"# The demo's own profile. Everything in it is simulated; each new demo writes it anew.
[profile.demo]
engine = "sglang"
url = "http://127.0.0.1:{port}"
ladder = ["32K", "64K", "128K"]
production = 32768

[profile.demo.process]
argv = [{exe}, "sim", "--context-length", "{{context}}", "--port", "{port}", "--rig", {rig}]
log = {log}
start_when_absent = true
stuck_after = 30
stop_grace = 5
release_after = 15
"#,
        exe = text(exe),
        rig = text(&dir.join("rig")),
        log = text(&dir.join("server.log")),
    )
}

/// A file to start from, for the server at `url`.
///
/// # Errors
/// What is wrong with `url`, in words.
pub fn example_for(url: &str) -> Result<String, String> {
    let url = toml_edit::Value::from(normalise_url(url)?).to_string();
    Ok(format!(
        r#"# Every entry that a profile may have, with its meaning: vramp config example
default = "main"

[profile.main]
url = {url}

# How the server is run. With this, vramp can change its context; {{context}} stands where the context length per request goes.
# [profile.main.process]
# argv = ["server", "--context-length", "{{context}}", "--port", "30000"]
"#
    ))
}

fn bare(name: &str, url: String) -> Profile {
    Profile {
        name: name.to_string(),
        file: None,
        endpoint: Endpoint {
            url,
            model: None,
            key: None,
            kind: None,
        },
        engine: None,
        service: ServiceSpec::None,
        ladder: LADDER.to_vec(),
        production: None,
        cards: Vec::new(),
        throughput: Plan::throughput(false),
        long_context: Plan::long_context(false),
        stuck_after_s: STUCK_AFTER_S,
        stop_grace_s: None,
        release_after_s: RELEASE_AFTER_S,
        confirm_within_s: None,
    }
}
