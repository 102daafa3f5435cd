//! What a process belongs to: a systemd unit, a container, or nothing but its starter.

use super::Container;
use crate::host::{Host, HostError};
use std::path::Path;

/// A systemd unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub name: String,
    /// It belongs to the manager of a user, by number.
    pub user: Option<u32>,
}

/// What started a process, and would start it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    Unit(Unit),
    Container(Box<Container>),
    /// A container that no container engine here lists.
    ForeignContainer(String),
    /// A shell, a terminal multiplexer, another program.
    Loose,
    /// It may not be read.
    Unknown,
}

/// Where a process lives, by its control group.
pub async fn of(host: &dyn Host, pid: u32, containers: &[Container]) -> Result<Home, HostError> {
    let Some(bytes) = host.read(Path::new(&format!("/proc/{pid}/cgroup"))).await? else {
        return Ok(Home::Unknown);
    };
    let text = String::from_utf8_lossy(&bytes);
    if let Some(id) = container_id(&text) {
        let known = containers.iter().find(|one| one.id.starts_with(id));
        return Ok(match known {
            Some(container) => Home::Container(Box::new(container.clone())),
            None => Home::ForeignContainer(id.to_string()),
        });
    }
    Ok(unit(&text).map_or(Home::Loose, Home::Unit))
}

/// Every control group line ends in a path: `0::/system.slice/x.service`, on older hosts also `1:name=systemd:/…`.
fn paths(cgroup: &str) -> impl Iterator<Item = &str> {
    cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2))
}

/// Container engines put the 64 hexadecimal digits of the container into the path: `/docker/ID`, `docker-ID.scope`, `libpod-ID.scope`,
/// `cri-containerd-ID.scope`.
pub fn container_id(cgroup: &str) -> Option<&str> {
    paths(cgroup)
        .flat_map(|path| path.split('/'))
        .find_map(|part| {
            let part = part.strip_suffix(".scope").unwrap_or(part);
            let id = part.rsplit_once('-').map_or(part, |(_, id)| id);
            (id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
        })
}

/// The innermost service of the path. Units of a user lie below `user@NUMBER.service`; a session scope is a login, not a service.
fn unit(cgroup: &str) -> Option<Unit> {
    paths(cgroup).find_map(|path| {
        let mut user = None;
        let mut name = None;
        for part in path.split('/') {
            let manager = part
                .strip_prefix("user@")
                .and_then(|rest| rest.strip_suffix(".service"))
                .and_then(|number| number.parse().ok());
            if let Some(number) = manager {
                user = Some(number);
                name = None;
            } else if part.ends_with(".service") {
                name = Some(part);
            }
        }
        name.map(|name| Unit {
            name: unescape(name),
            user,
        })
    })
}

/// systemd puts `_` before a name of a control group that would be taken for one of the kernel's own files.
fn unescape(part: &str) -> String {
    part.strip_prefix('_').unwrap_or(part).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_unit_is_told_from_a_login_and_a_container() {
        let system = unit("0::/system.slice/sglang-qwen.service\n").unwrap();
        assert_eq!(
            (system.name.as_str(), system.user),
            ("sglang-qwen.service", None)
        );
        let template = unit("0::/system.slice/system-vllm.slice/vllm@a.service").unwrap();
        assert_eq!(template.name, "vllm@a.service");
        let user = unit("0::/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service")
            .unwrap();
        assert_eq!(
            (user.name.as_str(), user.user),
            ("llama.service", Some(1000))
        );
        let hybrid = unit("12:pids:/user.slice\n1:name=systemd:/system.slice/x.service\n0::/\n");
        assert_eq!(hybrid.unwrap().name, "x.service");
        assert_eq!(unit("0::/user.slice/user-0.slice/session-3.scope"), None);
        assert_eq!(unit("0::/user.slice/user-0.slice/user@0.service"), None);
        assert_eq!(unit("0::/"), None);
        assert_eq!(unit(""), None);
    }

    #[test]
    fn containers_of_all_engines_are_known_by_their_number() {
        for path in [
            format!("0::/docker/{ID}"),
            format!("0::/system.slice/docker-{ID}.scope"),
            format!("0::/machine.slice/libpod-{ID}.scope/container"),
            format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope"),
        ] {
            assert_eq!(container_id(&path), Some(ID), "{path}");
        }
        assert_eq!(container_id("0::/system.slice/docker.service"), None);
    }
}
