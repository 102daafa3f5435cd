//! The limit on open files: every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Files that the rest of the program may have open.
const OTHERS: u64 = 128;

/// Raises this process's own limit for `connections` more, as far as it may. What is missing then is said by the connection that
/// finds none left.
pub fn make_room(connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + OTHERS;
    let Some(current) = limit.current.filter(|current| *current < wanted) else {
        return;
    };
    let most = limit.maximum.unwrap_or(u64::MAX);
    let current = Some(wanted.min(most).max(current));
    // Up to the maximum a process may always raise its limit.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current,
            maximum: limit.maximum,
        },
    );
}

/// A failure to open a connection, in words, with what to do where that is known.
pub fn explain(error: &io::Error) -> String {
    let out_of_files = [
        rustix::io::Errno::MFILE.raw_os_error(),
        rustix::io::Errno::NFILE.raw_os_error(),
    ];
    if !error
        .raw_os_error()
        .is_some_and(|e| out_of_files.contains(&e))
    {
        return error.to_string();
    }
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or("as many as the system has".to_string(), |n| n.to_string());
    format!(
        "no more files can be opened, and every stream needs one. The limit is {limit}: raise it (`ulimit -n`, LimitNOFILE=) or lower the \
         concurrency"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_need_is_said() {
        let none_left = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        assert!(explain(&none_left).contains("ulimit -n"));
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(explain(&refused), refused.to_string());
    }

    #[test]
    fn a_low_limit_is_raised_and_a_high_one_left() {
        let before = getrlimit(Resource::Nofile).current;
        make_room(1);
        let after = getrlimit(Resource::Nofile).current;
        assert!(after >= before);
    }
}
