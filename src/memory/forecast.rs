//! What another context will change on a deployment that runs now.

use super::bytes::{self, Split};
use super::calibrate::{self, Calibration, Measured};
use super::cost::{self, Bytes};
use super::deployment::{DRAFTING_REQUESTS, Deployment};
use super::error::MemoryError;
use super::geometry::Geometry;
use super::pool::{self, Pool};
use crate::engine::Kind;
use crate::units::{GIB, gib, thousands};
use serde::{Deserialize, Serialize};

/// What nobody can tell from outside: allocator, driver, library workspaces.
const SLACK: u64 = 64 << 20;

/// The bounds of what one request can really use, in tokens; the least decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// The context as configured.
    pub flag: u64,
    /// What the model was made for, as the engine derives it.
    pub model_limit: Option<u64>,
    /// Tokens of the pool.
    pub pool: Option<u64>,
    /// Tokens of one slot (llama.cpp).
    pub slot_share: Option<u64>,
}

impl Bounds {
    /// The effective context.
    pub fn effective(&self) -> u64 {
        [self.model_limit, self.pool, self.slot_share]
            .into_iter()
            .flatten()
            .fold(self.flag, u64::min)
    }
}

/// One forecast. It warns and never blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    pub context: u64,
    /// Change of each card's memory against now; absent where nothing is known to compare with, or of the engine.
    pub change: Option<Bytes>,
    /// Requests of full length that are served at once, now and then.
    pub capacity_before: Option<f64>,
    pub capacity_after: Option<f64>,
    /// By how much `capacity_after` may be off, as a share of it.
    pub capacity_error: f64,
    /// llama.cpp, whose slots set the capacity: slots of that length for which the card has room, and by how much that may be off.
    #[serde(default)]
    pub room: Option<(f64, f64)>,
    /// The launch changes more than the context: what was measured of the pool does not hold any more.
    #[serde(default)]
    pub anew: bool,
    /// The change is of the machine's memory: no card holds the cache.
    #[serde(default)]
    pub off_cards: bool,
    pub bounds: Bounds,
    /// The least of the bounds.
    pub effective: u64,
    /// The figures start from this deployment's own log.
    pub measured: bool,
    /// The formula beside the log.
    pub calibration: Option<Calibration>,
    /// What should make the operator think, in words.
    pub warnings: Vec<String>,
}

/// Makes it, for a restart from the deployment that is `running` to `d`: from the log where there is one, else from the formulas and the
/// memory of the card. `measured` is of the start that serves now.
pub fn forecast(
    geometry: &Geometry,
    running: &Deployment,
    d: &Deployment,
    measured: Option<&Measured>,
    context: u64,
) -> Result<Forecast, MemoryError> {
    let anew = running != d;
    let calibration = match measured {
        Some(measured) => calibrate::calibrate(geometry, running, measured)?,
        None => None,
    };
    let pool = known_pool(geometry, running, d, measured)?;
    let of_next = measured.filter(|_| !anew || d.engine == Kind::LlamaCpp);
    let fits = capacity(geometry, d, pool.as_ref(), of_next, context)?;
    let now = measured.filter(|m| m.context > 0);
    let (before, (after, error), room) = if d.engine == Kind::LlamaCpp {
        let slots = |d: &Deployment| d.requests.or(now.and_then(|m| m.requests)).unwrap_or(1);
        let room = fits.0.map(|slots| (slots, fits.1));
        let before = now.map(|_| slots(running) as f64);
        (before, (Some(slots(d) as f64), 0.0), room)
    } else {
        let before = match now {
            Some(now) => {
                let pool = known_pool(geometry, running, running, measured)?;
                capacity(geometry, running, pool.as_ref(), measured, now.context)?.0
            }
            None => None,
        };
        (before, fits, None)
    };
    let bounds = bounds(geometry, d, pool.as_ref(), context)?;
    let mut forecast = Forecast {
        context,
        // What moves between the cards and the machine's memory is no change of either that could be told in one figure.
        change: match running.off_cards == d.off_cards {
            true => change(geometry, running, d, measured, calibration, context)?,
            false => None,
        },
        capacity_before: before,
        capacity_after: after,
        capacity_error: error,
        room,
        anew,
        off_cards: d.off_cards,
        bounds,
        effective: bounds.effective(),
        measured: pool.is_some() && of_next.is_some_and(|m| m.pool_tokens.is_some()),
        calibration,
        warnings: Vec::new(),
    };
    forecast.warnings = warnings(geometry, d, pool.as_ref(), &forecast)?;
    Ok(forecast)
}

/// The pool of the log; without one, that of the card. llama.cpp's pool follows the context, so the card alone says what fits.
fn known_pool(
    geometry: &Geometry,
    running: &Deployment,
    d: &Deployment,
    measured: Option<&Measured>,
) -> Result<Option<Pool>, MemoryError> {
    let anew = running != d;
    let mut d = d.clone();
    d.weights = measured.and_then(|m| m.weights).or(d.weights);
    if d.engine == Kind::LlamaCpp
        && let Some(now) = measured.filter(|m| m.context > 0)
        && let Some(available) = now.available.filter(|_| !running.off_cards && !d.off_cards)
    {
        // What it holds now and what was left beside it is what there is.
        let slots = running.requests.or(now.requests).unwrap_or(1);
        let taken = pool::llamacpp_taken(geometry, running, now.context, slots)?;
        let room = bytes::narrow(taken)?
            .checked_add(available)
            .ok_or(MemoryError::TooLarge)?;
        return pool::of_room(geometry, &d, room).map(Some);
    }
    let logged = measured.filter(|_| !anew && matches!(d.engine, Kind::Sglang | Kind::Vllm));
    if let Some(tokens) = logged.and_then(|m| m.pool_tokens) {
        let size = match logged.and_then(|m| m.pool_bytes) {
            Some(size) => size,
            None => (pool::charged(geometry, &d)? * tokens as f64) as u64,
        };
        return Ok(Some(Pool {
            bytes: size,
            tokens: Some(tokens),
            slots: None,
        }));
    }
    pool::pool(geometry, &d)
}

/// Requests of `context` that fit, and the share by which that may be off.
fn capacity(
    geometry: &Geometry,
    d: &Deployment,
    pool: Option<&Pool>,
    measured: Option<&Measured>,
    context: u64,
) -> Result<(Option<f64>, f64), MemoryError> {
    let Some(pool) = pool else {
        return Ok((None, 0.0));
    };
    let logged = measured.is_some_and(|m| m.pool_tokens.is_some());
    let plain = geometry.window_layers() + geometry.state_layers() == 0;
    // Tokens of the log are exact where every token costs the same; else the bytes are, and a request is counted in blocks.
    if logged && (plain || d.engine == Kind::Sglang) {
        let tokens = pool.tokens.filter(|_| context > 0);
        return Ok((tokens.map(|t| t as f64 / context as f64), 0.0));
    }
    // vLLM's own count at its context is nearer than its tokens where a request is counted in blocks of several kinds.
    if let Some(now) = measured.filter(|m| d.engine == Kind::Vllm && m.context > 0)
        && let Some(fits) = now.concurrency
    {
        let one = |context| pool::vllm_request(geometry, d, context);
        let (here, there) = (one(now.context)?, one(context)?);
        if there > 0 {
            return Ok((Some(fits * (here as f64 / there as f64)), 0.05));
        }
    }
    let found = pool::capacity(geometry, d, pool, context)?;
    // Without a log, what the engine keeps for itself is not known.
    Ok((found, if logged { 0.05 } else { 0.15 }))
}

fn bounds(
    geometry: &Geometry,
    d: &Deployment,
    pool: Option<&Pool>,
    context: u64,
) -> Result<Bounds, MemoryError> {
    let slot_share =
        (d.engine == Kind::LlamaCpp).then(|| context.div_ceil(256).saturating_mul(256));
    let pool = match (d.engine, pool) {
        (Kind::LlamaCpp, Some(pool)) => {
            let slots = d.requests.unwrap_or(1);
            Some(pool::largest_context(geometry, d, pool, slots)?.unwrap_or(0))
        }
        (Kind::Vllm, Some(pool)) => match pool.tokens {
            Some(tokens) if geometry.window_layers() + geometry.state_layers() == 0 => {
                // A request lives in the pool of one engine.
                Some(tokens / d.engines.unwrap_or(1).max(1))
            }
            _ => Some(pool::largest_context(geometry, d, pool, 1)?.unwrap_or(0)),
        },
        (_, pool) => pool.and_then(|pool| pool.tokens),
    };
    Ok(Bounds {
        flag: context,
        model_limit: limit(geometry, d.engine),
        pool,
        slot_share,
    })
}

/// The model's limit as this engine derives it.
pub fn limit(geometry: &Geometry, engine: Kind) -> Option<u64> {
    match engine {
        Kind::Sglang => geometry.limit.sglang,
        Kind::Vllm => geometry.limit.vllm,
        Kind::LlamaCpp => geometry.limit.config,
        Kind::OpenAi => geometry.limit.scaled,
    }
}

/// The change of a card's memory from the context that serves now.
fn change(
    geometry: &Geometry,
    running: &Deployment,
    d: &Deployment,
    measured: Option<&Measured>,
    calibration: Option<Calibration>,
    context: u64,
) -> Result<Option<Bytes>, MemoryError> {
    let Some(now) = measured.filter(|m| m.context > 0 && d.engine != Kind::OpenAi) else {
        return Ok(None);
    };
    let at = |d: &Deployment, context| {
        let mut d = d.clone();
        d.requests = d.requests.or(now.requests);
        cost::of_context(geometry, &d, context, now.pool_tokens)
    };
    let (from, to) = (at(running, now.context)?, at(d, context)?);
    let mut bytes = to
        .bytes
        .checked_sub(from.bytes)
        .ok_or(MemoryError::TooLarge)?;
    // llama.cpp's cache is what changes: the log corrects the formula.
    if let Some(found) = calibration.filter(|_| d.engine == Kind::LlamaCpp) {
        bytes = (bytes as f64 * (1.0 + found.difference())) as i64;
    }
    let bars = to.plus_minus.abs_diff(from.plus_minus);
    let small = if bytes == 0 { 0 } else { SLACK };
    Ok(Some(Bytes {
        bytes,
        plus_minus: bars.saturating_add(small),
    }))
}

fn warnings(
    geometry: &Geometry,
    d: &Deployment,
    pool: Option<&Pool>,
    forecast: &Forecast,
) -> Result<Vec<String>, MemoryError> {
    let context = forecast.context;
    let mut warnings = Vec::new();
    if let Some(limit) = limit(geometry, d.engine).filter(|limit| context > *limit) {
        warnings.push(above_limit(geometry, d.engine, context, limit));
    }
    let tight = forecast.capacity_after.is_some_and(|c| c < 2.0);
    if let Some(fits) = forecast
        .capacity_after
        .filter(|_| d.engine != Kind::LlamaCpp)
    {
        if fits < d.engines.unwrap_or(1) as f64 {
            warnings.push(too_small(d.engine, forecast));
        } else if tight {
            warnings.push(format!(
                "a {} context fits {:.1} requests at once",
                thousands(context),
                (fits * 10.0).floor() / 10.0
            ));
        }
    }
    if d.engine == Kind::LlamaCpp {
        let slots = d.requests.unwrap_or(1);
        if slots > 1 {
            let each = context.div_ceil(256).saturating_mul(256);
            warnings.push(format!(
                "llama.cpp takes {slots} x {} = {} cells at start, used or not",
                thousands(each),
                thousands(each.saturating_mul(slots))
            ));
        }
        if forecast.room.is_some_and(|(room, _)| room < slots as f64) {
            warnings.push(too_small(d.engine, forecast));
        }
    }
    if d.engine == Kind::Sglang {
        warnings.extend(verify_states(geometry, d, tight)?);
        warnings.extend(draft_cache(geometry, d, pool)?);
    }
    Ok(warnings)
}

fn above_limit(geometry: &Geometry, engine: Kind, context: u64, limit: u64) -> String {
    let scaled = geometry
        .limit
        .scaled
        .is_some_and(|scaled| scaled >= context);
    let (now, limit) = (thousands(context), thousands(limit));
    match (engine, scaled) {
        (Kind::Sglang, true) => format!(
            "above the {limit} that SGLang derives: it needs an explicit --context-length and SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1, although the configuration scales to {}",
            thousands(geometry.limit.scaled.unwrap_or(context))
        ),
        (Kind::LlamaCpp, _) => format!(
            "{now} is above the trained length of {limit}: needs rope scaling; without it llama.cpp caps each slot at {limit} while the memory stays taken"
        ),
        (Kind::Sglang, false) => format!(
            "{now} is above the trained length of {limit}: needs rope scaling, and SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
        ),
        (Kind::Vllm, _) => format!(
            "{now} is above the trained length of {limit}: needs rope scaling, or vLLM refuses to start"
        ),
        (Kind::OpenAi, _) => {
            format!("{now} is above the trained length of {limit}: needs rope scaling")
        }
    }
}

fn too_small(engine: Kind, forecast: &Forecast) -> String {
    let context = thousands(forecast.context);
    let pool = forecast
        .bounds
        .pool
        .map_or_else(|| "fewer".to_string(), thousands);
    match engine {
        Kind::Sglang => format!(
            "SGLang starts with a pool of {pool} tokens, smaller than the context of {context}, and refuses longer requests later"
        ),
        Kind::Vllm => format!(
            "vLLM refuses to start: its pool cannot hold one request of {context}; the largest that fits is about {pool}"
        ),
        Kind::LlamaCpp => format!(
            "{context} in every slot does not fit on the card; the largest that fits is about {pool}, or layers go to the CPU and it gets slow"
        ),
        Kind::OpenAi => format!("{context} does not fit into the pool"),
    }
}

/// SGLang sets one state aside for each running request and each draft token: the best lever where there is one.
fn verify_states(
    geometry: &Geometry,
    d: &Deployment,
    tight: bool,
) -> Result<Vec<String>, MemoryError> {
    let mut found = Vec::new();
    let (Some(draft), Some(running)) = (d.draft_tokens, d.running()) else {
        return Ok(found);
    };
    let state = bytes::state(geometry, d.split, d.state_types(geometry))?;
    if state == 0 {
        return Ok(found);
    }
    let aside = |requests: u64| {
        state
            .checked_mul(u128::from(requests))
            .and_then(|b| b.checked_mul(u128::from(draft)))
            .ok_or(MemoryError::TooLarge)
    };
    if d.requests.is_none() {
        found.push(format!(
            "without max-running-requests SGLang allows {DRAFTING_REQUESTS}: {} GiB a card for verify states alone",
            gib(bytes::narrow(aside(running)?)?)
        ));
    }
    let half = running / 2;
    if tight && half > 0 {
        let freed = aside(running)?.saturating_sub(aside(half)?);
        let gained = kv_tokens(geometry, d, freed)?;
        found.push(format!(
            "lower max-running-requests from {running} to {half}: +{} KV tokens",
            short(gained)
        ));
    }
    Ok(found)
}

/// KV tokens, with the draft layers' own, for `freed` bytes; without state slots set by hand the states take their share of it.
fn kv_tokens(geometry: &Geometry, d: &Deployment, freed: u128) -> Result<u64, MemoryError> {
    let share = if d.state_slots.is_some() {
        1.0
    } else {
        10.0 / 19.0
    };
    let draft = bytes::draft(geometry, d.split, d.kv, 1)? as f64;
    let one = pool::charged(geometry, d)? + draft;
    Ok(if one > 0.0 {
        (freed as f64 * share / one) as u64
    } else {
        0
    })
}

fn short(tokens: u64) -> String {
    if tokens >= 1000 {
        format!("{}K", (tokens as f64 / 1000.0).round())
    } else {
        tokens.to_string()
    }
}

/// The draft layers' cache is not in SGLang's budget: it comes out of the reserve.
fn draft_cache(
    geometry: &Geometry,
    d: &Deployment,
    pool: Option<&Pool>,
) -> Result<Option<String>, MemoryError> {
    let Some(tokens) = pool
        .and_then(|p| p.tokens)
        .filter(|_| d.draft_tokens.is_some())
    else {
        return Ok(None);
    };
    let size = bytes::draft(geometry, d.split, d.kv, tokens)?;
    Ok((size as f64 >= 0.05 * GIB).then(|| {
        format!(
            "the draft layer's cache of {:.1} GiB a card comes out of the reserve, not out of the pool",
            size as f64 / GIB
        )
    }))
}

/// The layout in words: `TP 2`, `TP 8 in 4 attention replicas, 2 stages`.
pub fn layout(split: Split) -> String {
    let mut text = format!("TP {}", split.tp);
    if split.dp > 1 {
        text.push_str(&format!(" in {} attention replicas", split.dp));
    }
    if split.pp > 1 {
        text.push_str(&format!(", {} stages", split.pp));
    }
    text
}
