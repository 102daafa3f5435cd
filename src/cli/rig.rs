//! What a command without a screen works on: the profile, its host and its service, looked at without changing anything.

use super::{Common, Failure, places};
use crate::engine::{self, Engine, EngineError, Facts};
use crate::host::Host;
use crate::places::Places;
use crate::profile::{self, Profile};
use crate::ramp::{self, Intent};
use crate::runtime;
use crate::service::{Config, Port, Service, ServiceError, Standing, Status};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a token of a server that is looked at may take.
const TOKEN: Duration = Duration::from_secs(20);

/// A profile with its host and its service. Nothing is connected before it is used.
pub struct Rig {
    pub places: Places,
    pub profile: Profile,
    pub host: Arc<dyn Host>,
    pub service: Option<Arc<dyn Service>>,
    /// What stands beside the service, on its host.
    pub dir: PathBuf,
}

impl Rig {
    /// The server at `url`, or that of the profile.
    ///
    /// # Errors
    /// Wrong use, in words: no such profile, or none at all.
    pub fn open(common: &Common, url: Option<&str>) -> Result<Rig, Failure> {
        let profile = match url {
            Some(url) => Some(profile::attach(url).map_err(Failure::wrong_use)?),
            None => profile::load(common.config.as_deref(), common.profile.as_deref())
                .map_err(Failure::wrong_use)?
                .map(|loaded| loaded.profile),
        };
        let profile = profile.ok_or_else(|| {
            Failure::wrong_use(
                "there is no profile yet: vramp init writes one, or name a server with --url http://HOST:PORT",
            )
        })?;
        Ok(Rig::of(places()?, profile))
    }

    /// The rig of a profile.
    pub fn of(places: Places, profile: Profile) -> Rig {
        let host = profile.host.open();
        let dir = places.service(&profile);
        Rig {
            service: runtime::service(&profile, &host, dir.clone()),
            places,
            profile,
            host,
            dir,
        }
    }

    /// What answers at the address of the profile.
    pub async fn server(&self) -> Result<(Arc<dyn Engine>, Facts), EngineError> {
        let engine: Arc<dyn Engine> = Arc::from(engine::detect(&self.profile.endpoint).await?);
        let facts = engine.facts().await?;
        Ok((engine, facts))
    }

    /// The unfinished restart beside the service.
    pub async fn intent(&self) -> Result<Option<Intent>, String> {
        ramp::find(self.host.as_ref(), &self.dir)
            .await
            .map_err(|error| error.to_string())
    }

    /// Who works on the service now; nothing is taken.
    pub async fn holder(&self) -> Result<Option<String>, String> {
        ramp::holder(self.host.as_ref(), &self.dir)
            .await
            .map_err(|error| error.to_string())
    }
}

/// What a service says of itself.
pub struct Stand {
    pub status: Status,
    pub standing: Standing,
}

impl Stand {
    /// # Errors
    /// The service cannot be asked.
    pub async fn of(service: &dyn Service) -> Result<Stand, ServiceError> {
        Ok(Stand {
            status: service.status().await?,
            standing: service.standing().await?,
        })
    }

    /// What it was started with, where that is known.
    pub fn running(&self) -> Option<&Config> {
        match &self.status {
            Status::Running { config, .. } => config.as_ref(),
            Status::Stopped { .. } => None,
        }
    }

    pub fn runs(&self) -> bool {
        matches!(self.status, Status::Running { .. })
    }

    /// The context on trial: what runs and a confirmed start would not bring.
    pub fn trial(&self) -> Option<u64> {
        let config = self.running()?;
        let standing = &self.standing;
        let trial = ramp::is_trial(
            config.context,
            Some(&config.launch),
            standing.production,
            Some(&standing.launch),
        );
        trial.then_some(config.context)
    }
}

/// Who else answers at the address of a service that runs, in words.
pub async fn stranger(service: &dyn Service) -> Option<String> {
    match service.port().await {
        Ok(Port::Other(what)) => Some(what),
        _ => None,
    }
}

/// Whether the server answers one real token, and how that went, in words.
pub async fn token(engine: &dyn Engine) -> Result<String, String> {
    match timeout(TOKEN, engine.probe()).await {
        Ok(Ok(probe)) if probe.output_tokens > 0 => Ok(format!(
            "a real token after {}",
            crate::units::duration(probe.ms as f64)
        )),
        Ok(Ok(_)) => Err("the server answers without a single token".to_string()),
        Ok(Err(error)) => Err(format!("asked for one token: {error}")),
        Err(_) => Err(format!(
            "asked for one token: none came within {} s",
            TOKEN.as_secs()
        )),
    }
}
