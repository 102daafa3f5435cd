//! What runs: the container's start, its processes, its port, its end.

use super::container::{self, Container};
use super::sources::Sources;
use super::{Inner, Settings};
use crate::launch::{self, Server};
use crate::service::{Port, ProcessId, ServiceError, listener, procfs};

impl Inner {
    /// Tells a start of the container apart from every other.
    pub(super) async fn identify(&self, container: &Container) -> Result<ProcessId, ServiceError> {
        let words = [container.id.as_str(), container.started_at.as_str()];
        // FNV-1a: stable over versions.
        let start_ticks = words
            .join(" ")
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        Ok(ProcessId {
            pid: container.pid,
            start_ticks,
            boot_id: self.tool.host.boot_id().await?,
        })
    }

    /// The context per request that the container itself was given.
    pub(super) fn context_of(&self, container: &Container, sources: &Sources) -> Option<u64> {
        own_context(&self.settings, container, sources.started.launch.slots)
    }

    /// Whether a start that is still watched has ended, and its restart policy has brought it up again.
    pub(super) async fn crashed(&self, container: &Container) -> bool {
        let watched = self.watched.lock().await;
        watched
            .as_ref()
            .is_some_and(|one| one.id == container.id && container.restarts > one.restarts)
            || container.restarting
    }

    /// How the last run of a container ended that runs again.
    pub(super) async fn last_exit(&self, container: &Container) -> Option<i32> {
        if !container.running || container.restarting {
            return Some(container.ended());
        }
        let of = format!("container={}", container.id);
        let asked = [
            "events",
            "--since",
            "10m",
            "--until",
            "0s",
            "--filter",
            &of,
            "--filter",
            "event=die",
            "--format",
            "{{.Actor.Attributes.exitCode}}",
        ];
        let printed = self.tool.ask(&asked).await.ok()?;
        let text = String::from_utf8_lossy(&printed).into_owned();
        text.lines()
            .last()?
            .trim()
            .parse()
            .ok()
            .map(container::exit)
    }

    pub(super) async fn pids(&self) -> Result<Vec<u32>, ServiceError> {
        let Some(container) = self.container().await?.filter(Container::runs) else {
            return Ok(Vec::new());
        };
        let podman = self
            .tool
            .engine()
            .last()
            .is_some_and(|word| word == "podman");
        let top: &[&str] = match podman {
            true => &["top", &container.id, "hpid"],
            false => &["top", &container.id, "-eo", "pid"],
        };
        // It may end while it is looked at.
        let printed = self.tool.ask(top).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&printed).into_owned();
        let mut pids: Vec<u32> = text.lines().filter_map(|l| l.trim().parse().ok()).collect();
        if !pids.contains(&container.pid) {
            pids.push(container.pid);
        }
        Ok(pids)
    }

    pub(super) async fn port(&self) -> Result<Port, ServiceError> {
        let Some(container) = self.container().await?.filter(Container::runs) else {
            return Ok(Port::Unknown("no container of it runs".to_string()));
        };
        let url = url::Url::parse(&self.settings.url).ok();
        let port = url.and_then(|url| url.port_or_known_default());
        // The engine gives a published port to one container alone.
        if port.is_some_and(|port| container.ports.contains(&port)) {
            return Ok(Port::Ours);
        }
        if !self.tool.host.is_local() {
            return Ok(Port::Unknown(format!(
                "who listens on {} is not looked at from here",
                self.tool.host.name()
            )));
        }
        let listeners = listener::at(&self.settings.url);
        let Some(first) = listeners.first() else {
            return Ok(Port::Nobody);
        };
        let inodes: Vec<u64> = listeners.iter().map(|one| one.inode).collect();
        let holders = procfs::socket_holders(&inodes);
        let pids = self.pids().await?;
        if holders.iter().any(|one| pids.contains(&one.pid)) {
            return Ok(Port::Ours);
        }
        Ok(match holders.first() {
            Some(one) => Port::Other(format!(
                "{} (pid {}) listens on {}",
                one.name, one.pid, first.address
            )),
            None => Port::Unknown(format!(
                "this user may not see which process listens on {}",
                first.address
            )),
        })
    }
}

/// The context per request in the container's own words and environment.
pub fn own_context(settings: &Settings, container: &Container, slots: u64) -> Option<u64> {
    let server = launch::find_in_argv(&container.argv, &container.env, settings.engine)?;
    if let Some(context) = Server::per_request(&server) {
        return Some(context);
    }
    // The image's entry point may hide what divides the number.
    let number = server.in_force()?.value.tokens()?;
    number.checked_div(slots.max(1))
}
