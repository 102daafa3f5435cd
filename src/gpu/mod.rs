//! Sources of GPU readings and what they read.

mod aged;
mod blocking;
mod choice;
mod detail;
mod exporter;
mod hostmem;
pub mod nvml;
pub mod sim;
pub mod smi;
pub mod sysfs;
mod tenant;
mod trouble;
pub mod watch;

pub use choice::{Choice, open};
pub use detail::{Detail, Ecc, Mig, NvLink, Pcie, Throttle, Xid};
pub use exporter::Exporter;
pub use tenant::{By, Held, ORDER, Owned, Tenant, owned};
pub use trouble::Trouble;

use crate::clock::Now;
use crate::host::Host;
use crate::reading::{Absent, Reading};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Memory of one card in bytes. `used` leaves out what the driver keeps for itself (`reserved`), as `nvidia-smi` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub total: u64,
    pub used: u64,
    pub free: u64,
    /// The driver's own share; 0 where the driver is too old to say.
    pub reserved: u64,
}

/// A process that holds memory on a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    pub pid: u32,
    /// Program name, if /proc tells it. Unknown for one of another process namespace: its number means nothing here.
    pub name: Option<String>,
    /// Bytes on this card; the driver may not say.
    pub used: Reading<u64>,
}

impl GpuProcess {
    /// Whether the number is one of the process namespace that is looked at. A container's view of the cards lists the processes of
    /// the whole host by the host's numbers.
    pub fn is_local(&self) -> bool {
        self.name.is_some()
    }
}

/// Whether a card can be read at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CardState {
    Ok,
    /// The card fell off the bus or answers no more; since when.
    Lost {
        since_unix_ms: i64,
    },
    /// Readings fail for another reason, in words.
    Unknown(String),
}

/// One card at one moment. Every figure stands for itself: one that fails costs only itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Index as the driver counts (`nvidia-smi`'s number).
    pub index: u32,
    /// The driver's name for it for ever, `GPU-...`; empty where unknown.
    pub uuid: String,
    /// Product name without the vendor, `RTX A6000`.
    pub name: String,
    pub state: CardState,
    pub memory: Reading<Memory>,
    /// Share of time in which some kernel ran, percent. Not load.
    pub busy_pct: Reading<u32>,
    pub temp_c: Reading<u32>,
    pub power_mw: Reading<u32>,
    pub power_limit_mw: Reading<u32>,
    pub processes: Reading<Vec<GpuProcess>>,
    #[serde(default)]
    pub detail: Detail,
}

impl Card {
    /// A card of which nothing is known but who it is.
    pub fn bare(index: u32, uuid: String, name: String, state: CardState, why: &Absent) -> Card {
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
            detail: Detail::without(why),
        }
    }

    /// The same card without its figures: what it is and where it sits stays.
    pub fn without_figures(&self, state: CardState, why: &Absent) -> Card {
        let (uuid, name) = (self.uuid.clone(), self.name.clone());
        let mut card = Card::bare(self.index, uuid, name, state, why);
        card.detail.mig = self.detail.mig.clone();
        card.detail.host = self.detail.host.clone();
        card
    }
}

/// All cards of the rig at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    pub at: Now,
    pub cards: Vec<Card>,
    /// Where the figures come from, in words: `NVML 550.54`, `simulated`.
    pub source: String,
    /// Why there is no card to read, in words (`no NVIDIA driver: libnvidia-ml.so.1 is not installed`). A stated fact, not an error.
    pub fault: Option<String>,
    pub simulated: bool,
}

impl Snapshot {
    /// The card with the least free memory among `wanted` (all if empty), with its free bytes. Cards without a fresh figure do not
    /// count.
    pub fn tightest<'a>(&'a self, wanted: &'a [u32]) -> Option<(&'a Card, u64)> {
        self.chosen(wanted)
            .filter_map(|card| card.memory.fresh().map(|memory| (card, memory.free)))
            .min_by_key(|(_, free)| *free)
    }

    /// The cards named by index, all if none is named.
    pub fn chosen<'a>(&'a self, wanted: &'a [u32]) -> impl Iterator<Item = &'a Card> {
        self.cards
            .iter()
            .filter(move |card| wanted.is_empty() || wanted.contains(&card.index))
    }
}

/// Where readings come from. Calls may block for seconds: a source lives on its own OS thread, see [`watch`].
pub trait Source: Send {
    /// Reads all cards once. Never fails as a whole: what is wrong stands in the snapshot.
    fn read(&mut self, at: Now) -> Snapshot;
}

/// The source that fits a host: the driver's own library here, `nvidia-smi` on another machine; where neither has a card, the
/// kernel's word on AMD cards.
pub fn source_on(host: &Arc<dyn Host>) -> Box<dyn Source> {
    let nvidia: Box<dyn Source> = if host.is_local() {
        Box::new(nvml::Nvml::new())
    } else {
        Box::new(smi::Smi::new(Arc::clone(host)))
    };
    let amd = Box::new(sysfs::Sysfs::new(Arc::clone(host)));
    Box::new(choice::FirstWithCards::new(vec![nvidia, amd]))
}
