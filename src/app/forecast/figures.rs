//! The forecast from the model's own geometry, the launch, and what this deployment has measured of itself.

use super::super::model::Model;
use crate::engine::{Facts, Kind};
use crate::memory::{self, Deployment, Forecast, Measured, Split};
use crate::profile::Launch;

/// The forecast for `context` with `launch`, or with that of the running server; `None` while the model is not described, or where the
/// engine is not known.
///
/// # Errors
/// Why there are no figures.
pub fn of(
    model: &Model,
    context: u64,
    launch: Option<&Launch>,
) -> Option<Result<Forecast, String>> {
    let facts = model.rig.facts.as_ref()?;
    if facts.kind == Kind::OpenAi {
        return None;
    }
    let geometry = match model.rig.geometry.as_ref()? {
        Ok(geometry) => geometry,
        Err(why) => return Some(Err(why.clone())),
    };
    let running = deployment(model, facts, running(model));
    let next = match launch {
        Some(_) => deployment(model, facts, launch),
        None => running.clone(),
    };
    let measured = measured(model, facts);
    let found = memory::forecast(geometry, &running, &next, measured.as_ref(), context);
    Some(found.map_err(|error| error.to_string()))
}

/// What the server that runs was started with, as far as it is known.
pub fn running(model: &Model) -> Option<&Launch> {
    let launch = model.rig.config.as_ref().map(|config| &config.launch);
    launch.or(model.launch())
}

/// How a server runs: its launch, and what the one that serves now says of itself.
fn deployment(model: &Model, facts: &Facts, launch: Option<&Launch>) -> Deployment {
    let mut d = match launch {
        Some(launch) => memory::launched::deployment(facts.kind, &launch.argv, &launch.env),
        None => Deployment::new(facts.kind),
    };
    if facts.kind == Kind::LlamaCpp {
        let slots = d.requests.or(facts.context.slots.known().copied());
        d.requests = slots;
        if d.shared_cache {
            // Any of them may have all of the one cache.
            (d.requests, d.sequences) = (Some(1), slots);
        }
        let cards = model.rig.gpus.chosen(model.cards()).count() as u64;
        d.split = Split::checked(1, 1, cards.max(1)).unwrap_or_default();
    }
    d
}

/// What the start that serves now said in its log, with what the server says now; `None` while no context is known.
fn measured(model: &Model, facts: &Facts) -> Option<Measured> {
    let served = model.served()?;
    let logged = model
        .tried
        .get(&served)
        .filter(|tried| tried.config == model.rig.config);
    let logged = logged.and_then(|tried| tried.measured).unwrap_or_default();
    let pool = facts.context.pool_tokens.known().copied();
    let free = model.rig.gpus.tightest(model.cards());
    let grows = facts.kind == Kind::LlamaCpp;
    Some(Measured {
        context: facts.context.configured.known().copied().unwrap_or(served),
        requests: facts.context.slots.known().copied().or(logged.requests),
        pool_tokens: if grows {
            logged.pool_tokens
        } else {
            pool.or(logged.pool_tokens)
        },
        available: if grows {
            free.map(|(_, free)| free)
        } else {
            logged.available
        },
        ..logged
    })
}
