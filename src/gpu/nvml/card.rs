//! One card, figure by figure.

use super::dear::{Dear, Limits, Seldom};
use super::{memory_v1, words};
use crate::clock::Now;
use crate::gpu::{Card, CardState, Detail, GpuProcess, Memory, Mig, Throttle, Xid, aged, hostmem};
use crate::reading::{Absent, Reading};
use crate::units::clean;
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use std::time::{Duration, Instant};

/// A card that has taken so long is not asked for what can wait: it would make all others old.
const PATIENCE: Duration = Duration::from_millis(500);

/// A card whose reading took longer than this is left alone for four times as long, so that the others stay new.
const SLOW_MS: u64 = 2_000;
/// But not longer than this.
const REST_MS: u64 = 8_000;

/// What a card said before.
#[derive(Debug, Default)]
pub(super) struct Known {
    name: Option<String>,
    uuid: Option<String>,
    processes: Reading<Vec<GpuProcess>>,
    lost_since_unix_ms: Option<i64>,
    limits: Option<Limits>,
    seldom: Option<Seldom>,
    dear: Option<Dear>,
    /// The newest critical error.
    pub(super) xid: Option<Xid>,
    instances: Vec<Known>,
    /// Of a slow card: what was read, when, and until when that stands.
    resting: Option<(Card, u64, u64)>,
}

impl Known {
    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "unknown card".into())
    }

    fn learn(&mut self, device: &Device<'_>) {
        if self.name.is_none() {
            self.name = device.name().ok().map(|name| product(&name));
        }
        if self.uuid.is_none() {
            self.uuid = device.uuid().ok().map(|uuid| clean(&uuid));
        }
    }
}

/// What is due at this reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    /// The list of processes: every second time. Else the last one stands.
    pub(super) processes: bool,
    /// What is dear or changes seldom: every fourth time.
    pub(super) dear: bool,
    /// Whether the driver reports the critical errors of this card.
    pub(super) xids: bool,
}

/// Reads a card. An error means that it cannot be asked at all.
pub(super) fn read(
    device: &Device<'_>,
    index: u32,
    known: &mut Known,
    due: Due,
    at: Now,
) -> Result<Card, NvmlError> {
    if let Some((card, read_ms, until_ms)) = &known.resting
        && at.mono_ms < *until_ms
    {
        let mut card = card.clone();
        aged::age(&mut card, at.mono_ms.saturating_sub(*read_ms));
        return Ok(card);
    }
    let began = Instant::now();
    known.learn(device);
    let (memory, host_memory) = memory(device);
    if memory.absent() == Some(&Absent::Lost) {
        return Err(NvmlError::GpuLost);
    }
    known.lost_since_unix_ms = None;
    let rates = reading(device.utilization_rates());
    let temp_c = reading(device.temperature(TemperatureSensor::Gpu));
    let power_mw = reading(device.power_usage());
    if due.dear || known.seldom.is_none() {
        known.seldom = Some(Seldom::read(device, known.seldom.as_ref()));
    }
    let seldom = known.seldom.clone().unwrap_or_default();
    let mut detail = Detail {
        memory_busy_pct: rates.clone().map(|rates| rates.memory),
        sm_mhz: reading(device.clock_info(Clock::SM)),
        memory_mhz: seldom.memory_mhz,
        mig_mode: seldom.mig_mode,
        throttle: reading(device.current_throttle_reasons())
            .map(|reasons| Throttle::from_bits(reasons.bits())),
        xid: if due.xids {
            Reading::Value(known.xid)
        } else {
            Reading::unsupported()
        },
        host_memory,
        ..Detail::default()
    };
    if due.processes || known.processes.known().is_none() {
        known.processes = reading(processes(device));
    }
    if began.elapsed() < PATIENCE {
        if due.dear || known.dear.is_none() {
            known.dear = Some(Dear::read(device, known.dear.as_ref()));
        }
        if known.limits.is_none() {
            known.limits = Some(Limits::read(device));
        }
    }
    if let Some(dear) = known.dear.clone() {
        detail.fan_pct = dear.fan_pct;
        detail.pcie = dear.pcie;
        detail.nvlink = dear.nvlink;
        detail.ecc = dear.ecc;
    }
    if let Some(limits) = known.limits.clone() {
        detail.slowdown_c = limits.slowdown_c;
        detail.shutdown_c = limits.shutdown_c;
    }
    let card = Card {
        index,
        uuid: known.uuid.clone().unwrap_or_default(),
        name: known.name(),
        state: CardState::Ok,
        memory,
        busy_pct: rates.map(|rates| rates.gpu),
        temp_c,
        power_mw,
        power_limit_mw: seldom.power_limit_mw,
        processes: known.processes.clone(),
        detail,
    };
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    known.resting = (took_ms > SLOW_MS).then(|| {
        let rest_ms = took_ms.saturating_mul(4).min(REST_MS);
        let until_ms = at.mono_ms.saturating_add(took_ms).saturating_add(rest_ms);
        (card.clone(), at.mono_ms, until_ms)
    });
    Ok(card)
}

/// The instances of a card that is cut into some. Memory and processes are an instance's own; the driver counts all else for the whole
/// card. The index is left to the caller.
pub(super) fn instances(
    device: &Device<'_>,
    card: &Card,
    known: &mut Known,
    due: Due,
) -> Vec<Card> {
    if card.detail.mig_mode.fresh() != Some(&true) {
        return Vec::new();
    }
    let most = device.mig_device_count().unwrap_or(0);
    let most_known = usize::try_from(most).unwrap_or(0);
    known.instances.resize_with(most_known, Known::default);
    let mut found = Vec::new();
    for (instance, known) in (0..most).zip(&mut known.instances) {
        // Numbers that are not in use have no device.
        let Ok(device) = device.mig_device_by_index(instance) else {
            *known = Known::default();
            continue;
        };
        known.learn(&device);
        if due.processes || known.processes.known().is_none() {
            known.processes = reading(processes(&device));
        }
        let mut one = Card::bare(
            0,
            known.uuid.clone().unwrap_or_default(),
            known.name(),
            CardState::Ok,
            &Absent::Unsupported,
        );
        one.memory = memory(&device).0;
        one.processes = known.processes.clone();
        one.detail.mig = Some(Mig {
            parent: card.index,
            instance,
        });
        found.push(one);
    }
    found
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
    known.seldom = None;
    known.dear = None;
    known.resting = None;
    let uuid = known.uuid.clone().unwrap_or_default();
    let mut card = Card::bare(index, uuid, known.name(), state, &why);
    if known.xid.is_some() {
        card.detail.xid = Reading::Value(known.xid);
    }
    card
}

/// `NVIDIA RTX A6000` is an RTX A6000.
fn product(name: &str) -> String {
    let name = clean(name);
    name.strip_prefix("NVIDIA ").unwrap_or(&name).to_string()
}

pub(super) fn reading<T>(result: Result<T, NvmlError>) -> Reading<T> {
    match result {
        Ok(value) => Reading::Value(value),
        Err(error) => Reading::Absent(words::absent(&error)),
    }
}

/// Version 2 keeps the driver's share apart. Older drivers have version 1 only, which counts it as used. A card without memory of its
/// own has neither: then that of the machine, and `true`.
fn memory(device: &Device<'_>) -> (Reading<Memory>, bool) {
    let read = match device.memory_info() {
        Ok(memory) => Ok(Memory {
            total: memory.total,
            used: memory.used,
            free: memory.free,
            reserved: memory.reserved,
        }),
        Err(error) if words::is_missing(&error) => memory_v1::read(device),
        Err(error) => Err(error),
    };
    match read {
        Err(NvmlError::NotSupported) => (hostmem::here().into(), true),
        other => (reading(other), false),
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
