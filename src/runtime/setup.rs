//! What a cockpit is opened with: read before the terminal is touched, so that an error is a line of text.

use super::keeper;
use crate::app::model::{Restored, Settings, Tried, Who};
use crate::clock::Clock;
use crate::gpu;
use crate::host::Host;
use crate::keymap::{Keymap, KeymapError};
use crate::places::Places;
use crate::profile::Profile;
use crate::store::{SessionRow, Store, StoreError};
use crate::theme::{Depth, GlyphSet, Theme, ThemeError};
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that a cockpit needs.
pub struct Setup {
    pub clock: Clock,
    pub who: Who,
    pub settings: Settings,
    /// `None`: the screen says what to do first.
    pub profile: Option<Profile>,
    pub places: Places,
    /// The open database and the session; `None` without a profile.
    pub store: Option<(Store, i64)>,
    pub restored: Restored,
    pub keymap: Keymap,
    pub theme: Theme,
    /// Where the server runs.
    pub host: Arc<dyn Host>,
    pub gpu_source: Box<dyn gpu::Source>,
    pub mouse: bool,
}

/// Why a cockpit cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path}: {error}")]
    Keymap { path: PathBuf, error: KeymapError },
    #[error(transparent)]
    Theme(#[from] ThemeError),
    #[error("cannot read {path}: {what}")]
    File { path: PathBuf, what: String },
}

/// How a session is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The newest of the profile goes on; a first one begins if there is none.
    Newest,
    /// A new one begins.
    New,
}

/// Opens the database and the session of a profile.
///
/// # Errors
/// The database cannot be opened, read or written.
pub fn session(
    places: &Places,
    profile: &Profile,
    who: &Who,
    which: Which,
    simulated: bool,
) -> Result<((Store, i64), Restored), SetupError> {
    let mut store = Store::open(&places.database())?;
    let row = match which {
        Which::Newest => newest(&store, profile)?,
        Which::New => None,
    };
    let restored = match row {
        Some(row) => keeper::restore(&store, &row)?,
        None => {
            let id = keeper::begin_session(&mut store, profile, who, simulated)?;
            Restored {
                session: Some(id),
                ..Default::default()
            }
        }
    };
    let id = restored.session.unwrap_or_default();
    Ok(((store, id), restored))
}

/// Another address is another server: its session is not gone on with.
fn newest(store: &Store, profile: &Profile) -> Result<Option<SessionRow>, StoreError> {
    let url = profile.endpoint.url.trim_end_matches('/');
    let row = store.latest_session(&profile.name)?;
    Ok(row.filter(|row| row.url.trim_end_matches('/') == url))
}

/// The contexts that are on record in the newest session of a profile. Begins none.
///
/// # Errors
/// The database cannot be read.
pub fn tried(places: &Places, profile: &Profile) -> Result<Vec<Tried>, StoreError> {
    if !places.database().exists() {
        return Ok(Vec::new());
    }
    let store = Store::open(&places.database())?;
    match newest(&store, profile)? {
        Some(row) => store.configs(row.id),
        None => Ok(Vec::new()),
    }
}

/// The keymap: the user's own file over the shipped one.
///
/// # Errors
/// The file is there and wrong.
pub fn keymap(places: &Places) -> Result<Keymap, SetupError> {
    let path = places.keymap();
    match std::fs::read_to_string(&path) {
        Ok(text) => Keymap::with_user(&text).map_err(|error| SetupError::Keymap { path, error }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Keymap::default()),
        Err(error) => Err(SetupError::File {
            path,
            what: error.to_string(),
        }),
    }
}

/// The theme by name; colours and glyphs as the terminal has them unless they are set.
///
/// # Errors
/// An unknown or wrong theme.
pub fn theme(
    places: &Places,
    name: &str,
    colours: Option<&str>,
    glyphs: Option<&str>,
) -> Result<Theme, SetupError> {
    let env = |name: &str| std::env::var(name).ok();
    let depth = colours
        .and_then(Depth::from_setting)
        .unwrap_or_else(|| Depth::detect(&env));
    let set = glyphs
        .and_then(GlyphSet::from_setting)
        .unwrap_or_else(|| GlyphSet::detect(&env));
    let folder = places.themes();
    let user = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.toml"))).ok();
    Ok(Theme::load(name, &user, depth, set)?)
}

/// Who sits at the keys.
pub fn who() -> Who {
    let who = crate::host::who();
    let (user, host) = who.split_once('@').unwrap_or((&who, "?"));
    Who {
        user: user.to_string(),
        host: host.to_string(),
    }
}
