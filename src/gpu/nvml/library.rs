//! The opened library with the events that it reports: a set of events borrows the library, and both are kept together here.
#![allow(unsafe_code)]

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::event::EventSet;
use nvml_wrapper::{Device, Nvml};
use std::ptr::NonNull;

/// At most so many errors are taken note of at one reading; the rest at the next.
const AT_ONCE: usize = 32;

/// The library, opened and greeted.
#[derive(Debug)]
pub(super) struct Library {
    nvml: NonNull<Nvml>,
    events: Option<EventSet<'static>>,
    /// The cards' handles, by index, while nothing speaks against them: they are good until the library is closed.
    cards: Vec<Option<Device<'static>>>,
    /// The cards whose errors are reported: handle and index.
    watched: Vec<(usize, u32)>,
}

// SAFETY: the pointer is the only one to a value that may itself be sent and shared, and the set of events may be sent.
unsafe impl Send for Library {}

impl Library {
    pub(super) fn new(nvml: Nvml) -> Library {
        let mut library = Library {
            nvml: NonNull::from(Box::leak(Box::new(nvml))),
            events: None,
            cards: Vec::new(),
            watched: Vec::new(),
        };
        library.watch();
        library
    }

    pub(super) fn nvml(&self) -> &Nvml {
        // SAFETY: the value was leaked in `new` and is freed in `drop` alone; nobody has it mutably in between.
        unsafe { self.nvml.as_ref() }
    }

    /// A card, by the handle that it had before.
    pub(super) fn card(&mut self, index: u32) -> Result<&Device<'_>, NvmlError> {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if self.cards.len() <= at {
            self.cards.resize_with(at.saturating_add(1), || None);
        }
        // SAFETY: as in `nvml`. The handles go no further than this call's borrow.
        let nvml: &'static Nvml = unsafe { self.nvml.as_ref() };
        match self.cards.get_mut(at) {
            Some(Some(card)) => Ok(card),
            Some(none) => Ok(none.insert(nvml.device_by_index(index)?)),
            None => Err(NvmlError::InvalidArg),
        }
    }

    /// The card's handle is asked for anew next time: the driver looks at a card then, and refuses one that is not well.
    pub(super) fn doubt(&mut self, index: u32) {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(card) = self.cards.get_mut(at) {
            *card = None;
        }
    }

    /// Asks for the critical errors of every card that can report them. One that cannot costs the others nothing.
    fn watch(&mut self) {
        // SAFETY: as in `nvml`. The set that borrows it is dropped before it, see `drop`.
        let nvml: &'static Nvml = unsafe { self.nvml.as_ref() };
        let wanted = EventTypes::CRITICAL_XID_ERROR;
        let count = nvml.device_count().unwrap_or(0);
        let mut able: Vec<u32> = (0..count)
            .filter(|index| {
                let device = nvml.device_by_index(*index);
                let types = device.and_then(|device| device.supported_event_types());
                types.is_ok_and(|types| types.contains(wanted))
            })
            .collect();
        // A card that refuses in spite of its word takes the whole set with it: then another try without that card.
        while !able.is_empty() {
            let mut set = nvml.create_event_set().ok();
            if set.is_none() {
                return;
            }
            let mut watched = Vec::new();
            let mut refused = None;
            for (at, index) in able.iter().enumerate() {
                let device = nvml.device_by_index(*index).ok();
                set = device.zip(set.take()).and_then(|(device, set)| {
                    watched.push((handle(&device), *index));
                    device.register_events(wanted, set).ok()
                });
                if set.is_none() {
                    refused = Some(at);
                    break;
                }
            }
            match refused {
                Some(at) => {
                    able.remove(at);
                }
                None => {
                    self.events = set;
                    self.watched = watched;
                    return;
                }
            }
        }
    }

    /// Whether the errors of this card are reported.
    pub(super) fn reports(&self, index: u32) -> bool {
        self.watched.iter().any(|(_, watched)| *watched == index)
    }

    /// The critical errors since the last call: index of the card and number. Waits for nothing.
    pub(super) fn xids(&self) -> Vec<(u32, u64)> {
        let Some(events) = &self.events else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for _ in 0..AT_ONCE {
            match events.wait(0) {
                Ok(event) => {
                    let handle = handle(&event.device);
                    let card = self.watched.iter().find(|(known, _)| *known == handle);
                    if let (Some((_, index)), Some(XidError::Value(code))) =
                        (card, event.event_data)
                    {
                        found.push((*index, code));
                    }
                }
                // A lost card makes the call fail while others may still have something to say.
                Err(NvmlError::GpuLost) => {}
                Err(_) => break,
            }
        }
        found
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        self.events = None;
        self.cards.clear();
        // SAFETY: leaked in `new`; what borrowed it is gone.
        drop(unsafe { Box::from_raw(self.nvml.as_ptr()) });
    }
}

/// A card's handle as a number, to know it again.
fn handle(device: &Device<'_>) -> usize {
    // SAFETY: the handle is compared and never used.
    unsafe { device.handle() as usize }
}
