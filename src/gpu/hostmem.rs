//! The machine's own memory, for cards that share it (GB10, Jetson and others).

use super::Memory;

/// What `/proc/meminfo` says: used is what programs cannot get any more without swapping.
pub(super) fn parse(meminfo: &str) -> Option<Memory> {
    let kib = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let total = kib("MemTotal:")?.saturating_mul(1024);
    let free = kib("MemAvailable:")?.saturating_mul(1024).min(total);
    Some(Memory {
        total,
        used: total - free,
        free,
        reserved: 0,
    })
}

/// That of this machine.
pub(super) fn here() -> Option<Memory> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_can_still_get_is_free() {
        let text = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n";
        let memory = parse(text).unwrap();
        assert_eq!(
            (memory.total, memory.used, memory.free, memory.reserved),
            (1_024_000, 614_400, 409_600, 0)
        );
        assert_eq!(parse("MemTotal: 1000 kB\n"), None);
        assert_eq!(parse("MemTotal: x kB\nMemAvailable: 1 kB\n"), None);
    }
}
