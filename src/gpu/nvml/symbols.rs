//! Whether the driver's library has the calls that vramp makes.

use super::{Nvml, words};

impl Nvml {
    /// The calls that are missing; where there is an older form of a call too, only when both are. Opens the library, which may block for
    /// seconds.
    ///
    /// # Errors
    /// The library cannot be opened; why, in words.
    pub fn missing_calls(&self) -> Result<Vec<&'static str>, String> {
        let nvml = nvml_wrapper::Nvml::builder()
            .lib_path(&self.library)
            .init()
            .map_err(|error| words::no_driver(&error, &self.library))?;
        let lib = nvml.lib();
        let calls = [
            (
                "nvmlSystemGetDriverVersion",
                lib.nvmlSystemGetDriverVersion.is_ok(),
            ),
            ("nvmlDeviceGetCount_v2", lib.nvmlDeviceGetCount_v2.is_ok()),
            (
                "nvmlDeviceGetHandleByIndex_v2",
                lib.nvmlDeviceGetHandleByIndex_v2.is_ok(),
            ),
            ("nvmlDeviceGetName", lib.nvmlDeviceGetName.is_ok()),
            ("nvmlDeviceGetUUID", lib.nvmlDeviceGetUUID.is_ok()),
            (
                "nvmlDeviceGetMemoryInfo",
                lib.nvmlDeviceGetMemoryInfo_v2.is_ok() || lib.nvmlDeviceGetMemoryInfo.is_ok(),
            ),
            (
                "nvmlDeviceGetUtilizationRates",
                lib.nvmlDeviceGetUtilizationRates.is_ok(),
            ),
            (
                "nvmlDeviceGetTemperature",
                lib.nvmlDeviceGetTemperature.is_ok(),
            ),
            (
                "nvmlDeviceGetPowerUsage",
                lib.nvmlDeviceGetPowerUsage.is_ok(),
            ),
            (
                "nvmlDeviceGetEnforcedPowerLimit",
                lib.nvmlDeviceGetEnforcedPowerLimit.is_ok(),
            ),
            (
                "nvmlDeviceGetComputeRunningProcesses",
                lib.nvmlDeviceGetComputeRunningProcesses_v3.is_ok()
                    || lib.nvmlDeviceGetComputeRunningProcesses_v2.is_ok(),
            ),
        ];
        Ok(calls
            .iter()
            .filter_map(|(name, there)| (!there).then_some(*name))
            .collect())
    }
}
