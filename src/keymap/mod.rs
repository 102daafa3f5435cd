//! Keys are names of actions, by place. The defaults are a file; the operator's own file goes over it.

mod action;
mod key;
mod read;

pub use action::{Action, Context};
pub use key::{Code, Key};
pub use read::KeymapError;

use std::collections::BTreeMap;

/// The shipped keymap, as `vramp keys` prints it.
pub const DEFAULT: &str = include_str!("../../assets/keymap.toml");

/// Which keys an action has, by place; the first key is the one that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    by_context: BTreeMap<Context, BTreeMap<Action, Vec<Key>>>,
}

/// One line of the help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub action: Action,
    pub keys: Vec<Key>,
}

impl Default for Keymap {
    /// The shipped keymap. A test proves that it reads; a wrong one would leave no keys.
    fn default() -> Self {
        let mut keymap = Keymap {
            by_context: BTreeMap::new(),
        };
        let read = read::merge(&mut keymap.by_context, DEFAULT);
        debug_assert!(read.is_ok(), "{read:?}");
        keymap
    }
}

impl Keymap {
    /// The shipped keymap with the operator's file over it. An action named there loses its shipped keys in that place.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown place, action or key, one key for two actions in one place, Enter for an answer about the
    /// server: each with line and column.
    pub fn with_user(text: &str) -> Result<Self, KeymapError> {
        let mut keymap = Keymap::default();
        read::merge(&mut keymap.by_context, text)?;
        Ok(keymap)
    }

    /// What `key` means in `context`: first what the place itself says, then what `[global]` says, if the place lets it through.
    pub fn lookup(&self, context: Context, key: Key) -> Option<Action> {
        self.find(context, key).or_else(|| {
            self.find(Context::Global, key)
                .filter(|action| context.passes(*action))
        })
    }

    /// The key that reaches `action` from `context`, as the footer shows it; `None` if no key does.
    pub fn key_for(&self, context: Context, action: Action) -> Option<String> {
        [context, Context::Global]
            .iter()
            .filter_map(|place| self.by_context.get(place)?.get(&action))
            .flatten()
            .find(|key| self.lookup(context, **key) == Some(action))
            .map(Key::to_string)
    }

    /// The actions with keys of one place, in the order of [`Action::ALL`]. Those of `[global]` are not repeated for other places.
    pub fn entries(&self, context: Context) -> Vec<Entry> {
        let Some(actions) = self.by_context.get(&context) else {
            return Vec::new();
        };
        actions
            .iter()
            .filter(|(_, keys)| !keys.is_empty())
            .map(|(action, keys)| Entry {
                action: *action,
                keys: keys.clone(),
            })
            .collect()
    }

    fn find(&self, context: Context, key: Key) -> Option<Action> {
        self.by_context
            .get(&context)?
            .iter()
            .find(|(_, keys)| keys.contains(&key))
            .map(|(action, _)| *action)
    }
}

#[cfg(test)]
mod tests;
