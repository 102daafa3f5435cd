//! Profiles that come from no file: a bare URL, and the demo.

use super::load::{LADDER, RELEASE_AFTER_S, STOP_GRACE_S, STUCK_AFTER_S};
use super::{Profile, ServiceSpec};
use crate::bench::plan::Plan;
use crate::engine::{Endpoint, normalise_url};
use std::path::Path;

/// A server that vramp only looks at and measures: no restarts, nothing to configure.
///
/// # Errors
/// What is wrong with `url`, in words.
pub fn attach(url: &str) -> Result<Profile, String> {
    Ok(bare("attach", normalise_url(url)?))
}

/// The file of the demo's profile `demo`: the simulated rig on `port` of this machine, run by the program `exe` itself; its cards and its
/// log live in `dir`.
pub fn demo_text(exe: &Path, dir: &Path, port: u16) -> String {
    let rig = dir.join("rig");
    let argv = [
        &*exe.to_string_lossy(),
        "sim",
        "--context-length",
        "{context}",
        "--port",
        &port.to_string(),
        "--rig",
        &*rig.to_string_lossy(),
    ]
    .map(|argument| toml_edit::Value::from(argument).to_string())
    .join(", ");
    let log = toml_edit::Value::from(&*dir.join("server.log").to_string_lossy()).to_string();
    format!(
        "# The demo's own profile. Everything in it is simulated; each new demo writes it anew.\n\
         [profile.demo]\n\
         engine = \"sglang\"\n\
         url = \"http://127.0.0.1:{port}\"\n\
         ladder = [\"32K\", \"64K\", \"128K\"]\n\
         production = 32768\n\n\
         [profile.demo.process]\n\
         argv = [{argv}]\n\
         log = {log}\n\
         start_when_absent = true\n\
         stuck_after = 30\n\
         stop_grace = 5\n\
         release_after = 15\n"
    )
}

/// The example for a server at `url`.
///
/// # Errors
/// What is wrong with `url`, in words.
pub fn example_for(url: &str) -> Result<String, String> {
    let base = normalise_url(url)?;
    Ok(super::load::EXAMPLE.replace(EXAMPLE_URL, &base))
}

/// The address in the shipped example.
const EXAMPLE_URL: &str = "http://127.0.0.1:8080";

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
        stop_grace_s: STOP_GRACE_S,
        release_after_s: RELEASE_AFTER_S,
    }
}
