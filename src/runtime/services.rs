//! The service of a profile.

use crate::profile::{Profile, ServiceSpec};
use crate::service::{Process, Service, Settings};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The service of a profile, if it has one. `dir`: where its record, intent and lock lie.
pub fn service(profile: &Profile, dir: PathBuf) -> Option<Arc<dyn Service>> {
    match &profile.service {
        ServiceSpec::None => None,
        ServiceSpec::Process { launch, log, .. } => Some(Arc::new(Process::new(Settings {
            launch: launch.clone(),
            state_dir: dir,
            log: log.clone(),
            url: profile.endpoint.url.clone(),
            stop_grace: Duration::from_secs(profile.stop_grace_s),
            production: profile.production,
            profile: profile
                .file
                .clone()
                .map(|file| (file, profile.name.clone())),
        }))),
        ServiceSpec::Systemd { .. } => None,
    }
}
