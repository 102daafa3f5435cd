//! Where vramp keeps its things: configuration, data and state, as the XDG base directories say.

use crate::profile::{HostSpec, Profile};
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};

/// The three directories of one vramp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Profiles, keymap, themes.
    pub config: PathBuf,
    /// The database and the reports.
    pub data: PathBuf,
    /// The log, and what stands beside each service (record, intent, lock).
    pub state: PathBuf,
}

impl Places {
    /// The user's own.
    ///
    /// # Errors
    /// There is no home directory; in words.
    pub fn xdg() -> Result<Self, String> {
        let dirs = etcetera::base_strategy::Xdg::new()
            .map_err(|error| format!("cannot find your home directory: {error}. Set HOME, or XDG_CONFIG_HOME, XDG_DATA_HOME and XDG_STATE_HOME"))?;
        let state = dirs.state_dir().unwrap_or_else(|| dirs.data_dir());
        Ok(Places {
            config: dirs.config_dir().join("vramp"),
            data: dirs.data_dir().join("vramp"),
            state: state.join("vramp"),
        })
    }

    /// Those of the demo, apart from all real data.
    pub fn demo(self) -> Self {
        let root = self.data.join("demo");
        Places {
            config: root.clone(),
            state: root.join("state"),
            data: root,
        }
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.data.join("vramp.db")
    }

    /// Reports.
    pub fn reports(&self) -> PathBuf {
        self.data.join("reports")
    }

    /// What stands beside the service of a profile: its record, intent and lock. Profiles of the same name in two files are two services.
    /// On another host it is below the home of the user there, whose files this machine's are not: the name alone tells.
    pub fn service(&self, profile: &Profile) -> PathBuf {
        if let HostSpec::Ssh { .. } = profile.host {
            return Path::new(".local/state/vramp/services").join(folder(&profile.name, None));
        }
        let own = self.config.join("vramp.toml");
        let other = profile.file.as_deref().filter(|file| *file != own);
        self.state
            .join("services")
            .join(folder(&profile.name, other))
    }

    /// The user's own keymap.
    pub fn keymap(&self) -> PathBuf {
        self.config.join("keymap.toml")
    }

    /// The user's own themes.
    pub fn themes(&self) -> PathBuf {
        self.config.join("themes")
    }
}

/// A name that is safe for a folder; a hash keeps two apart that would look alike, or that come from two files.
fn folder(name: &str, file: Option<&Path>) -> String {
    let safe: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(40)
        .collect();
    if safe == name && file.is_none() {
        return safe;
    }
    let file = file
        .map(|file| file.to_string_lossy().into_owned())
        .unwrap_or_default();
    // FNV-1a: stable over versions, which a hasher of the standard library is not.
    let bytes = name.bytes().chain([0]).chain(file.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{safe}-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_and_files_stay_apart() {
        assert_eq!(folder("qwen-27b", None), "qwen-27b");
        assert_ne!(folder("a/b", None), folder("a.b", None));
        assert_ne!(
            folder("llama", Some(Path::new("/a.toml"))),
            folder("llama", Some(Path::new("/b.toml")))
        );
        assert!(!folder("../../etc", None).contains(".."));
        let places = Places {
            config: "/c".into(),
            data: "/d".into(),
            state: "/s".into(),
        };
        assert_eq!(places.demo().database(), PathBuf::from("/d/demo/vramp.db"));
    }
}
