//! The running process of a unit, as `/proc` of its host shows it.

use super::manager::{Manager, words};
use crate::launch::{self, Dialect, Server};
use crate::service::{ProcessId, ServiceError};
use std::path::{Path, PathBuf};

/// Where the control groups of systemd may be mounted.
const ROOTS: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/systemd",
    "/sys/fs/cgroup/unified",
];

/// The command and the environment that a process was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub argv: Vec<String>,
    /// `None`: this user may not read it.
    pub env: Option<Vec<(String, String)>>,
}

/// Tells the process apart from every other that ever had its number; `None` if it is gone.
pub async fn identify(manager: &Manager, pid: u32) -> Result<Option<ProcessId>, ServiceError> {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    let stat = match manager.host.read(&path).await {
        Ok(Some(stat)) => stat,
        // Nothing is known of a process on a host that is out of reach.
        Err(error) if error.is_lost() => return Err(error.into()),
        // A process may end while its file is read.
        Ok(None) | Err(_) => return Ok(None),
    };
    let text = String::from_utf8_lossy(&stat).into_owned();
    // The name may hold blanks and parentheses; field 22 counts from its end.
    let ticks = text
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse().ok());
    let Some(start_ticks) = ticks else {
        return Ok(None);
    };
    Ok(Some(ProcessId {
        pid,
        start_ticks,
        boot_id: manager.host.boot_id().await?,
    }))
}

/// What a process was started with; `None` if it is gone or may not be looked at.
pub async fn command(manager: &Manager, pid: u32) -> Option<Command> {
    let read = |name: &str| {
        let path = PathBuf::from(format!("/proc/{pid}/{name}"));
        async move { manager.read(Path::new(&path)).await.ok().flatten() }
    };
    let parts = |bytes: &[u8]| -> Vec<String> {
        bytes
            .split(|byte| *byte == 0)
            .filter(|part| !part.is_empty())
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect()
    };
    let argv = read("cmdline").await?;
    let env = read("environ").await.map(|bytes| {
        let pair = |text: &String| {
            let (name, value) = text.split_once('=')?;
            Some((name.to_string(), value.to_string()))
        };
        parts(&bytes).iter().filter_map(pair).collect()
    });
    Some(Command {
        argv: parts(&argv),
        env,
    })
}

impl Command {
    /// The context per request that the process itself was given.
    pub fn context(&self, engine: Option<Dialect>) -> Option<u64> {
        let env = self.env.clone().unwrap_or_default();
        launch::find_in_argv(&self.argv, &env, engine)
            .as_ref()
            .and_then(Server::per_request)
    }

    /// Whether this is what `argv` starts, also where the program is a script and its interpreter stands before it.
    pub fn is(&self, argv: &[String]) -> bool {
        let tail = argv.get(1..).unwrap_or_default();
        self.argv == argv || (!tail.is_empty() && self.argv.ends_with(tail))
    }
}

/// Every process of a control group.
pub async fn members(manager: &Manager, group: &str) -> Vec<u32> {
    if group.is_empty() || group == "/" {
        return Vec::new();
    }
    for root in ROOTS {
        let find = words(&[
            "find",
            &format!("{root}{group}"),
            "-name",
            "cgroup.procs",
            "-exec",
            "cat",
            "{}",
            "+",
        ]);
        let Ok(output) = manager.host.run(&find).await else {
            continue;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if !pids.is_empty() {
            return pids;
        }
    }
    Vec::new()
}

/// The numbers of the sockets that these processes hold, as far as they may be looked at.
pub async fn sockets(manager: &Manager, pids: &[u32]) -> Vec<u64> {
    if pids.is_empty() {
        return Vec::new();
    }
    let mut argv = words(&["find"]);
    argv.extend(pids.iter().map(|pid| format!("/proc/{pid}/fd")));
    argv.extend(words(&["-lname", "socket:*", "-printf", "%l\\n"]));
    let plain = numbers(manager, &argv).await;
    if plain.is_empty() && manager.sudo {
        return numbers(manager, &manager.rights(argv)).await;
    }
    plain
}

async fn numbers(manager: &Manager, argv: &[String]) -> Vec<u64> {
    let Ok(output) = manager.host.run(argv).await else {
        return Vec::new();
    };
    let number = |line: &str| -> Option<u64> {
        line.strip_prefix("socket:[")?
            .strip_suffix(']')?
            .parse()
            .ok()
    };
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(number)
        .collect()
}
