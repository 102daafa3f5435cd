//! The service as it stands before a step: what runs, what comes back, what a step would be. Changes nothing.

use super::super::Failure;
use super::super::rig::{Rig, Stand, stranger};
use super::walk::Stop;
use crate::discover::{self, model};
use crate::engine::{Engine, EngineError, Facts};
use crate::gpu::Tenant;
use crate::memory::Geometry;
use crate::ramp::{self, Known, Purpose, RestartPlan, WayOut};
use crate::service::{Config, Service};
use crate::units::thousands;
use std::sync::Arc;

/// The service of a profile, and where it stands.
#[derive(Clone)]
pub struct Site<'a> {
    pub rig: &'a Rig,
    pub service: Arc<dyn Service>,
}

/// The service as it was looked at.
pub struct Seen {
    pub stand: Stand,
    pub server: Option<(Arc<dyn Engine>, Facts)>,
}

impl Seen {
    pub fn facts(&self) -> Option<&Facts> {
        self.server.as_ref().map(|(_, facts)| facts)
    }
}

impl<'a> Site<'a> {
    /// # Errors
    /// The profile has no service.
    pub fn of(rig: &'a Rig) -> Result<Site<'a>, Failure> {
        let service = rig
            .service
            .clone()
            .ok_or_else(|| Failure::wrong_use("the profile does not say how the server is run"))?;
        Ok(Site { rig, service })
    }

    pub async fn stand(&self) -> Result<Stand, Stop> {
        Stand::of(self.service.as_ref())
            .await
            .map_err(Stop::refused)
    }

    /// Looks at the service, and refuses where what answers is not the service's own or cannot be come back to.
    pub async fn look(&self) -> Result<Seen, Stop> {
        let stand = self.stand().await?;
        let server = self.rig.server().await;
        let (name, url) = (self.service.name(), &self.rig.profile.endpoint.url);
        if !stand.runs() {
            let there = matches!(
                server,
                Ok(_)
                    | Err(EngineError::Loading
                        | EngineError::Denied { .. }
                        | EngineError::Strange { .. }
                        | EngineError::Status { .. })
            );
            if there {
                return Err(Stop::refused(format!(
                    "{url} answers, though {name} does not run: vramp did not start that server and does not stop it. Stop it yourself, or correct the url of the profile"
                )));
            }
        } else if let Some(what) = stranger(self.service.as_ref()).await {
            return Err(Stop::refused(format!(
                "{what} at {url}, and that is not {name}, which runs too: stop one of them yourself, or correct the url of the profile"
            )));
        } else if stand.running().is_none() {
            return Err(Stop::refused(format!(
                "{name} runs, and what it was started with is not known: there would be no way back. Stop it yourself, and vramp starts it"
            )));
        }
        Ok(Seen {
            stand,
            server: server.ok(),
        })
    }

    /// The model of the server that answers; `None` where none does.
    pub async fn geometry(&self, seen: &Seen, tenant: &Tenant) -> Option<Result<Geometry, String>> {
        let launch = match seen.stand.running() {
            Some(config) => &config.launch,
            None => &seen.stand.standing.launch,
        };
        let served = model::Served {
            launch: Some(launch),
            facts: seen.facts()?,
            pids: &tenant.pids,
            own: true,
        };
        Some(model::of_server(self.rig.host.as_ref(), &served).await)
    }

    /// The processes of the server; none where they are not known.
    pub async fn tenant(&self) -> Tenant {
        let (host, service) = (self.rig.host.as_ref(), self.service.as_ref());
        let found = discover::tenant(host, Some(service), &self.rig.profile.endpoint.url).await;
        found.unwrap_or_default()
    }

    pub async fn known(&self, stand: &Stand) -> Result<Known, Stop> {
        let running = stand.running().cloned();
        let good = ramp::load_last_good(self.rig.host.as_ref(), &self.rig.dir)
            .await
            .map_err(Stop::refused)?;
        Ok(Known {
            last_good: good
                .filter(|good| ramp::fits(good, Some(&stand.standing.launch), running.as_ref())),
            running,
            production: stand.standing.production,
        })
    }

    /// The plan of a restart of the launch that stands there.
    pub fn plan(&self, stand: &Stand, purpose: Purpose, context: u64, known: Known) -> RestartPlan {
        let to = Config {
            context,
            launch: stand.standing.launch.clone(),
        };
        RestartPlan::new(purpose, to, known, self.rig.profile.confirm_within_s)
    }

    /// What a first start brings on the way to `to`.
    pub fn start_context(&self, stand: &Stand, to: u64) -> u64 {
        let ladder = self.rig.profile.ladder.iter().copied();
        let below: Vec<u64> = ladder.filter(|step| *step <= to).collect();
        ramp::start_context(stand.standing.production, &below).unwrap_or(to)
    }

    /// Refuses where an earlier vramp left a restart unfinished.
    pub async fn finished(&self) -> Result<(), Stop> {
        let Some(intent) = self.rig.intent().await.map_err(Stop::refused)? else {
            return Ok(());
        };
        let back = intent.plan.on_failure.as_ref();
        let back = back.map_or("nothing".to_string(), |t| thousands(t.config.context));
        Err(Stop::refused(format!(
            "an unfinished restart to {} by {} stands at the step \"{}\". Finish it with --recover {}, or bring {back} back with --recover {}",
            thousands(intent.plan.to.context),
            intent.by,
            intent.step.words(),
            WayOut::GoOn.word(),
            WayOut::RollBack.word()
        )))
    }
}

/// The contexts to restart at, in order: the steps between `from` and `to`, then `to`. None where it runs already.
pub fn contexts(from: Option<u64>, to: u64, ladder: &[u64]) -> Vec<u64> {
    if from == Some(to) {
        return Vec::new();
    }
    let from = from.unwrap_or(0);
    let (low, high) = (from.min(to), from.max(to));
    let mut steps: Vec<u64> = ladder
        .iter()
        .copied()
        .filter(|step| (low + 1..high).contains(step))
        .collect();
    steps.sort_unstable();
    steps.dedup();
    if to < from {
        steps.reverse();
    }
    steps.push(to);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_lie_between_what_runs_and_what_is_asked_for() {
        let ladder = [131_072, 32_768, 65_536, 65_536];
        assert_eq!(contexts(Some(32_768), 131_072, &ladder), [65_536, 131_072]);
        assert_eq!(contexts(Some(32_768), 100_000, &ladder), [65_536, 100_000]);
        assert_eq!(contexts(Some(131_072), 32_768, &ladder), [65_536, 32_768]);
        assert_eq!(contexts(Some(32_768), 131_072, &[]), [131_072]);
        assert!(contexts(Some(4096), 4096, &ladder).is_empty());
        assert_eq!(contexts(None, 65_536, &ladder), [32_768, 65_536]);
    }
}
