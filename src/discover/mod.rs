//! What serves models on a host: its listening sockets, the processes that hold them, and the units and containers these belong to.
//!
//! Also the description of a model that lies there. Only reads. What another user's process holds open can be told by root alone; such a socket is found without its process.

mod candidate;
mod containers;
mod home;
pub mod model;
mod sockets;
mod tenant;

pub use candidate::{Candidate, candidates};
pub use containers::{Compose, Container};
pub use home::{Home, Unit, container_id};
pub use tenant::{is_on, tenant};

use crate::host::{Host, HostError};
use crate::units;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// How many parents of a listening process are looked at: a server may listen in a child that has renamed itself.
const GENERATIONS: usize = 6;

/// One listening socket and what is known of its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Where it listens, in the host's own network.
    pub address: SocketAddr,
    /// Who listens; `None` where that may not be read.
    pub process: Option<Process>,
    pub home: Home,
}

/// A process, and its parents up to the one that a service manager or a person started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Its own command first, then its parents'.
    pub commands: Vec<Vec<String>>,
}

impl Listener {
    /// The address to talk to it from the same host: a socket that listens everywhere is reached by the loopback address.
    pub fn url(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_string(),
            IpAddr::V6(ip) if ip.is_unspecified() => "127.0.0.1".to_string(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("http://{ip}:{}", self.address.port())
    }
}

/// What listens on a host, lowest port first, one entry a port; and what could not be looked at, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    pub listeners: Vec<Listener>,
    pub notes: Vec<String>,
}

/// Looks at everything that listens on `host`.
///
/// # Errors
/// The host cannot be reached, or has no `/proc`.
pub async fn look(host: &dyn Host) -> Result<Seen, HostError> {
    let mut notes = Vec::new();
    let sockets = sockets::listening(host).await?;
    let holders = sockets::holders(host).await?;
    let containers = containers::all(host, &mut notes).await;
    let mut listeners: BTreeMap<u16, Listener> = BTreeMap::new();
    let mut hidden = 0;
    for socket in sockets {
        let address = socket.address;
        let published = containers
            .iter()
            .find(|one| one.ports.contains(&address.port()));
        let (process, home) = match (published, holders.get(&socket.inode)) {
            // Docker's proxy holds the port of a container; its command says nothing.
            (Some(container), _) => (
                Some(container.process()),
                Home::Container(Box::new(container.clone())),
            ),
            (None, Some(pid)) => {
                let home = home::of(host, *pid, &containers).await?;
                (Some(family(host, *pid).await?), home)
            }
            (None, None) => {
                hidden += 1;
                (None, Home::Unknown)
            }
        };
        listeners
            .entry(address.port())
            .and_modify(|known| {
                // One port on two addresses: the one that is reached by the loopback address is kept.
                if !known.address.ip().is_unspecified() && address.ip().is_unspecified() {
                    known.address = address;
                }
            })
            .or_insert(Listener {
                address,
                process,
                home,
            });
    }
    // Where no proxy runs, the kernel forwards a published port and nothing listens on it.
    for container in &containers {
        for port in &container.ports {
            listeners.entry(*port).or_insert_with(|| Listener {
                address: SocketAddr::new(IpAddr::from([127, 0, 0, 1]), *port),
                process: Some(container.process()),
                home: Home::Container(Box::new(container.clone())),
            });
        }
    }
    if hidden > 0 {
        notes.push(format!(
            "the processes of {hidden} listening sockets cannot be seen from here: they are other users' (as root they can be seen) or another container's"
        ));
    }
    Ok(Seen {
        listeners: listeners.into_values().collect(),
        notes,
    })
}

/// Where a process runs and with what it was told by its environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    pub directory: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// Variables that change how a server runs. Others, and all that may hold a secret, are left out.
    pub env: Vec<(String, String)>,
}

/// Variables that servers read, by how their names begin.
const TELLING: [&str; 14] = [
    "CUDA_",
    "NVIDIA_",
    "HIP_",
    "ROCR_",
    "NCCL_",
    "VLLM_",
    "SGLANG_",
    "SGL_",
    "LLAMA_",
    "GGML_",
    "HF_",
    "TORCH",
    "PYTORCH_",
    "LD_LIBRARY_PATH",
];

/// Words in a name that tell of a secret.
const SECRET: [&str; 5] = ["TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL"];

/// Reads where process `pid` runs; what may not be read is left out.
///
/// # Errors
/// The host cannot be reached.
pub async fn surroundings(host: &dyn Host, pid: u32) -> Result<Surroundings, HostError> {
    let argv = ["readlink".to_string(), format!("/proc/{pid}/cwd")];
    let link = host.run(&argv).await?;
    let directory = String::from_utf8(link.stdout).ok();
    let directory = directory
        .map(|text| PathBuf::from(text.trim_end_matches('\n')))
        .filter(|path| path.is_absolute());
    let environ = match host.read(Path::new(&format!("/proc/{pid}/environ"))).await {
        Ok(bytes) => bytes.unwrap_or_default(),
        Err(error) if error.is_lost() => return Err(error),
        Err(_) => Vec::new(),
    };
    let home = variables(&environ).find(|(name, _)| *name == "HOME");
    Ok(Surroundings {
        directory,
        home: home.map(|(_, value)| PathBuf::from(value)),
        env: telling(&environ),
    })
}

fn variables(environ: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    environ
        .split(|byte| *byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='))
}

fn telling(environ: &[u8]) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = variables(environ)
        .filter(|(name, _)| TELLING.iter().any(|start| name.starts_with(start)))
        .filter(|(name, _)| !SECRET.iter().any(|word| name.contains(word)))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    env.sort();
    env
}

/// A process and its parents.
async fn family(host: &dyn Host, pid: u32) -> Result<Process, HostError> {
    let mut commands = Vec::new();
    let mut next = Some(pid);
    while let Some(now) = next.filter(|pid| *pid > 1 && commands.len() < GENERATIONS) {
        let Some(bytes) = host
            .read(Path::new(&format!("/proc/{now}/cmdline")))
            .await?
        else {
            break;
        };
        commands.push(arguments(&bytes));
        let stat = host.read(Path::new(&format!("/proc/{now}/stat"))).await?;
        next = stat.and_then(|stat| parent(&stat));
    }
    Ok(Process { pid, commands })
}

/// The kernel ends each argument with a zero byte; a process that has renamed itself has one text.
fn arguments(cmdline: &[u8]) -> Vec<String> {
    let text = cmdline.strip_suffix(&[0]).unwrap_or(cmdline);
    text.split(|byte| *byte == 0)
        .map(|one| units::clean(&String::from_utf8_lossy(one)))
        .collect()
}

/// The fourth field of `/proc/PID/stat`, counted from the last parenthesis: the name may hold anything.
fn parent(stat: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(stat);
    let (_, tail) = text.rsplit_once(')')?;
    tail.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;

    #[tokio::test]
    async fn a_listener_of_this_very_process_is_found_with_its_command() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let seen = look(&Local).await.unwrap();
        let found = seen
            .listeners
            .iter()
            .find(|one| one.address == address)
            .unwrap();
        let process = found.process.as_ref().unwrap();
        assert_eq!(process.pid, std::process::id());
        let own: Vec<String> = std::env::args().collect();
        assert_eq!(process.commands.first(), Some(&own));
        assert!(process.commands.len() > 1, "{process:?}");
        assert_eq!(found.url(), format!("http://{address}"));
    }

    #[test]
    fn a_socket_that_listens_everywhere_is_reached_by_loopback() {
        let url = |address: &str| {
            Listener {
                address: address.parse().unwrap(),
                process: None,
                home: Home::Unknown,
            }
            .url()
        };
        assert_eq!(url("0.0.0.0:30000"), "http://127.0.0.1:30000");
        assert_eq!(url("[::]:30000"), "http://127.0.0.1:30000");
        assert_eq!(url("[::1]:8000"), "http://[::1]:8000");
        assert_eq!(url("192.168.1.5:8000"), "http://192.168.1.5:8000");
    }

    #[test]
    fn only_what_changes_how_a_server_runs_is_taken_from_an_environment() {
        let environ = b"PATH=/bin\0CUDA_VISIBLE_DEVICES=0,1\0HF_TOKEN=hf_secret\0HF_HOME=/models\0VLLM_API_KEY=x\0LD_LIBRARY_PATH=/opt\0";
        let names: Vec<String> = telling(environ).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["CUDA_VISIBLE_DEVICES", "HF_HOME", "LD_LIBRARY_PATH"]
        );
    }

    #[tokio::test]
    async fn this_very_process_runs_in_its_own_directory() {
        let found = surroundings(&Local, std::process::id()).await.unwrap();
        assert_eq!(found.directory, std::env::current_dir().ok());
    }

    #[test]
    fn commands_are_split_at_zero_bytes_and_cleaned() {
        assert_eq!(
            arguments(b"vllm\0serve\0\0--x\0"),
            ["vllm", "serve", "", "--x"]
        );
        assert_eq!(arguments(b"VLLM::EngineCore"), ["VLLM::EngineCore"]);
        assert!(!arguments(b"a\x1b[2Jb\0")[0].contains('\u{1b}'));
        assert_eq!(parent(b"42 (a) b) S 7 1 2"), Some(7));
        assert_eq!(parent(b"nothing"), None);
    }
}
