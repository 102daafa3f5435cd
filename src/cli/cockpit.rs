//! `vramp`, `vramp attach`: opens the cockpit.

use super::{Common, Failure, Look, key_from, places};
use crate::app::model::{Restored, Settings};
use crate::clock::Clock;
use crate::gpu;
use crate::places::Places;
use crate::profile::{self, Profile};
use crate::runtime::{self, Setup, Which};
use std::io::IsTerminal;
use std::sync::Mutex;

/// Opens the cockpit on a profile; without any, the screen says what to do first.
pub fn open(common: &Common, look: &Look) -> Result<i32, Failure> {
    terminal("vramp runs and vramp decisions list what is on record")?;
    let loaded = profile::load(common.config.as_deref(), common.profile.as_deref())
        .map_err(Failure::wrong_use)?;
    let settings = Settings {
        quick: look.quick,
        read_only: read_only(look),
        demo: false,
    };
    let profile = loaded.map(|loaded| Profile {
        confirm_within_s: look.confirm_within.or(loaded.profile.confirm_within_s),
        ..loaded.profile
    });
    enter(places()?, profile, settings, look, which(look), None)
}

/// Opens the cockpit on a bare URL. `key_env`: the variable with the API key.
pub fn attach(url: &str, key_env: Option<&str>, look: &Look) -> Result<i32, Failure> {
    terminal("vramp runs and vramp decisions list what is on record")?;
    let mut profile = profile::attach(url).map_err(Failure::wrong_use)?;
    profile.endpoint.key = key_env.map(key_from).transpose()?;
    let settings = Settings {
        quick: look.quick,
        read_only: read_only(look),
        demo: false,
    };
    enter(places()?, Some(profile), settings, look, which(look), None)
}

pub fn which(look: &Look) -> Which {
    if look.new { Which::New } else { Which::Newest }
}

pub fn read_only(look: &Look) -> Option<String> {
    look.read_only
        .then(|| "read-only, as asked for".to_string())
}

/// Without a terminal there is no cockpit.
pub fn terminal(instead: &str) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::wrong_use(format!(
        "the cockpit needs a terminal, and this is none; {instead}"
    )))
}

/// Reads everything, then takes the terminal. `cards`: others than those of the profile's host.
pub fn enter(
    places: Places,
    profile: Option<Profile>,
    settings: Settings,
    look: &Look,
    which: Which,
    cards: Option<Box<dyn gpu::Source>>,
) -> Result<i32, Failure> {
    let who = runtime::who();
    log_to(&places);
    let keymap = runtime::keymap(&places).map_err(Failure::wrong_use)?;
    let theme = runtime::theme(
        &places,
        &look.theme,
        Some(&look.colours),
        Some(&look.glyphs),
    )
    .map_err(Failure::wrong_use)?;
    let (store, restored) = match &profile {
        Some(profile) => {
            let (store, restored) = runtime::session(&places, profile, &who, which, settings.demo)
                .map_err(Failure::new)?;
            (Some(store), restored)
        }
        None => (None, Restored::default()),
    };
    let host = profile
        .as_ref()
        .map(|profile| profile.host.clone())
        .unwrap_or_default()
        .open();
    let setup = Setup {
        clock: Clock::default(),
        who,
        settings,
        profile,
        places,
        store,
        restored,
        keymap,
        theme,
        gpu_source: cards.unwrap_or_else(|| gpu::source_on(&host)),
        host,
        mouse: look.mouse,
    };
    runtime::run(setup).map_err(|error| Failure::new(format!("the terminal failed: {error}")))
}

/// The program's own log goes to a file in the state directory; without one the program works all the same.
fn log_to(places: &Places) {
    let open = || {
        std::fs::create_dir_all(&places.state)?;
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(places.state.join("vramp.log"))
    };
    let Ok(file) = open() else { return };
    let level = std::env::var("VRAMP_LOG")
        .ok()
        .and_then(|l| l.parse().ok())
        .unwrap_or(tracing::Level::INFO);
    // A second subscriber in one process changes nothing.
    let _ = tracing_subscriber::fmt()
        .with_writer(Mutex::new(file))
        .with_ansi(false)
        .with_max_level(level)
        .try_init();
}
