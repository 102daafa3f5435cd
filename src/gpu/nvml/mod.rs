//! NVIDIA cards through the driver's own library. It is opened at run time: without a driver, that is what the snapshot says.

mod card;
mod dear;
mod library;
mod memory_v1;
mod symbols;
mod words;

use super::{Card, CardState, Snapshot, Source, Xid};
use crate::clock::Now;
use crate::reading::Absent;
use nvml_wrapper::error::NvmlError;
use std::ffi::OsString;

/// Names another library than the system's, for a driver in an unusual place.
const LIBRARY_ENV: &str = "VRAMP_NVML_LIB";
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Between two attempts to open the library: first and longest, milliseconds.
const RETRY_MS: (u64, u64) = (2000, 60_000);

/// The cards of this machine's NVIDIA driver. Every figure stands for itself: a missing symbol, a right that we lack or a lost card
/// costs that figure or that card alone.
#[derive(Debug)]
pub struct Nvml {
    library: OsString,
    driver: Option<Driver>,
    /// The cards as last read.
    cards: Vec<Card>,
    /// Why there is no driver.
    fault: String,
    retry_at_ms: u64,
    retry_after_ms: u64,
}

/// The library, opened and greeted.
#[derive(Debug)]
struct Driver {
    library: library::Library,
    /// `NVML 580.95.05`.
    name: String,
    /// What the cards said once, by index.
    known: Vec<card::Known>,
    readings: u64,
}

impl Default for Nvml {
    fn default() -> Self {
        Self::new()
    }
}

impl Nvml {
    /// The system's library, or the one that `VRAMP_NVML_LIB` names. Nothing is opened before the first reading.
    pub fn new() -> Self {
        let named = std::env::var_os(LIBRARY_ENV).filter(|name| !name.is_empty());
        Self::with_library(named.unwrap_or_else(|| LIBRARY.into()))
    }

    /// A library by name or path.
    pub fn with_library(library: impl Into<OsString>) -> Self {
        Nvml {
            library: library.into(),
            driver: None,
            cards: Vec::new(),
            fault: String::new(),
            retry_at_ms: 0,
            retry_after_ms: RETRY_MS.0,
        }
    }

    /// Opens the library, unless that failed a moment ago.
    fn open(&mut self, at: Now) {
        if self.driver.is_some() || at.mono_ms < self.retry_at_ms {
            return;
        }
        match nvml_wrapper::Nvml::builder().lib_path(&self.library).init() {
            Ok(nvml) => {
                let version = nvml.sys_driver_version().unwrap_or_default();
                self.driver = Some(Driver {
                    library: library::Library::new(nvml),
                    name: format!("NVML {}", crate::units::clean(&version))
                        .trim_end()
                        .to_string(),
                    known: Vec::new(),
                    readings: 0,
                });
            }
            Err(error) => self.close(at, words::no_driver(&error, &self.library)),
        }
    }

    /// Lets the library go; it is opened again after a while. A driver that was reloaded wants that.
    fn close(&mut self, at: Now, fault: String) {
        self.driver = None;
        self.retry_at_ms = at.mono_ms.saturating_add(self.retry_after_ms);
        self.retry_after_ms = (self.retry_after_ms * 2).min(RETRY_MS.1);
        for card in &mut self.cards {
            let state = CardState::Unknown(fault.clone());
            *card = card.without_figures(state, &Absent::Failed(fault.clone()));
        }
        self.fault = fault;
    }
}

impl Source for Nvml {
    fn read(&mut self, at: Now) -> Snapshot {
        self.open(at);
        let (source, fault) = match self.driver.as_mut().map(|driver| driver.read(at)) {
            Some(Ok(cards)) => {
                self.retry_after_ms = RETRY_MS.0;
                self.cards = cards;
                let fault = self
                    .cards
                    .is_empty()
                    .then(|| "the NVIDIA driver runs and sees no card".to_string());
                let name = self.driver.as_ref().map(|driver| driver.name.clone());
                (name, fault)
            }
            Some(Err(error)) => {
                self.close(at, words::driver_gone(&error));
                (None, Some(self.fault.clone()))
            }
            None => (None, Some(self.fault.clone())),
        };
        Snapshot {
            at,
            cards: self.cards.clone(),
            source: source.unwrap_or_else(|| "NVML".to_string()),
            fault,
            simulated: false,
        }
    }
}

impl Driver {
    /// All cards. An error means that the library as a whole is of no more use.
    fn read(&mut self, at: Now) -> Result<Vec<Card>, NvmlError> {
        let count = self.library.nvml().device_count()?;
        // A card that is no longer counted is lost, not gone from the list.
        let before = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let total = count.max(before);
        self.known
            .resize_with(usize::try_from(total).unwrap_or(0), Default::default);
        for (index, code) in self.library.xids() {
            let known = usize::try_from(index).ok();
            if let Some(known) = known.and_then(|index| self.known.get_mut(index)) {
                let at_unix_ms = at.unix_ms;
                known.xid = Some(Xid { code, at_unix_ms });
            }
        }
        let readings = self.readings;
        self.readings += 1;
        let mut unknown = None;
        let mut cards = Vec::with_capacity(self.known.len());
        let mut instances = Vec::new();
        for (index, known) in (0_u32..).zip(&mut self.known) {
            let due = card::Due {
                processes: readings.is_multiple_of(2),
                dear: readings.is_multiple_of(4),
                xids: self.library.reports(index),
            };
            let read = if index < count {
                read(&mut self.library, index, known, due, at)
            } else {
                Err(NvmlError::GpuLost)
            };
            cards.push(match read {
                Ok((card, its_instances)) => {
                    instances.extend(its_instances);
                    card
                }
                Err(error) => {
                    self.library.doubt(index);
                    let card = card::unreadable(&error, index, known, at);
                    if matches!(error, NvmlError::Unknown | NvmlError::Uninitialized) {
                        unknown = Some(error);
                    }
                    card
                }
            });
        }
        // Instances are numbered after the cards, so that the cards keep the driver's numbers.
        for (index, mut instance) in (total..).zip(instances) {
            instance.index = index;
            cards.push(instance);
        }
        // In a container whose rights were renewed every card answers "unknown error" until the library is opened anew.
        match unknown {
            Some(error) if cards.iter().all(|card| card.state != CardState::Ok) => Err(error),
            _ => Ok(cards),
        }
    }
}

/// A card and its instances.
fn read(
    library: &mut library::Library,
    index: u32,
    known: &mut card::Known,
    due: card::Due,
    at: Now,
) -> Result<(Card, Vec<Card>), NvmlError> {
    let device = library.card(index)?;
    let card = card::read(device, index, known, due, at)?;
    let instances = card::instances(device, &card, known, due);
    if matches!(
        card.memory.absent(),
        Some(Absent::Denied | Absent::Failed(_))
    ) {
        // Is it this figure, or the card?
        library.doubt(index);
        library.card(index)?;
    }
    Ok((card, instances))
}
