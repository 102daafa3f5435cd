//! Cards as people read them.

use crate::gpu::{Card, GpuProcess, Snapshot, Trouble};
use crate::reading::Reading;
use crate::units::{clean, gib};

/// Two lines a card and one for each process that holds memory on it.
pub(super) fn table(seen: &Snapshot) -> String {
    let simulated = if seen.simulated { "SIMULATED  " } else { "" };
    let mut text = format!("{simulated}{}\n", clean(&seen.source));
    if seen.cards.is_empty() {
        text.push_str("no card\n");
    }
    let names = seen.cards.iter().map(|card| card.name.chars().count());
    let width = names.max().unwrap_or(0).min(32);
    for card in &seen.cards {
        text.push_str(&line(card, width));
        text.push_str(&rest(card));
        for process in card.processes.known().into_iter().flatten() {
            text.push_str(&holder(process));
        }
    }
    text
}

fn line(card: &Card, width: usize) -> String {
    let name: String = clean(&card.name).chars().take(width).collect();
    let power = match (card.power_mw.known(), card.power_limit_mw.known()) {
        (None, _) => "n/a W".to_string(),
        (Some(now), None) => format!("{} W", now / 1000),
        (Some(now), Some(most)) => format!("{}/{} W", now / 1000, most / 1000),
    };
    let memory = match card.memory.known() {
        None => format!("{:>21}", "n/a"),
        Some(memory) => format!(
            "{:>6}/{:>6} GiB free {:>6}",
            gib(memory.used),
            gib(memory.total),
            gib(memory.free)
        ),
    };
    let mut state: Vec<String> = card.troubles().iter().map(Trouble::words).collect();
    if state.is_empty() {
        state.push("ok".to_string());
    }
    format!(
        "{:>3}  {name:<width$}  busy {:>5}  {memory}  {:>6}  {power:>11}  {}\n",
        card.index,
        number(&card.busy_pct, " %"),
        number(&card.temp_c, " C"),
        clean(&state.join(", "))
    )
}

fn number(reading: &Reading<u32>, unit: &str) -> String {
    reading
        .known()
        .map_or_else(|| "n/a".to_string(), |value| format!("{value}{unit}"))
}

/// The figures that not every card has.
fn rest(card: &Card) -> String {
    let detail = &card.detail;
    let mut words = Vec::new();
    if let Some(mhz) = detail.sm_mhz.known() {
        words.push(format!("{mhz} MHz"));
    }
    if let Some(memory) = card.memory.known().filter(|memory| memory.reserved > 0) {
        words.push(format!("driver {} GiB", gib(memory.reserved)));
    }
    if let Some(limit) = detail.slowdown_c.known() {
        words.push(format!("slows down at {limit} C"));
    }
    if let Some(fan) = detail.fan_pct.known() {
        words.push(format!("fan {fan} %"));
    }
    if let Some(pcie) = detail.pcie.known() {
        let mut link = "PCIe".to_string();
        if let (Some(generation), Some(width)) = (pcie.generation.known(), pcie.width.known()) {
            link.push_str(&format!(" {generation}.0 x{width}"));
        }
        if let (Some(tx), Some(rx)) = (pcie.tx_bytes_s.known(), pcie.rx_bytes_s.known()) {
            let gb = |bytes: &u64| *bytes as f64 / 1e9;
            link.push_str(&format!(", {:.1} out {:.1} in GB/s", gb(tx), gb(rx)));
        }
        words.push(link);
    }
    if let Some(nvlink) = detail.nvlink.known() {
        words.push(format!("NVLink {} of {} up", nvlink.active, nvlink.links));
    }
    if let Some(ecc) = detail.ecc.known().filter(|ecc| ecc.corrected > 0) {
        words.push(format!("ECC {} corrected", ecc.corrected));
    }
    if detail.mig_mode.known() == Some(&true) {
        words.push("cut into instances (MIG)".to_string());
    }
    if let Some(mig) = &detail.mig {
        words.push(format!("instance {} of card {}", mig.instance, mig.parent));
    }
    if detail.host_memory {
        words.push("memory is the machine's".to_string());
    }
    if let Some(host) = &detail.host {
        words.push(format!("in {}", clean(host)));
    }
    match words.is_empty() {
        true => String::new(),
        false => format!("     {}\n", words.join("  ")),
    }
}

fn holder(process: &GpuProcess) -> String {
    let name = process.name.as_deref().map_or_else(
        || "not of this process namespace (a container's, or the host's)".to_string(),
        clean,
    );
    let used = process.used.known();
    let used = used.map_or_else(|| "n/a".to_string(), |bytes| format!("{} GiB", gib(*bytes)));
    format!("     pid {:>8}  {used:>9}  {name}\n", process.pid)
}
