//! The forecast from the model's own geometry, the launch, and what this deployment has measured of itself.

use super::super::model::Model;
use crate::engine::{Facts, Kind};
use crate::memory::{self, Deployment, Forecast, Measured, Split};

/// The forecast for `context`; `None` while the model is not described, or where the engine is not known.
///
/// # Errors
/// Why there are no figures.
pub fn of(model: &Model, context: u64) -> Option<Result<Forecast, String>> {
    let facts = model.rig.facts.as_ref()?;
    if facts.kind == Kind::OpenAi {
        return None;
    }
    let geometry = match model.rig.geometry.as_ref()? {
        Ok(geometry) => geometry,
        Err(why) => return Some(Err(why.clone())),
    };
    let measured = measured(model, facts);
    let found = memory::forecast(
        geometry,
        &deployment(model, facts),
        measured.as_ref(),
        context,
    );
    Some(found.map_err(|error| error.to_string()))
}

/// The deployment that the launch of the running server makes, where it is known.
pub fn launched(model: &Model, kind: Kind) -> Option<Deployment> {
    let launch = model.rig.config.as_ref().map(|config| &config.launch);
    let launch = launch.or(model.launch())?;
    Some(memory::launched::deployment(
        kind,
        &launch.argv,
        &launch.env,
    ))
}

/// How the server runs: its launch, and what it says of itself.
fn deployment(model: &Model, facts: &Facts) -> Deployment {
    let launched = launched(model, facts.kind);
    let known = launched.is_some();
    let mut d = launched.unwrap_or_else(|| Deployment::new(facts.kind));
    if facts.kind == Kind::LlamaCpp {
        // Slots that share one cache take what one slot of that length takes.
        let shared = std::mem::take(&mut d.shared_cache) || !known;
        let slots = facts.context.slots.known().copied().or(d.requests);
        d.requests = if shared { Some(1) } else { slots };
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
