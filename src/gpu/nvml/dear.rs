//! Figures that take the driver long, or change seldom or never: read less often.

use super::card::reading;
use crate::gpu::{Ecc, NvLink, Pcie};
use crate::reading::{Absent, Reading};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, PcieUtilCounter, TemperatureThreshold,
};
use nvml_wrapper::error::NvmlError;

/// No card has more links.
const LINKS: u32 = 18;

/// What is read every few seconds. PCIe throughput alone blocks for 20 ms a direction while the driver counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Dear {
    pub(super) fan_pct: Reading<u32>,
    pub(super) pcie: Reading<Pcie>,
    pub(super) nvlink: Reading<NvLink>,
    pub(super) ecc: Reading<Ecc>,
}

impl Dear {
    pub(super) fn read(device: &Device<'_>, before: Option<&Dear>) -> Dear {
        Dear {
            fan_pct: again(before.map(|before| &before.fan_pct), || fan(device)),
            pcie: pcie(device),
            nvlink: again(before.map(|before| &before.nvlink), || nvlink(device)),
            ecc: again(before.map(|before| &before.ecc), || ecc(device)),
        }
    }
}

/// What is cheap and seldom another.
#[derive(Debug, Clone, Default)]
pub(super) struct Seldom {
    pub(super) power_limit_mw: Reading<u32>,
    pub(super) memory_mhz: Reading<u32>,
    pub(super) mig_mode: Reading<bool>,
}

impl Seldom {
    pub(super) fn read(device: &Device<'_>, before: Option<&Seldom>) -> Seldom {
        Seldom {
            power_limit_mw: reading(device.enforced_power_limit()),
            memory_mhz: reading(device.clock_info(Clock::Memory)),
            mig_mode: again(before.map(|before| &before.mig_mode), || {
                Ok(device.mig_mode()?.current == 1)
            }),
        }
    }
}

/// What is read once.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) slowdown_c: Reading<u32>,
    pub(super) shutdown_c: Reading<u32>,
}

impl Limits {
    pub(super) fn read(device: &Device<'_>) -> Limits {
        Limits {
            slowdown_c: reading(device.temperature_threshold(TemperatureThreshold::Slowdown)),
            shutdown_c: reading(device.temperature_threshold(TemperatureThreshold::Shutdown)),
        }
    }
}

/// Asks again, unless the card said that it has no such thing: fans and links do not grow.
fn again<T>(before: Option<&Reading<T>>, ask: impl FnOnce() -> Result<T, NvmlError>) -> Reading<T> {
    match before.and_then(Reading::absent) {
        Some(Absent::Unsupported) => Reading::unsupported(),
        _ => reading(ask()),
    }
}

/// The fastest fan. A driver that cannot count them has one.
fn fan(device: &Device<'_>) -> Result<u32, NvmlError> {
    match device.num_fans() {
        Ok(0) => return Err(NvmlError::NotSupported),
        Ok(count) => {
            let mut fastest = 0;
            for nth in 0..count {
                fastest = fastest.max(device.fan_speed(nth)?);
            }
            return Ok(fastest);
        }
        Err(error) if super::words::is_missing(&error) => {}
        Err(error) => return Err(error),
    }
    device.fan_speed(0)
}

fn pcie(device: &Device<'_>) -> Reading<Pcie> {
    let bytes = |counter| {
        let kib = reading(device.pcie_throughput(counter));
        kib.map(|kib| u64::from(kib) * 1024)
    };
    let pcie = Pcie {
        tx_bytes_s: bytes(PcieUtilCounter::Send),
        rx_bytes_s: bytes(PcieUtilCounter::Receive),
        generation: reading(device.current_pcie_link_gen()),
        width: reading(device.current_pcie_link_width()),
    };
    match (&pcie.tx_bytes_s, &pcie.generation) {
        (Reading::Absent(why), Reading::Absent(_)) => Reading::Absent(why.clone()),
        _ => Reading::Value(pcie),
    }
}

fn nvlink(device: &Device<'_>) -> Result<NvLink, NvmlError> {
    let mut found = NvLink {
        active: 0,
        links: 0,
    };
    for link in 0..LINKS {
        match device.link_wrapper_for(link).is_active() {
            Ok(active) => {
                found.links += 1;
                found.active += u32::from(active);
            }
            Err(error) if link == 0 => return Err(error),
            // It has fewer.
            Err(_) => break,
        }
    }
    Ok(found)
}

fn ecc(device: &Device<'_>) -> Result<Ecc, NvmlError> {
    let count = |kind| device.total_ecc_errors(kind, EccCounter::Volatile);
    Ok(Ecc {
        corrected: count(MemoryError::Corrected)?,
        uncorrected: count(MemoryError::Uncorrected)?,
    })
}
