//! Cards and processes from the rows of the two tables.

use super::csv::{Header, Row};
use crate::clock::Now;
use crate::gpu::{Card, CardState, Detail, Ecc, GpuProcess, Memory, Throttle};
use crate::reading::{Absent, Reading};

/// A card as one row of `--query-gpu` has it, without its processes. `at`: when it was read. `None`: the row names no card.
pub fn card(row: &Row<'_>, nth: u32, at: Now) -> Option<Card> {
    let index = match row.number(&["index"]) {
        Reading::Value(index) => index as u32,
        // A table without this column lists the cards in order.
        Reading::Absent(Absent::Unsupported) => nth,
        _ => return None,
    };
    let name = row.text(&["name", "gpu_name"]);
    let name = name.unwrap_or_else(|| "unknown card".to_string());
    let memory = memory(row);
    let temp = row.number(&["temperature.gpu", "temperature"]);
    let busy = row.number(&["utilization.gpu", "utilization"]);
    let state = match (memory.absent(), temp.absent()) {
        (Some(Absent::Lost), _) | (_, Some(Absent::Lost)) => CardState::Lost {
            since_unix_ms: at.unix_ms,
        },
        (Some(Absent::Failed(why)), Some(Absent::Failed(_))) => CardState::Unknown(why.clone()),
        _ => CardState::Ok,
    };
    Some(Card {
        index,
        uuid: row.text(&["uuid", "gpu_uuid"]).unwrap_or_default(),
        name: name.strip_prefix("NVIDIA ").unwrap_or(&name).to_string(),
        state,
        memory,
        busy_pct: busy.map(|pct| pct as u32),
        temp_c: temp.map(|degrees| degrees as u32),
        power_mw: milliwatts(row.number(&[
            "power.draw",
            "power.draw.instant",
            "power.draw.average",
        ])),
        power_limit_mw: milliwatts(row.number(&["enforced.power.limit", "power.limit"])),
        processes: Reading::default(),
        detail: detail(row),
    })
}

fn detail(row: &Row<'_>) -> Detail {
    let number = |names: &[&str]| row.number(names).map(|number| number as u32);
    let corrected = row.number(&["ecc.errors.corrected.volatile.total"]);
    let uncorrected = row.number(&["ecc.errors.uncorrected.volatile.total"]);
    let ecc = match (corrected, uncorrected) {
        (Reading::Value(corrected), Reading::Value(uncorrected)) => Reading::Value(Ecc {
            corrected: corrected as u64,
            uncorrected: uncorrected as u64,
        }),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why),
        (Reading::Stale { .. }, _) | (_, Reading::Stale { .. }) => Reading::default(),
    };
    Detail {
        memory_busy_pct: number(&["utilization.memory"]),
        sm_mhz: number(&["clocks.sm", "clocks.current.sm"]),
        memory_mhz: number(&["clocks.mem", "clocks.current.memory"]),
        throttle: row
            .bits(&[
                "clocks_throttle_reasons.active",
                "clocks_event_reasons.active",
            ])
            .map(Throttle::from_bits),
        fan_pct: number(&["fan.speed"]),
        ecc,
        ..Detail::without(&Absent::Unsupported)
    }
}

/// Total and used make a figure. What the two and the free leave over is the driver's own.
fn memory(row: &Row<'_>) -> Reading<Memory> {
    let total = row.bytes(&["memory.total"]);
    let used = row.bytes(&["memory.used"]);
    match (total, used) {
        (Reading::Value(total), Reading::Value(used)) => {
            let reserved = row.bytes(&["memory.reserved"]).known().copied();
            let free = row.bytes(&["memory.free"]).known().copied();
            let free = free.unwrap_or_else(|| {
                total
                    .saturating_sub(used)
                    .saturating_sub(reserved.unwrap_or(0))
            });
            Reading::Value(Memory {
                total,
                used,
                free,
                reserved: reserved
                    .unwrap_or_else(|| total.saturating_sub(used).saturating_sub(free)),
            })
        }
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why),
        (Reading::Stale { .. }, _) | (_, Reading::Stale { .. }) => Reading::default(),
    }
}

fn milliwatts(watts: Reading<f64>) -> Reading<u32> {
    watts.map(|watts| (watts * 1000.0).round() as u32)
}

/// A process of `--query-compute-apps`, and the card that it is on where the table says.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    pub uuid: Option<String>,
    pub process: GpuProcess,
}

/// All processes of the table. `None`: the text is no such table.
pub fn apps(text: &str) -> Option<Vec<App>> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = Header::parse(lines.next()?)?;
    let app = |line: &str| {
        let row = header.row(line)?;
        let Reading::Value(pid) = row.number(&["pid"]) else {
            return None;
        };
        let name = row.text(&["process_name", "process name", "name"]);
        // A path is as long as it likes; the program is what is known of it elsewhere.
        let name = name.map(|name| match name.rsplit_once('/') {
            Some((_, last)) if name.starts_with('/') && !last.is_empty() => last.to_string(),
            _ => name,
        });
        Some(App {
            uuid: row.text(&["gpu_uuid", "uuid"]),
            process: GpuProcess {
                pid: pid as u32,
                name,
                used: row.bytes(&["used_gpu_memory", "used_memory"]),
            },
        })
    };
    Some(lines.filter_map(app).collect())
}

/// Puts the processes on their cards. Where the table does not say which, they are on the only one; of several it is not known.
pub fn place(cards: &mut [Card], apps: &[App]) {
    let single = cards.len() == 1;
    let unknown = !single && apps.iter().any(|app| app.uuid.is_none());
    for card in cards.iter_mut().filter(|card| card.state == CardState::Ok) {
        let on_it = |app: &&App| match &app.uuid {
            Some(uuid) => *uuid == card.uuid,
            None => single,
        };
        card.processes = if unknown {
            Reading::failed("nvidia-smi does not say on which card a process is")
        } else {
            Reading::Value(
                apps.iter()
                    .filter(on_it)
                    .map(|app| app.process.clone())
                    .collect(),
            )
        };
    }
}
