//! Profiles that come from no file: a bare URL, and the demo.

use super::load::{LADDER, RELEASE_AFTER_S, STOP_GRACE_S, STUCK_AFTER_S};
use super::{Launch, Profile, ServiceSpec};
use crate::bench::plan::Plan;
use crate::engine::{Endpoint, Kind, normalise_url};
use std::path::Path;

/// A server that vramp only looks at and measures: no restarts, nothing to configure.
///
/// # Errors
/// What is wrong with `url`, in words.
pub fn attach(url: &str) -> Result<Profile, String> {
    Ok(bare("attach", normalise_url(url)?))
}

/// The simulated rig on `port` of this machine, run by the program `exe` itself; its cards and its log live in `dir`.
pub fn demo(exe: &Path, dir: &Path, quick: bool, port: u16) -> Profile {
    let argv = [
        exe.to_string_lossy().as_ref(),
        "sim",
        "--context-length",
        "{context}",
        "--port",
        &port.to_string(),
        "--rig",
        dir.join("rig").to_string_lossy().as_ref(),
    ]
    .map(str::to_string)
    .to_vec();
    let profile = bare("demo", format!("http://127.0.0.1:{port}"));
    Profile {
        endpoint: Endpoint {
            kind: Some(Kind::Sglang),
            ..profile.endpoint
        },
        engine: Some(Kind::Sglang),
        service: ServiceSpec::Process {
            launch: Launch {
                argv,
                env: Vec::new(),
                cwd: None,
                slots: 1,
            },
            log: Some(dir.join("server.log")),
            start_when_absent: true,
        },
        production: Some(32_768),
        throughput: Plan::throughput(quick),
        long_context: Plan::long_context(quick),
        stuck_after_s: 30,
        stop_grace_s: 5,
        release_after_s: 15,
        ..profile
    }
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
        stop_grace_s: STOP_GRACE_S,
        release_after_s: RELEASE_AFTER_S,
    }
}
