//! Profiles: which server, how it is run, which contexts and plans. Read from `vramp.toml`.

mod check;
mod edit;
mod error;
mod found;
mod launch_text;
mod load;
mod made;
mod managed;
mod section;

pub use check::check_launch;
pub use edit::{set_launch, set_production};
pub use error::{Place, ProfileError};
pub use found::{Discovered, found_text, summary};
pub use launch_text::{ParsedLaunch, TextError, launch_text, parse_launch_text};
pub use load::{EXAMPLE, LADDER, Loaded, default_path, load, parse};
pub use made::{attach, demo_text, example_for};

use crate::bench::plan::Plan;
use crate::engine::{Endpoint, Kind};
use crate::host::{Address, Host, Local, Ssh};
use crate::service::command::Commands;
use std::path::PathBuf;
use std::sync::Arc;

/// How a server is started by vramp itself: a template in which `{context}` is the context length per request and
/// `{context_total}` that times the slots.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Launch {
    pub argv: Vec<String>,
    /// Environment added to vramp's own, in order.
    pub env: Vec<(String, String)>,
    pub cwd: Option<PathBuf>,
    /// Request slots over which the engine divides its total; 1 where it does not.
    pub slots: u64,
}

/// Where the server runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HostSpec {
    /// Here.
    #[default]
    Local,
    Ssh {
        address: Address,
        /// Another file than `~/.ssh/config`.
        config: Option<PathBuf>,
    },
}

impl HostSpec {
    /// The host at an address; without one this machine.
    pub fn at(address: Option<Address>) -> Self {
        match address {
            Some(address) => HostSpec::Ssh {
                address,
                config: None,
            },
            None => HostSpec::Local,
        }
    }

    /// The host. Nothing is connected before it is used.
    pub fn open(&self) -> Arc<dyn Host> {
        match self {
            HostSpec::Local => Arc::new(Local),
            HostSpec::Ssh { address, config } => {
                Arc::new(Ssh::new(address.clone(), config.clone()))
            }
        }
    }
}

/// How the server is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceSpec {
    /// vramp only attaches: no restarts.
    None,
    /// vramp starts the process itself.
    Process {
        launch: Launch,
        /// The server's output; `None`: in the state directory.
        log: Option<PathBuf>,
        /// Start it without asking when nothing answers at the URL (the demo).
        start_when_absent: bool,
    },
    /// A systemd unit.
    Systemd {
        /// With its ending: `qwen.service`.
        unit: String,
        /// A unit of the user's own manager.
        user: bool,
        /// Change it through `sudo -n`.
        sudo: bool,
    },
    /// A service of a compose project.
    Compose(Box<ComposeSpec>),
    /// The operator's own commands.
    Command(Box<Commands>),
}

/// A service of a compose project. What is `None` or empty is found by the labels of its container, else as compose finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposeSpec {
    /// `docker compose`, `docker-compose`, `podman-compose`.
    pub command: Vec<String>,
    /// As the compose file names it.
    pub service: String,
    pub project: Option<String>,
    /// On the host.
    pub directory: Option<PathBuf>,
    /// From the directory.
    pub files: Vec<PathBuf>,
    /// Everything through `sudo -n`.
    pub sudo: bool,
}

/// One server to work on.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub name: String,
    /// The file it came from, where the production value is kept; `None` for `attach URL`.
    pub file: Option<PathBuf>,
    pub endpoint: Endpoint,
    /// Where the server runs.
    pub host: HostSpec,
    pub engine: Option<Kind>,
    pub service: ServiceSpec,
    /// Contexts to offer, ascending, per request.
    pub ladder: Vec<u64>,
    /// The confirmed context, per request. A start without a stated context uses it.
    pub production: Option<u64>,
    /// Cards that the server uses, by index; empty: found out, else all.
    pub cards: Vec<u32>,
    pub throughput: Plan,
    pub long_context: Plan,
    /// A start without any progress for this long has failed.
    pub stuck_after_s: u64,
    /// How long a stop may take before SIGKILL; `None`: the service's own time.
    pub stop_grace_s: Option<u64>,
    /// How long the cards may take to let go.
    pub release_after_s: u64,
    /// A trial that is not kept within so long is taken back, by something that outlives the cockpit.
    pub confirm_within_s: Option<u64>,
}

#[cfg(test)]
mod tests;
