//! `vramp status`: what the server serves, what it is doing, and what stands behind it.

mod document;
mod table;

use super::rig::{Rig, Stand, stranger, token};
use super::{Common, Failure, print};
use crate::engine::{EngineError, Health, Key, Kind, bottleneck};
use crate::ramp;
use crate::reading::{Absent, Reading};
use crate::units::thousands;
use document::{Document, Unfinished};
use std::path::PathBuf;

/// Say what the server serves, what it is doing, and what stands behind it
///
/// Changes nothing and takes no lock; one request for one token tells whether the server is ready. Lengths are tokens, shares are 0 to 1, the
/// deadline is in Unix milliseconds, and what is not known is null. Exit codes: 0 an inference server answered, 1 none did, 2 wrong use.
#[derive(Debug, Clone, clap::Args)]
pub struct StatusArgs {
    /// Address of the server; without it, the profile's
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Engine of the server instead of finding it out: sglang, vllm, llamacpp, openai
    #[arg(long, value_name = "KIND")]
    engine: Option<Kind>,
    /// Environment variable with the API key
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// As JSON; to FILE, or to standard output without one
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// Looks, and says what was seen.
pub fn status(common: &Common, args: &StatusArgs) -> Result<i32, Failure> {
    let mut rig = Rig::open(common, args.url.as_deref())?;
    let endpoint = &mut rig.profile.endpoint;
    endpoint.kind = args.engine.or(endpoint.kind);
    if let Some(name) = &args.key_env {
        let secret = std::env::var(name).map_err(|_| {
            Failure::wrong_use(format!(
                "--key-env {name}: there is no such variable in the environment"
            ))
        })?;
        endpoint.key = Some(Key::new(secret));
    }
    let (found, answered) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?
        .block_on(look(&rig));
    match &args.json {
        Some(path) => print::json(&found, path)?,
        None => print::text(&table::table(&found))?,
    };
    Ok(if answered { 0 } else { super::FAILED })
}

/// Everything that is seen, and whether an inference server answered.
async fn look(rig: &Rig) -> (Document, bool) {
    let mut seen = Document::new(&rig.profile);
    service(rig, &mut seen).await;
    let answered = server(rig, &mut seen).await;
    (seen, answered)
}

async fn server(rig: &Rig, seen: &mut Document) -> bool {
    let (engine, facts) = match rig.server().await {
        Ok(found) => found,
        Err(error) => {
            let loads = matches!(error, EngineError::Loading);
            seen.engine = rig.profile.endpoint.kind.map(Kind::name);
            seen.notes.push(error.to_string());
            return loads;
        }
    };
    seen.facts(&facts);
    seen.notes.extend(facts.notes.iter().cloned());
    match engine.load().await {
        Ok(load) => {
            let found = bottleneck(&facts.context, &load);
            seen.bottleneck = found.as_ref().map(|found| found.what);
            seen.notes.extend(found.map(|found| found.words));
            seen.load(&load);
            // None of ours is on the server yet: the token is asked for afterwards.
            seen.foreign = ramp::foreign(&load, 0).known().copied();
            if let Reading::Absent(Absent::Failed(why)) = &load.kv_use {
                seen.notes.push(why.clone());
            }
        }
        Err(error) => seen.notes.push(format!("its load is not known: {error}")),
    }
    let proven = match &facts.health {
        Health::Up => token(engine.as_ref()).await,
        Health::Loading => Err("it says that it is loading".to_string()),
        Health::Down(why) => Err(format!("it says that it cannot serve: {why}")),
    };
    seen.ready = proven.is_ok();
    match proven {
        Ok(how) => seen.notes.push(format!("ready: {how}")),
        Err(why) => seen.notes.push(format!("not ready: {why}")),
    }
    bounds(seen);
    true
}

/// Configured is not usable: which of the bounds decides, where they differ.
fn bounds(seen: &mut Document) {
    let context = &seen.context;
    let Some(effective) = context.effective else {
        return;
    };
    let all = [
        ("configured", context.configured),
        ("the model's limit", context.model_limit),
        ("the KV pool", context.pool_tokens),
        ("a slot", context.per_slot),
    ];
    let known: Vec<String> = all
        .iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", thousands((*value)?))))
        .collect();
    let asked = context.configured.or(context.per_slot);
    if asked.is_some_and(|asked| effective < asked) {
        seen.notes.push(format!(
            "a request may use {} tokens, the least of: {}",
            thousands(effective),
            known.join(", ")
        ));
    }
}

async fn service(rig: &Rig, seen: &mut Document) {
    let Some(service) = &rig.service else { return };
    seen.service = Some(service.name());
    match Stand::of(service.as_ref()).await {
        Ok(stand) => {
            seen.production = stand.standing.production;
            seen.trial = stand.trial();
            seen.deadline = stand.standing.deadline_unix_ms;
            seen.notes.extend(stand.standing.notes.iter().cloned());
            if seen.trial.is_some() {
                seen.notes.push(stand.standing.trial_note.clone());
            }
            if !stand.runs() {
                seen.notes.push(format!("{} does not run", service.name()));
            } else if let Some(what) = stranger(service.as_ref()).await {
                seen.notes.push(format!(
                    "not the server of {}: {what} answers here",
                    service.name()
                ));
            }
        }
        Err(error) => seen.notes.push(error.to_string()),
    }
    match rig.intent().await {
        Ok(intent) => {
            seen.intent = intent.as_ref().map(Unfinished::of);
            if let Some(intent) = &seen.intent {
                seen.notes.push(format!(
                    "an unfinished restart to {} stands at the step \"{}\": vramp ramp --recover go-on, or --recover roll-back",
                    thousands(intent.to),
                    intent.step
                ));
            }
        }
        Err(why) => seen.notes.push(why),
    }
    match rig.holder().await {
        Ok(holder) => seen.lock = holder,
        Err(why) => seen.notes.push(why),
    }
}
