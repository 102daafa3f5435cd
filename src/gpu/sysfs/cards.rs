//! Cards from what the script printed.

use crate::gpu::{Card, CardState, Detail, GpuProcess, Memory, Pcie};
use crate::reading::{Absent, Reading};
use crate::units::clean;
use std::collections::{BTreeMap, HashMap};

/// The files of one card.
#[derive(Debug, Default)]
struct Files<'a> {
    values: HashMap<&'a str, &'a str>,
    faults: HashMap<&'a str, &'a str>,
}

/// A process of ROCm's list: the card's own number there, process and bytes.
struct Listed<'a> {
    node: &'a str,
    process: GpuProcess,
}

/// All cards in the order of their numbers in `/sys/class/drm`; ROCm counts them alike, without the numbers that others have.
pub(super) fn cards(text: &str) -> Vec<Card> {
    let mut found: BTreeMap<u32, Files<'_>> = BTreeMap::new();
    let mut nodes: HashMap<&str, &str> = HashMap::new();
    let mut listed = Vec::new();
    for line in text.lines() {
        let Some((who, rest)) = line.split_once(' ') else {
            continue;
        };
        if who == "kfd" {
            match rest.split_once('=') {
                Some(("node", node)) => {
                    if let Some((id, minor)) = node.split_once(' ') {
                        nodes.insert(minor, id);
                    }
                }
                Some(("process", process)) => listed.extend(process_of(process)),
                _ => {}
            }
            continue;
        }
        let number = who.strip_prefix("card").and_then(|n| n.parse().ok());
        let (Some(number), Some(at)) = (number, rest.find(['=', '!'])) else {
            continue;
        };
        let files = found.entry(number).or_default();
        let (key, value) = rest.split_at(at);
        match value.split_at(1) {
            ("=", value) => files.values.insert(key, value.trim()),
            (_, why) => files.faults.insert(key, why),
        };
    }
    let rocm = !nodes.is_empty();
    (0..)
        .zip(found.values())
        .map(|(index, files)| {
            let mut card = card(index, files);
            let render = files.values.get("render");
            let node = render.and_then(|minor| nodes.get(minor));
            card.processes = match (node, rocm, &card.state) {
                (Some(node), _, CardState::Ok) => {
                    let on_it = listed.iter().filter(|one| one.node == *node);
                    Reading::Value(on_it.map(|one| one.process.clone()).collect())
                }
                _ => Reading::unsupported(),
            };
            card
        })
        .collect()
}

/// `PID NODE BYTES NAME`.
fn process_of(text: &str) -> Option<Listed<'_>> {
    let mut words = text.splitn(4, ' ');
    let pid = words.next()?.parse().ok()?;
    let node = words.next()?;
    let bytes: u64 = words.next()?.parse().ok()?;
    let name = words.next().map(str::trim).filter(|name| !name.is_empty());
    // Every process of ROCm is listed on every card; one that holds nothing is not on it.
    (bytes > 0).then(|| Listed {
        node,
        process: GpuProcess {
            pid,
            name: name.map(clean),
            used: Reading::Value(bytes),
        },
    })
}

impl Files<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.values
            .get(key)
            .copied()
            .filter(|text| !text.is_empty())
    }

    fn number(&self, key: &str) -> Reading<u64> {
        if let Some(text) = self.text(key) {
            return match text.parse() {
                Ok(number) => Reading::Value(number),
                Err(_) => Reading::failed(format!("{key} says {:?}", clean(text))),
            };
        }
        match self.faults.get(key) {
            Some(&"denied") => Reading::Absent(Absent::Denied),
            Some(_) => Reading::failed(format!("{key} cannot be read")),
            None => Reading::unsupported(),
        }
    }

    /// The first of these files that has a number; else why the first has none.
    fn first(&self, keys: &[&str]) -> Reading<u64> {
        let mut all = keys.iter().map(|key| self.number(key));
        let first = all.next().unwrap_or_default();
        match first {
            Reading::Value(_) => first,
            _ => all.find(|one| one.fresh().is_some()).unwrap_or(first),
        }
    }
}

fn card(index: u32, files: &Files<'_>) -> Card {
    let name = match (files.text("name"), files.text("device")) {
        (Some(name), _) => clean(name),
        (None, Some(device)) => format!("AMD {}", clean(device)),
        (None, None) => "AMD card".to_string(),
    };
    let name = name.strip_prefix("AMD ").map_or(name.clone(), |short| {
        // `AMD 0x74a1` has nothing else that says who made it.
        if short.starts_with("0x") {
            name.clone()
        } else {
            short.to_string()
        }
    });
    // As ROCm names it in ROCR_VISIBLE_DEVICES.
    let uuid = files.text("uuid").map(|id| {
        let id = clean(id);
        format!("GPU-{}", id.strip_prefix("0x").unwrap_or(&id))
    });
    let uuid = uuid.unwrap_or_default();
    if files.text("power_state") == Some("suspended") {
        let asleep = "asleep; it is not woken for a reading".to_string();
        return Card::bare(
            index,
            uuid,
            name,
            CardState::Unknown(asleep.clone()),
            &Absent::Failed(asleep),
        );
    }
    let milli = |key: Reading<u64>| key.map(|micro| (micro / 1000) as u32);
    let degrees = |keys: &[&str]| files.first(keys).map(|milli| (milli / 1000) as u32);
    let mhz = |key: &str| files.number(key).map(|hz| (hz / 1_000_000) as u32);
    let percent = |key: &str| files.number(key).map(|pct| pct as u32);
    Card {
        index,
        uuid,
        name,
        state: CardState::Ok,
        memory: memory(files),
        busy_pct: percent("gpu_busy_percent"),
        // Cards for computing have no sensor at the edge, only the one at the junction.
        temp_c: degrees(&["temp1_input", "temp2_input"]),
        power_mw: milli(files.first(&["power1_average", "power1_input"])),
        power_limit_mw: milli(files.number("power1_cap")),
        processes: Reading::default(),
        detail: Detail {
            memory_busy_pct: percent("mem_busy_percent"),
            sm_mhz: mhz("freq1_input"),
            memory_mhz: mhz("freq2_input"),
            slowdown_c: degrees(&["temp1_crit", "temp2_crit"]),
            shutdown_c: degrees(&["temp1_emergency", "temp2_emergency"]),
            fan_pct: fan(files),
            pcie: pcie(files),
            ..Detail::without(&Absent::Unsupported)
        },
    }
}

fn memory(files: &Files<'_>) -> Reading<Memory> {
    let total = files.number("mem_info_vram_total");
    match (total, files.number("mem_info_vram_used")) {
        (Reading::Value(total), Reading::Value(used)) => Reading::Value(Memory {
            total,
            used,
            free: total.saturating_sub(used),
            reserved: 0,
        }),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why),
        _ => Reading::default(),
    }
}

/// By its turns where both are known, else by what drives it, of 255.
fn fan(files: &Files<'_>) -> Reading<u32> {
    match (files.number("fan1_input"), files.number("fan1_max")) {
        (Reading::Value(now), Reading::Value(most)) if most > 0 => {
            Reading::Value((now.saturating_mul(100) / most) as u32)
        }
        _ => files.number("pwm1").map(|part| (part * 100 / 255) as u32),
    }
}

/// `16.0 GT/s PCIe` is generation 4; each doubles the one before.
fn pcie(files: &Files<'_>) -> Reading<Pcie> {
    let speed = files.text("current_link_speed");
    let speed = speed.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    let generation = speed.and_then(|speed| {
        let known = [
            (2.5, 1),
            (5.0, 2),
            (8.0, 3),
            (16.0, 4),
            (32.0, 5),
            (64.0, 6),
        ];
        known
            .into_iter()
            .find(|(of, _)| *of == speed)
            .map(|(_, number)| number)
    });
    if generation.is_none() {
        return Reading::unsupported();
    }
    Reading::Value(Pcie {
        tx_bytes_s: Reading::unsupported(),
        rx_bytes_s: Reading::unsupported(),
        generation: generation.into(),
        width: files.number("current_link_width").map(|width| width as u32),
    })
}
