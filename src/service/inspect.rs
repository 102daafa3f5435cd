//! A container as its engine's `inspect` shows it: what docker and podman have in common.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The containers of one answer.
///
/// # Errors
/// It is not what `inspect` prints.
pub fn inspected(json: &[u8]) -> Result<Vec<Inspected>, serde_json::Error> {
    serde_json::from_slice(json)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Inspected {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub args: Option<Vec<String>>,
    #[serde(default)]
    pub restart_count: u64,
    #[serde(default)]
    pub state: State,
    #[serde(default)]
    pub config: Config,
    #[serde(default)]
    pub host_config: HostConfig,
    #[serde(default)]
    pub network_settings: Network,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
pub struct State {
    #[serde(default)]
    pub running: bool,
    #[serde(default)]
    pub restarting: bool,
    #[serde(default, rename = "OOMKilled")]
    pub oom_killed: bool,
    #[serde(default)]
    pub pid: u32,
    #[serde(default)]
    pub exit_code: i32,
    #[serde(default)]
    pub error: String,
    #[serde(default)]
    pub started_at: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
pub struct Config {
    #[serde(default)]
    pub image: String,
    pub labels: Option<BTreeMap<String, String>>,
    pub env: Option<Vec<String>>,
    pub stop_timeout: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
pub struct HostConfig {
    #[serde(default)]
    pub network_mode: String,
    #[serde(default)]
    pub restart_policy: Policy,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
pub struct Policy {
    #[serde(default)]
    pub name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
pub struct Network {
    pub ports: Option<BTreeMap<String, Option<Vec<Binding>>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Binding {
    #[serde(default)]
    pub host_port: String,
}

impl Inspected {
    /// A label of compose, without its beginning.
    pub fn compose(&self, name: &str) -> Option<&String> {
        let labels = self.config.labels.as_ref()?;
        labels.get(&format!("com.docker.compose.{name}"))
    }

    /// Without the slash that docker puts before it.
    pub fn plain_name(&self) -> &str {
        self.name.trim_start_matches('/')
    }

    /// Entry point and arguments.
    pub fn argv(&self) -> Vec<String> {
        let args = self.args.iter().flatten();
        std::iter::once(&self.path).chain(args).cloned().collect()
    }

    /// Ports of the host that lead to it by TCP, ascending.
    pub fn ports(&self) -> Vec<u16> {
        let bindings = self.network_settings.ports.iter().flatten();
        let mut ports: Vec<u16> = bindings
            .filter(|(inside, _)| inside.ends_with("/tcp"))
            .filter_map(|(_, outside)| outside.as_ref())
            .flatten()
            .filter_map(|binding| binding.host_port.parse().ok())
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}
