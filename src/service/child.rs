//! One child process: started in a session of its own, signalled, and noticed when it has ended.

use super::procfs;
use super::record::{MARK, Record};
use super::template::Rendered;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a new process may take to make its session: milliseconds, but on a machine out of breath.
const SETSID_TAKES: Duration = Duration::from_secs(5);

/// Starts the command in a session of its own. `setsid` replaces itself by it, so the number is the server's.
pub fn spawn(rendered: &Rendered, record: &Record, output: File) -> std::io::Result<u32> {
    let mut command = Command::new("setsid");
    command
        .arg("--")
        .args(&rendered.argv)
        .envs(rendered.env.iter().map(|(name, value)| (name, value)))
        .env(MARK, &record.mark)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    if let Some(cwd) = &record.config.launch.cwd {
        command.current_dir(cwd);
    }
    Ok(command.spawn()?.id())
}

/// Waits for the child to leave our session: from then on its group can be signalled. A child that has ended is left to be seen
/// as such; it keeps its number and start time until we take note of its end.
pub fn own_session(pid: u32) -> Option<procfs::Stat> {
    let begun = Instant::now();
    loop {
        let stat = procfs::stat(pid)?;
        if stat.session == pid || !stat.alive() || begun.elapsed() > SETSID_TAKES {
            return Some(stat);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn raw_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Signals exactly this process. One that has ended, or may not be signalled, is seen by who waits for its end.
pub fn signal(to: &procfs::Stat, signal: Signal) {
    let Some(pid) = raw_pid(to.pid) else { return };
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    let same = procfs::stat(to.pid).is_some_and(|now| now.start_ticks == to.start_ticks);
    if same {
        let _ = rustix::process::pidfd_send_signal(&handle, signal);
    }
}

/// Asks the whole group of the leader to end. The number of a group is nobody else's while a member lives.
pub fn signal_group(leader: &procfs::Stat) {
    let same = procfs::stat(leader.pid).is_some_and(|now| now.start_ticks == leader.start_ticks);
    if let Some(pid) = raw_pid(leader.pid).filter(|_| same) {
        let _ = rustix::process::kill_process_group(pid, Signal::TERM);
    }
}

/// Takes note of the end of a process that is our own child, and how it ended: its exit code, negative for a signal. Before that
/// the kernel gives its number to nobody else.
pub fn reap(stat: &procfs::Stat) -> Option<i32> {
    if stat.parent != std::process::id() {
        return None;
    }
    let pid = raw_pid(stat.pid)?;
    let (_, status) = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG).ok()??;
    status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| -signal))
}
