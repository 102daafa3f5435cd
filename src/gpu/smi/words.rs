//! Why `nvidia-smi` gives no figures, in the operator's terms.

use crate::units::clean;

/// From its exit code and what it printed. NVIDIA's own codes: 4 no permission, 6 no device, 9 driver not loaded, 12 library not
/// found, 14 info ROM, 15 card lost, 17 blocked by the system, 18 driver and library differ, 255 other.
pub fn fault(code: Option<i32>, text: &str) -> String {
    let has = |part: &str| text.contains(part);
    if has("version mismatch") || code == Some(18) {
        return "the NVIDIA driver was updated and the old one still runs (in a container: its library is another than the host's driver): reboot the host, reload the kernel modules, or install the matching library"
            .to_string();
    }
    if has("couldn't communicate with the NVIDIA driver")
        || has("Driver Not Loaded")
        || code == Some(9)
    {
        return "the NVIDIA driver is installed and not loaded: load the kernel module nvidia, or reboot"
            .to_string();
    }
    if has("couldn't find libnvidia-ml") || code == Some(12) {
        return "no NVIDIA driver: nvidia-smi does not find libnvidia-ml.so".to_string();
    }
    if has("Insufficient Permissions") || code == Some(4) {
        return "the NVIDIA driver refuses us: no permission for /dev/nvidia*".to_string();
    }
    if has("No devices were found") || code == Some(6) {
        return "the NVIDIA driver runs and sees no card".to_string();
    }
    if has("GPU is lost") || code == Some(15) {
        return "a card is lost (it fell off the bus): reboot the host to recover it".to_string();
    }
    if has("GPU access blocked by the operating system") || code == Some(17) {
        return "the operating system blocks the cards".to_string();
    }
    let said = text.lines().map(clean).find(|line| !line.trim().is_empty());
    match (said, code) {
        (Some(said), Some(code)) => format!("nvidia-smi fails (exit code {code}): {said}"),
        (Some(said), None) => format!("a signal ended nvidia-smi: {said}"),
        (None, Some(0)) => "nvidia-smi ended without a figure".to_string(),
        (None, Some(code)) => format!("nvidia-smi fails without a word (exit code {code})"),
        (None, None) => "a signal ended nvidia-smi".to_string(),
    }
}

/// A field that this version does not know: `Field "memory.reserved" is not a valid field to query.`
pub fn unknown_field(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Field \"")?;
    let (field, rest) = rest.split_once('"')?;
    rest.contains("not a valid field").then_some(field)
}

/// The card that is lost, by its address on the bus: `… device handle for GPU0000:10:00.0: GPU is lost.` Older versions write
/// `GPU 0000:10:00.0`.
pub fn lost_bus(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("device handle for GPU")?;
    let (bus, _) = rest.split_once(": GPU is lost")?;
    // Of `0: 00000000:10:00.0` the address is the last word.
    bus.split_whitespace().last().map(short_bus)
}

/// An address without its domain's leading zeros, in small letters: the two places write it differently.
pub fn short_bus(bus: &str) -> String {
    bus.trim_start_matches('0').to_ascii_lowercase()
}
