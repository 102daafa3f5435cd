//! How the machine of a server is doing: its processors, memory, swap and disk, and the memory of the server's processes.

use super::{Host, HostError};
use crate::reading::Reading;
use std::fmt::Write;
use std::path::Path;

/// Bytes of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub used: u64,
    pub total: u64,
}

impl Room {
    pub fn free(self) -> u64 {
        self.total.saturating_sub(self.used)
    }
}

/// One look at a machine. Each figure stands for itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Vitals {
    /// Share of all processors that was busy since the last look, 0..1.
    pub cpu: Reading<f64>,
    /// What cannot be given to programs counts as used.
    pub memory: Reading<Room>,
    /// A total of 0: the machine has no swap.
    pub swap: Reading<Room>,
    /// Resident memory of the server's processes, bytes. What they share is counted once for each.
    pub server: Reading<u64>,
    /// The file system that the server runs in. What only root may fill counts as used.
    pub disk: Reading<Room>,
}

/// Looks at one machine again and again.
#[derive(Debug, Default)]
pub struct Watch {
    /// Ticks of all processors at the last look: busy, and all.
    before: Option<(u64, u64)>,
}

/// Reads everything on another machine at once. The process ids are arguments; nothing from outside becomes part of the text.
const SCRIPT: &str = r#"head -n 1 /proc/stat; cat /proc/meminfo
for pid in "$@"; do grep '^VmRSS:' "/proc/$pid/status"; done 2>/dev/null
{ df -Pk "/proc/$1/cwd" || df -Pk /; } 2>/dev/null | tail -n 1 | sed 's/^/disk /'"#;

impl Watch {
    /// Looks once. `pids`: the server's processes.
    ///
    /// # Errors
    /// The machine cannot be asked.
    pub async fn look(&mut self, host: &dyn Host, pids: &[u32]) -> Result<Vitals, HostError> {
        let text = if host.is_local() {
            // A file system that hangs must not hold up anything else.
            let pids = pids.to_vec();
            let read = tokio::task::spawn_blocking(move || here(&pids)).await;
            read.unwrap_or_default()
        } else {
            let mut argv = ["sh", "-c", SCRIPT, "sh"].map(str::to_string).to_vec();
            argv.extend(pids.iter().map(u32::to_string));
            let output = host.run(&argv).await?;
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        Ok(self.take(&text, pids))
    }

    fn take(&mut self, text: &str, pids: &[u32]) -> Vitals {
        let now = ticks(text);
        let cpu = match (self.before, now) {
            (_, None) => Reading::failed("/proc/stat cannot be read"),
            (None, Some(_)) => Reading::default(),
            (Some((busy, all)), Some((busy_now, all_now))) => {
                let all = all_now.saturating_sub(all);
                let busy = busy_now.saturating_sub(busy);
                match all {
                    0 => Reading::default(),
                    all => Reading::Value(busy as f64 / all as f64),
                }
            }
        };
        self.before = now;
        let rss: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("VmRSS:"))
            .filter_map(kib)
            .collect();
        let server = match (pids.is_empty(), rss.is_empty()) {
            (true, _) => Reading::failed("its processes are not known"),
            (_, true) => Reading::failed("its processes cannot be read"),
            _ => Reading::Value(rss.iter().sum()),
        };
        let room = |total: &str, free: &str| {
            let found = field(text, total).zip(field(text, free));
            found.map_or_else(
                || Reading::failed("/proc/meminfo does not tell"),
                |(total, free)| {
                    Reading::Value(Room {
                        used: total.saturating_sub(free),
                        total,
                    })
                },
            )
        };
        Vitals {
            cpu,
            memory: room("MemTotal:", "MemAvailable:"),
            swap: room("SwapTotal:", "SwapFree:"),
            server,
            disk: disk(text).map_or_else(
                || Reading::failed("its file system does not tell"),
                Reading::Value,
            ),
        }
    }
}

/// What the script prints elsewhere, read without a program.
fn here(pids: &[u32]) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut text = read("/proc/stat").lines().next().unwrap_or("").to_string();
    text.push('\n');
    text.push_str(&read("/proc/meminfo"));
    for pid in pids {
        let status = read(&format!("/proc/{pid}/status"));
        for line in status.lines().filter(|line| line.starts_with("VmRSS:")) {
            let _ = writeln!(text, "{line}");
        }
    }
    let own = pids.first().map(|pid| format!("/proc/{pid}/cwd"));
    let of = |path: &str| rustix::fs::statvfs(Path::new(path)).ok();
    if let Some(fs) = own.and_then(|path| of(&path)).or_else(|| of("/")) {
        let kib = |blocks: u64| blocks.saturating_mul(fs.f_frsize) / 1024;
        let used = kib(fs.f_blocks.saturating_sub(fs.f_bfree));
        let _ = writeln!(
            text,
            "disk - {} {used} {} 0% /",
            kib(fs.f_blocks),
            kib(fs.f_bavail)
        );
    }
    text
}

/// Busy ticks and all, from `cpu  user nice system idle iowait irq softirq steal …`. Guests are counted in user and nice already.
fn ticks(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|word| word.parse().ok())
        .collect();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    let all: u64 = ticks.iter().sum();
    (ticks.len() >= 4).then_some((all - idle, all))
}

/// A figure of `/proc/meminfo` in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    kib(text.lines().find_map(|line| line.strip_prefix(name))?)
}

/// `  1234 kB`, in bytes.
fn kib(text: &str) -> Option<u64> {
    let number = text.trim().strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// `disk NAME 1024-BLOCKS USED AVAILABLE SHARE% PLACE`; the name may hold blanks.
fn disk(text: &str) -> Option<Room> {
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("disk "))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let share = words.iter().position(|word| {
        let digits = word.strip_suffix('%');
        digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
    })?;
    let number = |back: usize| -> Option<u64> {
        let word = words.get(share.checked_sub(back)?)?;
        word.parse::<u64>().ok()?.checked_mul(1024)
    };
    let (total, free) = (number(3)?, number(1)?);
    Some(Room {
        used: total.saturating_sub(free),
        total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;
    use crate::reading::Absent;

    const TEXT: &str = "cpu  100 0 50 800 50 0 0 0 7 0\nMemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n\
        SwapTotal:         0 kB\nSwapFree:          0 kB\nVmRSS:\t      20 kB\nVmRSS:\t      30 kB\n\
        disk //nas/my models 2000 1500 450 77% /mnt\n";

    #[test]
    fn every_figure_is_read_and_the_processors_from_the_second_look_on() {
        let mut watch = Watch::default();
        let first = watch.take(TEXT, &[1, 2]);
        assert_eq!(first.cpu, Reading::Absent(Absent::Pending));
        let room = |used: u64, total: u64| {
            Reading::Value(Room {
                used: used * 1024,
                total: total * 1024,
            })
        };
        assert_eq!(first.memory, room(600, 1000));
        assert_eq!(first.swap, room(0, 0));
        assert_eq!(first.server, Reading::Value(50 * 1024));
        assert_eq!(
            first.disk,
            room(1550, 2000),
            "what root alone may fill is used"
        );
        let later = TEXT.replace("100 0 50 800 50", "125 0 50 870 55");
        assert_eq!(watch.take(&later, &[]).cpu, Reading::Value(0.25));
    }

    #[test]
    fn what_is_not_there_says_why() {
        let nothing = Watch::default().take("", &[7]);
        for why in [
            nothing.cpu.absent(),
            nothing.memory.absent(),
            nothing.swap.absent(),
            nothing.server.absent(),
            nothing.disk.absent(),
        ] {
            assert!(matches!(why, Some(Absent::Failed(_))), "{nothing:?}");
        }
        let nobody = Watch::default().take(TEXT, &[]).server;
        assert_eq!(nobody, Reading::failed("its processes are not known"));
    }

    #[tokio::test]
    async fn this_machine_and_the_script_say_the_same() {
        let own = [std::process::id()];
        let here = Watch::default().look(&Local, &own).await.unwrap();
        let mut argv = ["sh", "-c", SCRIPT, "sh"].map(str::to_string).to_vec();
        argv.push(own[0].to_string());
        let printed = Local.run(&argv).await.unwrap().stdout;
        let script = Watch::default().take(&String::from_utf8(printed).unwrap(), &own);
        let total = |room: &Reading<Room>| room.known().map(|room| room.total);
        for (one, other) in [
            (&here.memory, &script.memory),
            (&here.swap, &script.swap),
            (&here.disk, &script.disk),
        ] {
            assert!(total(one).is_some());
            assert_eq!(total(one), total(other));
        }
        assert!(here.server.known().is_some_and(|bytes| *bytes > 1 << 20));
        assert!(script.server.known().is_some());
    }
}
