//! The service of a profile.

use crate::host::{Host, Sudo};
use crate::launch::Dialect;
use crate::profile::{Profile, ServiceSpec};
use crate::service::{Command, Compose, Process, Service, Settings, Systemd, compose, systemd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a process of our own may take to end by itself.
const STOP_GRACE_S: u64 = 30;

/// The service of a profile, if it has one. `dir`: where its record, intent and lock lie.
pub fn service(profile: &Profile, host: &Arc<dyn Host>, dir: PathBuf) -> Option<Arc<dyn Service>> {
    match &profile.service {
        ServiceSpec::None => None,
        ServiceSpec::Process { launch, log, .. } => Some(Arc::new(Process::new(Settings {
            launch: launch.clone(),
            state_dir: dir,
            log: log.clone(),
            url: profile.endpoint.url.clone(),
            stop_grace: Duration::from_secs(profile.stop_grace_s.unwrap_or(STOP_GRACE_S)),
            production: profile.production,
            profile: profile
                .file
                .clone()
                .map(|file| (file, profile.name.clone())),
        }))),
        ServiceSpec::Command(commands) => {
            let commands = commands.as_ref().clone();
            Some(Arc::new(Command::new(Arc::clone(host), commands)))
        }
        ServiceSpec::Compose(spec) => {
            let host: Arc<dyn Host> = match spec.sudo {
                true => Arc::new(Sudo::new(Arc::clone(host))),
                false => Arc::clone(host),
            };
            Some(Arc::new(Compose::new(
                host,
                compose::Settings {
                    command: spec.command.clone(),
                    service: spec.service.clone(),
                    project: spec.project.clone(),
                    directory: spec.directory.clone(),
                    files: spec.files.clone(),
                    state_dir: dir,
                    url: profile.endpoint.url.clone(),
                    engine: profile.engine.and_then(Option::<Dialect>::from),
                    stop_grace: profile.stop_grace_s.map(Duration::from_secs),
                },
            )))
        }
        ServiceSpec::Systemd { unit, user, sudo } => Some(Arc::new(Systemd::new(
            Arc::clone(host),
            systemd::Settings {
                unit: unit.clone(),
                user: *user,
                sudo: *sudo,
                state_dir: dir,
                url: profile.endpoint.url.clone(),
                engine: profile.engine.and_then(Option::<Dialect>::from),
                stop_grace: profile.stop_grace_s.map(Duration::from_secs),
                release_after: Duration::from_secs(profile.release_after_s),
            },
        ))),
    }
}
