//! Processes as `/proc` shows them.

use std::fs;
use std::path::{Path, PathBuf};

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub pid: u32,
    /// Program name as the kernel keeps it, at most 15 bytes.
    pub name: String,
    /// `R`, `S`, `D`, `Z`, …
    pub state: char,
    pub parent: u32,
    pub session: u32,
    /// Threads that have not ended, the first one counted until its end is noticed.
    pub threads: u32,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// A zombie has ended: it holds no memory and no files and only waits to be noticed. The state is that of the first thread alone:
    /// while another one lives, so does the process, with all that it holds.
    pub fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') || self.threads > 1
    }
}

/// One process; `None` if there is none of that number.
pub fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Every process that can be seen.
pub fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(stat)
        .collect()
}

/// Whether the environment that a process was started with has exactly this entry (`NAME=value`). `false` where it may not be
/// read: the processes of another user.
pub fn has_entry(pid: u32, entry: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        environ
            .split(|byte| *byte == 0)
            .any(|one| one == entry.as_bytes())
    })
}

/// Whether the standard output or error of a process is this file, by its full path.
pub fn writes_to(pid: u32, file: &Path) -> bool {
    [1, 2]
        .iter()
        .any(|fd| fs::read_link(format!("/proc/{pid}/fd/{fd}")).is_ok_and(|to| to == file))
}

/// Processes that hold one of these sockets open, as far as their files may be read.
pub fn socket_holders(inodes: &[u64]) -> Vec<Stat> {
    let wanted: Vec<String> = inodes
        .iter()
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let holds = |folder: &Path| {
        fs::read_dir(folder.join("fd")).is_ok_and(|files| {
            files.filter_map(Result::ok).any(|file| {
                fs::read_link(file.path())
                    .is_ok_and(|link| wanted.iter().any(|one| link.as_os_str() == one.as_str()))
            })
        })
    };
    // A process whose first thread has ended shows its files at the others.
    let by_threads = |process: &Path| {
        fs::read_dir(process.join("task"))
            .is_ok_and(|tasks| tasks.filter_map(Result::ok).any(|task| holds(&task.path())))
    };
    let of = |stat: &Stat| {
        let process = PathBuf::from(format!("/proc/{}", stat.pid));
        match stat.state {
            'Z' => by_threads(&process),
            _ => holds(&process),
        }
    };
    all().into_iter().filter(of).collect()
}

/// The processes of several `/proc/PID/stat` files, one after the other. A name that holds a line's end costs its own process.
pub fn parse_all(text: &[u8]) -> Vec<Stat> {
    text.split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect()
}

/// The name stands in parentheses and may itself contain blanks and parentheses: fields are counted from the last one.
fn parse(text: &[u8]) -> Option<Stat> {
    let text = String::from_utf8_lossy(text);
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    Some(Stat {
        pid: pid.trim().parse().ok()?,
        name: crate::units::clean(name),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = b"4711 (a) (b c) S 12 4711 4700 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 112401 3133440 382";
        assert_eq!(
            parse(text),
            Some(Stat {
                pid: 4711,
                name: "a) (b c".to_string(),
                state: 'S',
                parent: 12,
                session: 4700,
                threads: 1,
                start_ticks: 112_401,
            })
        );
        assert_eq!(parse(b"12 (cut) S 1"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn this_very_process_is_found() {
        let own = stat(std::process::id()).unwrap();
        assert!(own.alive());
        assert!(all().iter().any(|one| one.pid == own.pid));
        assert!(!has_entry(own.pid, "NO_SUCH_ENTRY=1"));
        assert_eq!(stat(u32::MAX), None);
    }
}
