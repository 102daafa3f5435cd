//! One card, figure by figure.

use super::{memory_v1, words};
use crate::clock::Now;
use crate::gpu::{Card, CardState, GpuProcess, Memory};
use crate::reading::{Absent, Reading};
use crate::units::clean;
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

/// What a card said before.
#[derive(Debug, Default)]
pub(super) struct Known {
    name: Option<String>,
    uuid: Option<String>,
    processes: Reading<Vec<GpuProcess>>,
    lost_since_unix_ms: Option<i64>,
}

impl Known {
    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "unknown card".into())
    }
}

/// Reads a card. The list of processes is dear: without `with_processes` the last one stands.
pub(super) fn read(
    device: &Device<'_>,
    index: u32,
    known: &mut Known,
    with_processes: bool,
    at: Now,
) -> Card {
    if known.name.is_none() {
        known.name = device.name().ok().map(|name| product(&name));
    }
    if known.uuid.is_none() {
        known.uuid = device.uuid().ok().map(|uuid| clean(&uuid));
    }
    let memory = reading(memory(device));
    if memory.absent() == Some(&Absent::Lost) {
        return unreadable(&NvmlError::GpuLost, index, known, at);
    }
    known.lost_since_unix_ms = None;
    if with_processes || known.processes.known().is_none() {
        known.processes = reading(processes(device));
    }
    Card {
        index,
        uuid: known.uuid.clone().unwrap_or_default(),
        name: known.name(),
        state: CardState::Ok,
        memory,
        busy_pct: reading(device.utilization_rates().map(|rates| rates.gpu)),
        temp_c: reading(device.temperature(TemperatureSensor::Gpu)),
        power_mw: reading(device.power_usage()),
        power_limit_mw: reading(device.enforced_power_limit()),
        processes: known.processes.clone(),
    }
}

/// A card that cannot be asked at all.
pub(super) fn unreadable(error: &NvmlError, index: u32, known: &mut Known, at: Now) -> Card {
    known.processes = Reading::default();
    let (state, why) = if matches!(error, NvmlError::GpuLost) {
        let since_unix_ms = *known.lost_since_unix_ms.get_or_insert(at.unix_ms);
        (CardState::Lost { since_unix_ms }, Absent::Lost)
    } else {
        (
            CardState::Unknown(words::card_fails(error)),
            words::absent(error),
        )
    };
    let uuid = known.uuid.clone().unwrap_or_default();
    without_figures(index, uuid, known.name(), state, &why)
}

/// A card of which nothing is known now but who it is.
pub(super) fn without_figures(
    index: u32,
    uuid: String,
    name: String,
    state: CardState,
    why: &Absent,
) -> Card {
    Card {
        index,
        uuid,
        name,
        state,
        memory: Reading::Absent(why.clone()),
        busy_pct: Reading::Absent(why.clone()),
        temp_c: Reading::Absent(why.clone()),
        power_mw: Reading::Absent(why.clone()),
        power_limit_mw: Reading::Absent(why.clone()),
        processes: Reading::Absent(why.clone()),
    }
}

/// `NVIDIA RTX A6000` is an RTX A6000.
fn product(name: &str) -> String {
    let name = clean(name);
    name.strip_prefix("NVIDIA ").unwrap_or(&name).to_string()
}

fn reading<T>(result: Result<T, NvmlError>) -> Reading<T> {
    match result {
        Ok(value) => Reading::Value(value),
        Err(error) => Reading::Absent(words::absent(&error)),
    }
}

/// Version 2 keeps the driver's share apart. Older drivers have version 1 only, which counts it as used.
fn memory(device: &Device<'_>) -> Result<Memory, NvmlError> {
    match device.memory_info() {
        Ok(memory) => Ok(Memory {
            total: memory.total,
            used: memory.used,
            free: memory.free,
            reserved: memory.reserved,
        }),
        Err(error) if words::is_missing(&error) => memory_v1::read(device),
        Err(error) => Err(error),
    }
}

/// All processes with a compute or graphics context, by process id; one that has both counts once.
fn processes(device: &Device<'_>) -> Result<Vec<GpuProcess>, NvmlError> {
    let mut found = newest(
        || device.running_compute_processes(),
        || device.running_compute_processes_v2(),
    )?;
    // Cards for computing alone do not know graphics.
    if let Ok(graphics) = newest(
        || device.running_graphics_processes(),
        || device.running_graphics_processes_v2(),
    ) {
        found.extend(graphics);
    }
    let mut processes: Vec<GpuProcess> = found
        .into_iter()
        .map(|process| GpuProcess {
            pid: process.pid,
            name: name(process.pid),
            used: match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Reading::Value(bytes),
                UsedGpuMemory::Unavailable => Reading::unsupported(),
            },
        })
        .collect();
    processes.sort_by_key(|process| {
        (
            process.pid,
            std::cmp::Reverse(process.used.known().copied()),
        )
    });
    processes.dedup_by_key(|process| process.pid);
    Ok(processes)
}

/// Version 3 of a list, else version 2.
fn newest(
    v3: impl Fn() -> Result<Vec<ProcessInfo>, NvmlError>,
    v2: impl Fn() -> Result<Vec<ProcessInfo>, NvmlError>,
) -> Result<Vec<ProcessInfo>, NvmlError> {
    match v3() {
        Err(error) if words::is_missing(&error) => v2(),
        other => other,
    }
}

fn name(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(clean(String::from_utf8_lossy(&name).trim_end()))
}
