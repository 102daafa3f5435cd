//! Who listens on a port of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use url::{Host, Url};

/// A listening TCP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub address: SocketAddr,
    /// The socket's number, by which its process is found.
    pub inode: u64,
}

/// Sockets that take the connections which `url` would make, or bar its address for another server. Empty for an address that
/// names no port.
pub fn at(url: &str) -> Vec<Listener> {
    let Ok(url) = Url::parse(url) else {
        return Vec::new();
    };
    let Some(port) = url.port_or_known_default() else {
        return Vec::new();
    };
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|table| parse(&table))
        .filter(|one| one.address.port() == port && meets(one.address.ip(), url.host()))
        .collect()
}

fn meets(listens: IpAddr, host: Option<Host<&str>>) -> bool {
    let listens = listens.to_canonical();
    match host {
        _ if listens.is_unspecified() => true,
        Some(Host::Ipv4(wanted)) => wanted.is_unspecified() || listens == IpAddr::V4(wanted),
        Some(Host::Ipv6(wanted)) => wanted.is_unspecified() || listens == IpAddr::V6(wanted),
        Some(Host::Domain("localhost")) => listens.is_loopback(),
        // A name may mean any address of this machine.
        Some(Host::Domain(_)) | None => true,
    }
}

/// Reads the kernel's table of TCP sockets: the second field is the local address in hexadecimal, the fourth the state (`0A`: listening), the
/// tenth the inode.
pub fn parse(table: &str) -> Vec<Listener> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if *fields.get(3)? != "0A" {
                return None;
            }
            Some(Listener {
                address: address(fields.get(1)?)?,
                inode: fields.get(9)?.parse().ok()?,
            })
        })
        .collect()
}

/// `0100007F:1F90` is 127.0.0.1:8080: words of four bytes, each in the machine's own order.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Vec<[u8; 4]> = (0..ip.len())
        .step_by(8)
        .map(|at| {
            let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
            Some(word.to_ne_bytes())
        })
        .collect::<Option<_>>()?;
    let ip = match words.concat().as_slice() {
        [a, b, c, d] => IpAddr::V4(Ipv4Addr::new(*a, *b, *c, *d)),
        bytes => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn tables_are_read_in_the_machines_order() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 x\n\
            1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 x\n\
            2: 00000000000000000000000001000000:1F92 0:0 0A 0:0 00:0 0     0        0 4713 1 x\n\
            3: 0100007:1F93 0:0 0A 0:0 00:0 0     0        0 4714 1 x\n";
        let found: Vec<(String, u64)> = parse(table)
            .into_iter()
            .map(|one| (one.address.to_string(), one.inode))
            .collect();
        if cfg!(target_endian = "little") {
            assert_eq!(
                found,
                [
                    ("127.0.0.1:8080".to_string(), 4711),
                    ("[::1]:8082".to_string(), 4713)
                ]
            );
        }
    }

    #[test]
    fn a_listener_of_this_process_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost", "0.0.0.0", "some-name"] {
            assert_eq!(at(&format!("http://{host}:{port}")).len(), 1, "{host}");
        }
        assert!(at(&format!("http://10.1.2.3:{port}")).is_empty());
        assert!(at("no url").is_empty());
        let inodes: Vec<u64> = at(&format!("http://127.0.0.1:{port}"))
            .iter()
            .map(|one| one.inode)
            .collect();
        let holders = crate::service::procfs::socket_holders(&inodes);
        assert!(holders.iter().any(|one| one.pid == std::process::id()));
        drop(listener);
        assert!(at(&format!("http://127.0.0.1:{port}")).is_empty());
    }
}
