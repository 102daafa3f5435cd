//! The processes of a server and what its environment says of devices, for matching with the cards.

use super::{look, surroundings};
use crate::gpu::{ORDER, Tenant};
use crate::host::{Host, HostError};
use crate::service::Service;
use std::net::{IpAddr, UdpSocket};

/// Every process with its parent and its group. The text is constant: nothing from outside becomes part of it.
const ALL: &str = "cat /proc/[0-9]*/stat 2>/dev/null; :";

/// A line of `/proc/PID/stat`, as far as it tells who belongs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kin {
    pid: u32,
    parent: u32,
    group: u32,
}

/// Looks for the server of a service, or without one for what listens at `url` on `host`; with all that descends from it. Nobody of it is
/// found where nothing runs, or where it cannot be told from here.
///
/// # Errors
/// The host cannot be reached.
pub async fn tenant(
    host: &dyn Host,
    service: Option<&dyn Service>,
    url: &str,
) -> Result<Tenant, HostError> {
    // A service that does not tell is no fault of the cards.
    let known = match service {
        Some(service) => service.pids().await.unwrap_or_default(),
        None => listening(host, url).await?.into_iter().collect(),
    };
    of_processes(host, &known, service.is_none()).await
}

/// The processes `known` and all that descends from them; `climb`: also what they descend from, as far as one command was started.
async fn of_processes(host: &dyn Host, known: &[u32], climb: bool) -> Result<Tenant, HostError> {
    if known.is_empty() {
        return Ok(Tenant::default());
    }
    let argv = ["sh", "-c", ALL].map(str::to_string);
    let listing = host.run(&argv).await?;
    let all: Vec<Kin> = String::from_utf8_lossy(&listing.stdout)
        .lines()
        .filter_map(kin)
        .collect();
    let first: Vec<u32> = match climb {
        true => known.iter().map(|pid| eldest(*pid, &all)).collect(),
        false => known.to_vec(),
    };
    let pids = family(&first, &all);
    let mut env = match pids.first() {
        Some(root) => surroundings(host, *root).await?.env,
        None => Vec::new(),
    };
    env.retain(|(name, _)| name.ends_with("_VISIBLE_DEVICES") || name == ORDER);
    Ok(Tenant { pids, env })
}

/// Who listens at the port of `url`, where that is an address of `host` itself.
async fn listening(host: &dyn Host, url: &str) -> Result<Option<u32>, HostError> {
    let port = url::Url::parse(url)
        .ok()
        .and_then(|url| url.port_or_known_default());
    let Some(port) = port.filter(|_| is_on(host, url)) else {
        return Ok(None);
    };
    let seen = look(host).await?;
    let listener = seen
        .listeners
        .into_iter()
        .find(|one| one.address.port() == port);
    Ok(listener
        .and_then(|one| one.process)
        .map(|process| process.pid))
}

/// Whether a server at `url` runs on `host`. On another machine than this one it does: the profile says so.
pub fn is_on(host: &dyn Host, url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else {
        return false;
    };
    !host.is_local()
        || match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(ip)) => here(ip.into()),
            Some(url::Host::Ipv6(ip)) => here(ip.into()),
            None => false,
        }
}

/// A socket can only be bound to an address of this machine.
fn here(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

/// The name stands in parentheses and may itself contain blanks and parentheses: fields are counted from the last one.
fn kin(line: &str) -> Option<Kin> {
    let (head, tail) = line.rsplit_once(')')?;
    let mut fields = tail.split_whitespace().skip(1);
    Some(Kin {
        pid: head.split_once('(')?.0.trim().parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

/// The first of the process group of `pid` among its parents: a server may listen in a child.
fn eldest(pid: u32, all: &[Kin]) -> u32 {
    let of = |pid: u32| all.iter().find(|one| one.pid == pid);
    let mut now = pid;
    // No chain of parents is longer than there are processes.
    for _ in 0..all.len() {
        let parent = of(now).and_then(|one| of(one.parent).filter(|p| p.group == one.group));
        match parent.filter(|parent| parent.pid > 1) {
            Some(parent) => now = parent.pid,
            None => break,
        }
    }
    now
}

/// `first` and all that descend from them, parents before children.
fn family(first: &[u32], all: &[Kin]) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let own = all.iter().find(|one| one.pid == *pid);
        own.is_some_and(|own| first.contains(&own.parent))
    };
    let (children, mut pids): (Vec<u32>, Vec<u32>) = first.iter().partition(|pid| is_child(pid));
    pids.extend(children);
    let mut next = 0;
    while let Some(parent) = pids.get(next).copied() {
        let more: Vec<u32> = all
            .iter()
            .filter(|one| one.parent == parent && !pids.contains(&one.pid))
            .map(|one| one.pid)
            .collect();
        pids.extend(more);
        next += 1;
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;
    use std::process::{Command, Stdio};

    const LISTING: &str = "1 (systemd) S 0 1 1 0\n40 (bash) S 1 40 40 0\n50 (python3) S 40 50 40 0\n51 (a) b (c) S 50 50 40 0\n\
        52 (worker) S 51 52 52 0\n60 (other) S 40 60 40 0\ncut (";

    fn all() -> Vec<Kin> {
        LISTING.lines().filter_map(kin).collect()
    }

    #[test]
    fn a_listener_leads_to_the_first_of_its_group_and_to_all_below_it() {
        assert_eq!(all().len(), 6);
        assert_eq!(eldest(51, &all()), 50);
        assert_eq!(eldest(50, &all()), 50, "its shell has a group of its own");
        assert_eq!(eldest(4711, &all()), 4711);
        assert_eq!(family(&[50], &all()), [50, 51, 52]);
        assert_eq!(
            family(&[52, 51, 50], &all()),
            [50, 52, 51],
            "the parent leads"
        );
        assert_eq!(family(&[4711], &all()), [4711]);
    }

    #[tokio::test]
    async fn all_that_descends_from_a_process_is_found_with_its_devices() {
        let mut server = Command::new("sh")
            .args(["-c", "sleep 60 & echo; wait"])
            .env("CUDA_VISIBLE_DEVICES", "2,3")
            .env("CUDA_SECRET", "x")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = server.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let found = of_processes(&Local, &[server.id()], false).await.unwrap();
        for pid in found.pids.iter().rev() {
            let _ = Command::new("kill").arg(pid.to_string()).status();
        }
        server.wait().unwrap();
        assert_eq!(found.pids.len(), 2, "{found:?}");
        assert_eq!(found.pids.first(), Some(&server.id()));
        assert_eq!(
            found.env,
            [("CUDA_VISIBLE_DEVICES".to_string(), "2,3".to_string())]
        );
    }

    #[tokio::test]
    async fn without_a_service_it_is_what_listens_here() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let at = async |name: &str| {
            let url = format!("http://{name}:{port}");
            tenant(&Local, None, &url).await.unwrap()
        };
        assert!(at("localhost").await.pids.contains(&std::process::id()));
        assert_eq!(at("192.0.2.1").await, Tenant::default());
    }
}
