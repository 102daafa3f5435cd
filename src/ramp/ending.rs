//! How a server ended, from all who know: its exit code, the service's manager, the kernel.

use super::run::Run;
use super::{cards, failure};
use crate::engine::start::Known;
use crate::host::Host;
use crate::service::ProcessId;
use crate::units::clean;
use std::time::Duration;

/// How long the kernel's log may take to be read.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clock ticks a second, as Linux shows them to programs.
const TICKS: f64 = 100.0;
/// The kernel's log and the start times of processes are told by clocks that may differ by so much, seconds.
const SLACK_S: f64 = 2.0;

impl Run<'_> {
    /// How the process ended that was `id`, in words and for the judgement.
    pub(super) async fn ending(
        &self,
        id: Option<&ProcessId>,
        exit: Option<i32>,
    ) -> (String, Known) {
        let mut result = self.deps.service.how_it_ended().await;
        let for_memory = result.as_deref() == Some("oom-kill");
        let mut kernel = None;
        if let Some(id) = id
            && (for_memory || matches!(exit, None | Some(-9 | 137)))
        {
            let log = kernel_log(self.deps.host.as_ref()).await;
            kernel = log.and_then(|log| killed_for_memory(&log, id, for_memory));
        }
        if kernel.is_some() {
            result = Some("oom-kill".to_string());
        }
        let words = match &kernel {
            Some(line) if line.contains("emory cgroup") => {
                "the kernel killed the server at the memory limit of its control group".to_string()
            }
            Some(_) => {
                "the kernel killed the server because the host's memory was full".to_string()
            }
            None => failure::ending_words(exit, result.as_deref()),
        };
        let known = Known {
            exit: Some(exit),
            result,
            kernel,
            cards: cards::loads(&self.deps.gpus.borrow(), &self.deps.cards),
            ..Known::default()
        };
        (words, known)
    }
}

/// What the kernel has logged; `None` where this user may not read it.
async fn kernel_log(host: &dyn Host) -> Option<String> {
    let journal = "journalctl --dmesg --quiet --no-pager --output=short-monotonic --lines=1000";
    for command in ["dmesg", journal] {
        let argv: Vec<String> = command.split(' ').map(str::to_string).collect();
        let run = tokio::time::timeout(PATIENCE, host.run(&argv));
        if let Ok(Ok(output)) = run.await
            && output.code == Some(0)
            && !output.stdout.is_empty()
        {
            return Some(String::from_utf8_lossy(&output.stdout).into_owned());
        }
    }
    None
}

/// The last line by which the kernel says that it killed the process for want of memory; with `any`, or another process since that one
/// was started.
fn killed_for_memory(log: &str, id: &ProcessId, any: bool) -> Option<String> {
    let started = id.start_ticks as f64 / TICKS;
    let line = log.lines().rev().find(|line| {
        killed(line).is_some_and(|(at, pid)| at + SLACK_S >= started && (any || pid == id.pid))
    })?;
    Some(clean(line.trim()))
}

/// When (seconds since boot) and whom the kernel killed for want of memory:
/// `[ 4711.5] Out of memory: Killed process 4242 (python3) total-vm:…`.
fn killed(line: &str) -> Option<(f64, u32)> {
    let (_, rest) = line.split_once('[')?;
    let (at, rest) = rest.split_once(']')?;
    let rest = rest.to_ascii_lowercase();
    let (_, rest) = rest.split_once("out of memory")?;
    let (_, rest) = rest.split_once("process ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((at.trim().parse().ok()?, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "[   90.000001] Out of memory: Killed process 4242 (python3) total-vm:1kB
[  100.100000] python3 invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0
[  100.200000] Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, UID:0
[  100.300000] host kernel: Out of memory: Kill process 77 (worker) score 900 or sacrifice child
[  100.400000] oom_reaper: reaped process 77 (worker), now anon-rss:0kB
";

    fn id(pid: u32, start_ticks: u64) -> ProcessId {
        ProcessId {
            pid,
            start_ticks,
            boot_id: String::new(),
        }
    }

    #[test]
    fn the_kernel_names_whom_it_killed_since_the_start() {
        let found = |pid, start, any| killed_for_memory(LOG, &id(pid, start), any);
        assert!(found(4242, 9_500, false).is_some_and(|line| line.contains("Memory cgroup")));
        // Another one of before had the same number.
        assert_eq!(found(4242, 10_500, false), None);
        assert_eq!(found(5, 9_500, false), None);
        // The manager says that something of the service was killed.
        assert!(found(5, 9_500, true).is_some_and(|line| line.contains("77 (worker)")));
        assert_eq!(found(5, 10_500, true), None);
    }
}
