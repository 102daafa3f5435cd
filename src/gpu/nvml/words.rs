//! The driver's errors in the operator's terms.

use crate::reading::Absent;
use crate::units::clean;
use nvml_wrapper::error::NvmlError;
use std::ffi::OsStr;

/// Why one figure is missing.
pub(super) fn absent(error: &NvmlError) -> Absent {
    match error {
        NvmlError::NotSupported => Absent::Unsupported,
        NvmlError::NoPermission => Absent::Denied,
        NvmlError::GpuLost => Absent::Lost,
        error if is_missing(error) => Absent::Unsupported,
        error => Absent::Failed(card_fails(error)),
    }
}

/// Whether this driver does not have the call, or not in the form that was asked for.
pub(super) fn is_missing(error: &NvmlError) -> bool {
    matches!(
        error,
        NvmlError::NotSupported
            | NvmlError::FunctionNotFound
            | NvmlError::FailedToLoadSymbol(_)
            | NvmlError::UnexpectedVariant(_)
    )
}

/// Why a card cannot be read.
pub(super) fn card_fails(error: &NvmlError) -> String {
    match error {
        NvmlError::ResetRequired => "the card needs a reset".to_string(),
        NvmlError::OperatingSystem => {
            "the operating system blocks the card (control groups)".to_string()
        }
        NvmlError::NoPermission => "no permission".to_string(),
        NvmlError::Unknown => "the driver reports an unknown error".to_string(),
        error => clean(&error.to_string()),
    }
}

/// Why the library could not be opened.
pub(super) fn no_driver(error: &NvmlError, library: &OsStr) -> String {
    let library = clean(&library.to_string_lossy());
    match error {
        NvmlError::LibloadingError(error) => {
            let why = clean(&error.to_string());
            if why.contains("No such file") {
                format!("no NVIDIA driver: {library} is not installed")
            } else {
                format!("no NVIDIA driver: {library} cannot be opened: {why}")
            }
        }
        NvmlError::FailedToLoadSymbol(_) => {
            format!("no NVIDIA driver: {library} is not the driver's library")
        }
        error => driver_gone(error),
    }
}

/// Why the driver does not serve us, or no more.
pub(super) fn driver_gone(error: &NvmlError) -> String {
    match error {
        NvmlError::DriverNotLoaded => {
            "the NVIDIA driver is installed and not loaded: load the kernel module nvidia, or reboot"
                .to_string()
        }
        NvmlError::LibRmVersionMismatch => {
            "the NVIDIA driver was updated and the old one still runs: reboot, or reload its kernel modules"
                .to_string()
        }
        NvmlError::NoPermission => {
            "the NVIDIA driver refuses us: no permission for /dev/nvidia*".to_string()
        }
        error => format!("the NVIDIA driver does not answer: {}", card_fails(error)),
    }
}
