//! Cards as programs read them, and what is broken in words.

use crate::gpu::{Card, CardState, GpuProcess, Snapshot, Trouble};
use crate::reading::{Absent, Reading};
use serde_json::{Value, json};

/// One object a card. What is not known is null; why stands in `reasons`.
pub(super) fn cards(seen: &Snapshot) -> Value {
    seen.cards.iter().map(|card| one(card, seen)).collect()
}

fn one(card: &Card, seen: &Snapshot) -> Value {
    let memory = card.memory.known();
    let mib = |bytes: u64| bytes >> 20;
    let detail = &card.detail;
    let pcie = detail.pcie.known();
    let bytes_s = |reading: &Reading<u64>| reading.known().copied();
    let nvlink = detail.nvlink.known();
    let ecc = detail.ecc.known();
    let throttle = detail.throttle.known().map(|reasons| {
        let words = reasons.iter().map(|reason| reason.words());
        words.collect::<Vec<_>>()
    });
    let processes = card.processes.known();
    json!({
        "index": card.index,
        "uuid": some(&card.uuid),
        "name": card.name,
        "state": state(card),
        "reasons": reasons(card),
        "total_mib": memory.map(|memory| mib(memory.total)),
        "used_mib": memory.map(|memory| mib(memory.used)),
        "free_mib": memory.map(|memory| mib(memory.free)),
        "reserved_mib": memory.map(|memory| mib(memory.reserved)),
        "util_pct": card.busy_pct.known(),
        "mem_util_pct": detail.memory_busy_pct.known(),
        "temp_c": card.temp_c.known(),
        "power_w": card.power_mw.known().map(watts),
        "power_limit_w": card.power_limit_mw.known().map(watts),
        "sm_mhz": detail.sm_mhz.known(),
        "throttle": throttle,
        "processes": processes.map(|listed| listed.iter().map(process).collect::<Vec<_>>()),
        "mem_mhz": detail.memory_mhz.known(),
        "temp_slowdown_c": detail.slowdown_c.known(),
        "temp_shutdown_c": detail.shutdown_c.known(),
        "fan_pct": detail.fan_pct.known(),
        "pcie_tx_bytes_s": pcie.and_then(|pcie| bytes_s(&pcie.tx_bytes_s)),
        "pcie_rx_bytes_s": pcie.and_then(|pcie| bytes_s(&pcie.rx_bytes_s)),
        "pcie_generation": pcie.and_then(|pcie| pcie.generation.known()),
        "pcie_width": pcie.and_then(|pcie| pcie.width.known()),
        "nvlink_active": nvlink.map(|nvlink| nvlink.active),
        "nvlink_links": nvlink.map(|nvlink| nvlink.links),
        "ecc_corrected": ecc.map(|ecc| ecc.corrected),
        "ecc_uncorrected": ecc.map(|ecc| ecc.uncorrected),
        "xid": detail.xid.known().copied().flatten().map(|xid| xid.code),
        "mig": detail.mig_mode.known(),
        "mig_parent": detail.mig.as_ref().map(|mig| mig.parent),
        "mig_instance": detail.mig.as_ref().map(|mig| mig.instance),
        "memory_of": match detail.host_memory {
            true => "host",
            false => "card",
        },
        "host": detail.host,
        "age_ms": age(card),
        "source": seen.source,
        "simulated": seen.simulated,
    })
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn watts(milli: &u32) -> f64 {
    f64::from(*milli) / 1000.0
}

fn process(process: &GpuProcess) -> Value {
    json!({
        "pid": process.pid,
        "name": process.name,
        "used_mib": process.used.known().map(|bytes| bytes >> 20),
        "local": process.is_local(),
    })
}

fn age(card: &Card) -> Option<u64> {
    match card.memory {
        Reading::Stale { age_ms, .. } => Some(age_ms),
        _ => None,
    }
}

/// `ok`, `stale` (with `age_ms`), `lost`, or `unknown`.
fn state(card: &Card) -> &'static str {
    match card.state {
        _ if age(card).is_some() => "stale",
        CardState::Ok => "ok",
        CardState::Lost { .. } => "lost",
        CardState::Unknown(_) => "unknown",
    }
}

/// Why the state is not `ok`, and why a figure is null.
fn reasons(card: &Card) -> Vec<String> {
    let mut reasons = troubles(card);
    if card.detail.host_memory {
        reasons.push("memory: the card has none of its own; the machine's is shown".to_string());
    }
    if card.state == CardState::Ok {
        reasons.extend(figures(card).into_iter().filter_map(|(name, why)| {
            let why = why?;
            Some(match (why, &card.detail.mig_mode) {
                (Absent::Unsupported, Reading::Value(true)) => {
                    format!("{name}: not supported while the card is cut into instances (MIG)")
                }
                (why, _) => format!("{name}: {why}"),
            })
        }));
    }
    reasons
}

fn figures(card: &Card) -> [(&'static str, Option<&Absent>); 8] {
    [
        ("memory", card.memory.absent()),
        ("utilisation", card.busy_pct.absent()),
        ("temperature", card.temp_c.absent()),
        ("power", card.power_mw.absent()),
        ("power limit", card.power_limit_mw.absent()),
        ("clock", card.detail.sm_mhz.absent()),
        ("throttling", card.detail.throttle.absent()),
        ("processes", card.processes.absent()),
    ]
}

/// What is wrong with a card itself. What slows it down stands for itself.
fn troubles(card: &Card) -> Vec<String> {
    card.troubles()
        .iter()
        .filter(|trouble| !matches!(trouble, Trouble::Slowed(_)))
        .map(Trouble::words)
        .collect()
}

/// All that does not work, a line each. A figure that a card does not have is nothing broken.
pub(super) fn broken(seen: &Snapshot) -> Vec<String> {
    let mut broken: Vec<String> = seen.fault.iter().cloned().collect();
    for card in &seen.cards {
        let who = format!("card {} ({})", card.index, card.name);
        let troubles = troubles(card).into_iter();
        broken.extend(
            troubles
                .filter(|trouble| Some(trouble) != seen.fault.as_ref())
                .map(|trouble| format!("{who}: {trouble}")),
        );
        if card.state == CardState::Ok {
            let failed = figures(card)
                .into_iter()
                .filter_map(|(name, why)| match why? {
                    Absent::Unsupported | Absent::Pending => None,
                    why => Some(format!("{who}: {name}: {why}")),
                });
            broken.extend(failed);
        }
    }
    broken
}
