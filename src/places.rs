//! Where vramp keeps its things: configuration, data and state, as the XDG base directories say.

use etcetera::BaseStrategy;
use std::path::PathBuf;

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

    /// What stands beside the service of `profile`. The name is made safe for a file; a hash keeps two names apart that look alike then.
    pub fn service(&self, profile: &str) -> PathBuf {
        let safe: String = profile
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
        let hash = profile.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        self.state.join("services").join(if safe == profile {
            safe
        } else {
            format!("{safe}-{hash:016x}")
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_stay_apart() {
        let places = Places {
            config: "/c".into(),
            data: "/d".into(),
            state: "/s".into(),
        };
        assert_eq!(
            places.service("qwen-27b"),
            PathBuf::from("/s/services/qwen-27b")
        );
        assert_ne!(places.service("a/b"), places.service("a.b"));
        assert!(!places.service("../../etc").to_string_lossy().contains(".."));
        assert_eq!(places.demo().database(), PathBuf::from("/d/demo/vramp.db"));
    }
}
