//! The older call for a card's memory, which the wrapper has only raw.
#![allow(unsafe_code)]

use crate::gpu::Memory;
use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use std::mem::MaybeUninit;

/// Memory by `nvmlDeviceGetMemoryInfo`: `used` has the driver's own share in it.
pub(super) fn read(device: &Device<'_>) -> Result<Memory, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    let mut memory = MaybeUninit::zeroed();
    // SAFETY: the symbol belongs to the library that gave the handle, and both live as long as `device`. The structure is the binding's
    // own for this very symbol, three integers, valid when zeroed; the call keeps no pointer to it.
    let memory = unsafe {
        nvml_try(call(device.handle(), memory.as_mut_ptr()))?;
        memory.assume_init()
    };
    Ok(Memory {
        total: memory.total,
        used: memory.used,
        free: memory.free,
        reserved: 0,
    })
}
