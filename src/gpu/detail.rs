//! What a card says beyond memory, load, heat and power.

use crate::reading::Reading;
use serde::{Deserialize, Serialize};

/// The rarer figures of a card. Each stands for itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail {
    /// Share of time in which the card's memory was read or written, percent.
    pub memory_busy_pct: Reading<u32>,
    pub sm_mhz: Reading<u32>,
    pub memory_mhz: Reading<u32>,
    /// What holds the clocks down; empty: nothing does.
    pub throttle: Reading<Vec<Throttle>>,
    /// Where the card begins to slow down, degrees C.
    pub slowdown_c: Reading<u32>,
    /// Where it switches itself off, degrees C.
    pub shutdown_c: Reading<u32>,
    /// The fastest of its fans, percent.
    pub fan_pct: Reading<u32>,
    pub pcie: Reading<Pcie>,
    pub nvlink: Reading<NvLink>,
    pub ecc: Reading<Ecc>,
    /// The newest critical error that the driver reported.
    pub xid: Reading<Option<Xid>>,
    /// Whether the card is cut into instances.
    pub mig_mode: Reading<bool>,
    /// Set where this is not a card but an instance of one.
    pub mig: Option<Mig>,
    /// The card has no memory of its own: the figures are those of the machine's memory.
    pub host_memory: bool,
    /// The machine that it sits in, where a source sees several.
    pub host: Option<String>,
}

/// Why a card runs slower than it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Throttle {
    PowerCap,
    HardwareSlowdown,
    SyncBoost,
    Thermal,
    HardwareThermal,
    PowerBrake,
    ApplicationClocks,
    DisplayClocks,
}

/// The bits in which NVML, `nvidia-smi` and DCGM say it alike. 1 is an idle card, which nothing holds down.
const BITS: [(u64, Throttle); 8] = [
    (0x04, Throttle::PowerCap),
    (0x08, Throttle::HardwareSlowdown),
    (0x10, Throttle::SyncBoost),
    (0x20, Throttle::Thermal),
    (0x40, Throttle::HardwareThermal),
    (0x80, Throttle::PowerBrake),
    (0x02, Throttle::ApplicationClocks),
    (0x100, Throttle::DisplayClocks),
];

impl Throttle {
    /// All that the driver's bits say.
    pub fn from_bits(bits: u64) -> Vec<Throttle> {
        BITS.iter()
            .filter(|(bit, _)| bits & bit != 0)
            .map(|(_, reason)| *reason)
            .collect()
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Throttle::PowerCap => "power cap",
            Throttle::HardwareSlowdown => "hardware slowdown",
            Throttle::SyncBoost => "held by another card (sync boost)",
            Throttle::Thermal => "thermal",
            Throttle::HardwareThermal => "hardware thermal",
            Throttle::PowerBrake => "power brake",
            Throttle::ApplicationClocks => "application clocks",
            Throttle::DisplayClocks => "display clocks",
        }
    }

    /// As short as a column.
    pub fn word(self) -> &'static str {
        match self {
            Throttle::PowerCap => "POWER-CAP",
            Throttle::HardwareSlowdown => "HW-SLOWDOWN",
            Throttle::SyncBoost => "SYNC-BOOST",
            Throttle::Thermal => "THERMAL",
            Throttle::HardwareThermal => "HW-THERMAL",
            Throttle::PowerBrake => "POWER-BRAKE",
            Throttle::ApplicationClocks => "APP-CLOCKS",
            Throttle::DisplayClocks => "DISPLAY-CLOCKS",
        }
    }

    /// Whether somebody set it so, as against a trouble.
    pub fn is_setting(self) -> bool {
        matches!(self, Throttle::ApplicationClocks | Throttle::DisplayClocks)
    }
}

/// The way to the processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pcie {
    /// Bytes a second from the card to the machine.
    pub tx_bytes_s: Reading<u64>,
    /// Bytes a second from the machine to the card.
    pub rx_bytes_s: Reading<u64>,
    pub generation: Reading<u32>,
    pub width: Reading<u32>,
}

/// The ways to other cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvLink {
    /// Links that are up, of those that the card has.
    pub active: u32,
    pub links: u32,
}

/// Memory errors since the driver was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ecc {
    pub corrected: u64,
    pub uncorrected: u64,
}

/// A critical error by NVIDIA's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xid {
    pub code: u64,
    /// When it was seen.
    pub at_unix_ms: i64,
}

impl Xid {
    /// What the number means, for those that end a server or a card.
    pub fn words(self) -> Option<&'static str> {
        Some(match self.code {
            13 | 31 | 43 | 45 => "a program's fault",
            48 => "uncorrectable memory error",
            61 | 62 => "internal controller stopped",
            63 => "memory row remapped",
            64 => "memory row remapping failed",
            74 => "NVLink error",
            79 => "fell off the bus",
            92 => "many corrected memory errors",
            94 => "memory error, contained",
            95 => "memory error, not contained",
            119 | 120 => "the card's own processor does not answer",
            _ => return None,
        })
    }
}

/// An instance of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mig {
    /// Index of the card that it is a part of.
    pub parent: u32,
    /// Its number on that card, from 0.
    pub instance: u32,
}

impl Detail {
    /// Every figure missing for the same reason.
    pub fn without(why: &crate::reading::Absent) -> Detail {
        fn none<T>(why: &crate::reading::Absent) -> Reading<T> {
            Reading::Absent(why.clone())
        }
        Detail {
            memory_busy_pct: none(why),
            sm_mhz: none(why),
            memory_mhz: none(why),
            throttle: none(why),
            slowdown_c: none(why),
            shutdown_c: none(why),
            fan_pct: none(why),
            pcie: none(why),
            nvlink: none(why),
            ecc: none(why),
            xid: none(why),
            mig_mode: none(why),
            mig: None,
            host_memory: false,
            host: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_told_in_words_the_trouble_first() {
        let words = |bits| -> Vec<&str> {
            let found = Throttle::from_bits(bits);
            found.into_iter().map(Throttle::words).collect()
        };
        assert_eq!(words(0), [""; 0]);
        assert_eq!(words(1), [""; 0], "an idle card is not held down");
        assert_eq!(words(0x4), ["power cap"]);
        assert_eq!(
            words(0x1ff),
            [
                "power cap",
                "hardware slowdown",
                "held by another card (sync boost)",
                "thermal",
                "hardware thermal",
                "power brake",
                "application clocks",
                "display clocks"
            ]
        );
        assert_eq!(words(1 << 40), [""; 0], "a bit of a newer driver");
    }
}
