//! Disk, clock and terminal.

use super::super::rig::Rig;
use super::check::Check;
use crate::clock::{date_time, unix_ms};
use crate::host::Host;
use crate::places::Places;
use crate::theme::{Depth, GlyphSet};
use crate::units::gib;
use rustix::fs::{Access, access, statvfs};
use std::io::IsTerminal;
use std::path::Path;

const MIB: u64 = 1 << 20;
/// Free bytes below which runs may not be kept, and those that leave room for a long session.
const LEAST: u64 = 64 * MIB;
const ENOUGH: u64 = 1024 * MIB;
/// Seconds between two clocks that do not matter, and those that make a journal unreadable.
const CLOSE_S: u64 = 2;
const FAR_S: u64 = 300;
/// The least terminal that the cockpit draws in.
const LEAST_SIZE: (u16, u16) = (60, 15);
/// No machine that runs this is set to a time before (2023-11-14).
const BEFORE_MS: i64 = 1_700_000_000_000;

pub async fn look(places: &Places, rig: Option<&Rig>, checks: &mut Vec<Check>) {
    checks.push(disk("disk (data)", &places.data));
    checks.push(disk("disk (state)", &places.state));
    if let Some(rig) = rig.filter(|rig| !rig.host.is_local()) {
        checks.push(disk_there(rig.host.as_ref()).await);
        checks.push(clocks(rig.host.as_ref()).await);
    } else {
        checks.push(clock());
    }
    checks.push(terminal());
}

/// The folder, or where it will be made.
fn disk(what: &'static str, folder: &Path) -> Check {
    let advice = "Sessions, runs and decisions are kept there: make room, or set XDG_DATA_HOME and XDG_STATE_HOME";
    let Some(there) = folder.ancestors().find(|path| path.is_dir()) else {
        return Check::fail(what, format!("{} cannot be made", folder.display()), advice);
    };
    if let Err(error) = access(there, Access::WRITE_OK | Access::EXEC_OK) {
        let seen = format!("{} cannot be written to: {error}", there.display());
        return Check::fail(what, seen, advice);
    }
    match statvfs(there) {
        Ok(space) => room(
            what,
            &folder.display().to_string(),
            space.f_bavail.saturating_mul(space.f_frsize),
        ),
        Err(error) => Check::warn(what, format!("{}: {error}", there.display()), advice),
    }
}

fn room(what: &'static str, place: &str, free: u64) -> Check {
    let seen = format!("{place}: {} GiB free", gib(free));
    let advice = "Make room: what is measured is written as it comes";
    match free {
        0..LEAST => Check::fail(what, seen, advice),
        LEAST..ENOUGH => Check::warn(what, seen, advice),
        _ => Check::ok(what, seen),
    }
}

/// Where the intent of a restart is written.
async fn disk_there(host: &dyn Host) -> Check {
    const WHAT: &str = "disk (host)";
    let argv = ["df", "-Pk", "--", "."].map(str::to_string);
    let advice = "The step of a restart is written there before it is taken: make room";
    let place = format!("your home on {}", host.name());
    match host.run(&argv).await {
        Ok(output) => match free_kib(&String::from_utf8_lossy(&output.stdout)) {
            Some(free) => room(WHAT, &place, free.saturating_mul(1024)),
            None => Check::warn(WHAT, format!("{place}: df does not say"), advice),
        },
        Err(error) => Check::fail(WHAT, error, advice),
    }
}

/// The fourth column of the second line of `df -P`.
fn free_kib(text: &str) -> Option<u64> {
    let mut words = text.lines().nth(1)?.split_whitespace();
    words.nth(3)?.parse().ok()
}

fn clock() -> Check {
    const WHAT: &str = "clock";
    let now = unix_ms();
    if now < BEFORE_MS {
        return Check::fail(WHAT, date_time(now), "Set the clock: records bear its time");
    }
    Check::ok(WHAT, date_time(now))
}

/// Both clocks stamp what belongs together: deadlines, journal, records.
async fn clocks(host: &dyn Host) -> Check {
    const WHAT: &str = "clock";
    let before = unix_ms();
    let argv = ["date", "+%s"].map(str::to_string);
    let output = host.run(&argv).await;
    let here_s = before.midpoint(unix_ms()).div_euclid(1000);
    let there = output.map(|output| {
        let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
        text.parse::<i64>()
    });
    let advice = "Set both by NTP: deadlines and the times in the journal are those of the host";
    match there {
        Ok(Ok(there_s)) => {
            let apart = here_s.abs_diff(there_s);
            let seen = format!("{} s apart from {}", apart, host.name());
            if apart <= CLOSE_S {
                Check::ok(WHAT, seen)
            } else if apart <= FAR_S {
                Check::warn(WHAT, seen, advice)
            } else {
                Check::fail(WHAT, seen, advice)
            }
        }
        Ok(Err(_)) => Check::warn(
            WHAT,
            format!("date on {} does not say", host.name()),
            advice,
        ),
        Err(error) => Check::fail(WHAT, error, advice),
    }
}

fn terminal() -> Check {
    const WHAT: &str = "terminal";
    if !std::io::stdout().is_terminal() {
        let advice = "The cockpit needs one; vramp bench, ramp and status do not";
        return Check::warn(WHAT, "standard output is none", advice);
    }
    let env = |name: &str| std::env::var(name).ok();
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let (columns, rows) = size.map_or((0, 0), |size| (size.ws_col, size.ws_row));
    let colours = match Depth::detect(&env) {
        Depth::None => "no colours",
        Depth::Ansi16 => "16 colours",
        Depth::Ansi256 => "256 colours",
        Depth::True => "all colours",
    };
    let set = GlyphSet::detect(&env);
    let signs = match set {
        GlyphSet::Unicode => "UTF-8",
        GlyphSet::Ascii => "ASCII signs alone",
    };
    let seen = format!("{columns}x{rows}, {colours}, {signs}");
    if columns < LEAST_SIZE.0 || rows < LEAST_SIZE.1 {
        return Check::warn(
            WHAT,
            seen,
            "The cockpit needs 60x15; from 120x36 on it shows all",
        );
    }
    if set == GlyphSet::Ascii {
        return Check::warn(
            WHAT,
            seen,
            "Set a UTF-8 locale (LANG=C.UTF-8) for the charts",
        );
    }
    Check::ok(WHAT, seen)
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn room_and_df_are_read() {
        let text = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda1 100 40 60 40% /\n";
        assert_eq!(free_kib(text), Some(60));
        assert_eq!(free_kib("df: .: No such file"), None);
        let verdict = |free| room("disk", "/", free).result;
        assert_eq!(verdict(0), Verdict::Fail);
        assert_eq!(verdict(LEAST), Verdict::Warn);
        assert_eq!(verdict(ENOUGH), Verdict::Ok);
        let gone = disk("disk", Path::new("/proc/no/such"));
        assert_ne!(gone.result, Verdict::Ok);
    }
}
