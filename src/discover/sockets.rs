//! Listening sockets, and which process holds each.

use crate::host::{Host, HostError};
use crate::service::{ListeningSocket, listening_sockets};
use std::collections::HashMap;
use std::path::Path;

/// Lists every file that a process has open, as far as it may be read. The text is constant: nothing from outside becomes part of it.
const OPEN_FILES: &str = "ls -l /proc/[0-9]*/fd 2>/dev/null; :";

/// All listening TCP sockets.
///
/// # Errors
/// The host cannot be reached, or has no `/proc/net/tcp`.
pub async fn listening(host: &dyn Host) -> Result<Vec<ListeningSocket>, HostError> {
    let mut sockets = Vec::new();
    let mut tables = 0;
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        if let Some(bytes) = host.read(Path::new(path)).await? {
            tables += 1;
            sockets.extend(listening_sockets(&String::from_utf8_lossy(&bytes)));
        }
    }
    if tables == 0 {
        return Err(HostError::Failed {
            tried: format!("see what listens on {}", host.name()),
            what: "it has no /proc/net/tcp; only Linux is known".to_string(),
        });
    }
    Ok(sockets)
}

/// The process of each socket, by the socket's number. The lowest process id counts where several share one.
///
/// # Errors
/// The host cannot be reached.
pub async fn holders(host: &dyn Host) -> Result<HashMap<u64, u32>, HostError> {
    let argv = ["sh", "-c", OPEN_FILES].map(str::to_string);
    let output = host.run(&argv).await?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// `/proc/42/fd:` heads the files of process 42; a socket is a link that ends in `-> socket:[4711]`.
fn parse(listing: &str) -> HashMap<u64, u32> {
    let mut found: HashMap<u64, u32> = HashMap::new();
    let mut pid = None;
    for line in listing.lines() {
        if let Some(head) = line.strip_prefix("/proc/") {
            pid = head
                .strip_suffix("/fd:")
                .and_then(|number| number.parse::<u32>().ok());
            continue;
        }
        let inode = line
            .rsplit_once("-> socket:[")
            .and_then(|(_, rest)| rest.trim_end().strip_suffix(']'))
            .and_then(|number| number.parse::<u64>().ok());
        if let (Some(pid), Some(inode)) = (pid, inode) {
            found
                .entry(inode)
                .and_modify(|known| *known = pid.min(*known))
                .or_insert(pid);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listing_of_open_files_names_the_holder_of_each_socket() {
        let listing = "/proc/900/fd:\ntotal 0\nlrwx------ 1 root root 64 Nov 30 21:00 0 -> /dev/null\n\
            lrwx------ 1 root root 64 Nov 30 21:00 3 -> socket:[4711]\n\n/proc/71/fd:\ntotal 0\n\
            lrwx------ 1 me me 64 Nov 30 21:00 9 -> socket:[4711]\nlrwx------ 1 me me 64 Nov 30 21:00 10 -> socket:[5]\n\
            /proc/self/fd:\nlrwx------ 1 me me 64 Nov 30 21:00 10 -> socket:[6]\n";
        let found = parse(listing);
        assert_eq!(found.get(&4711), Some(&71));
        assert_eq!(found.get(&5), Some(&71));
        assert_eq!(found.len(), 2);
    }
}
