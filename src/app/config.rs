//! The config pane's state.

use crate::profile::{Profile, ServiceSpec};

/// Text that is being edited. It lives in the model, so that edits replay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edit {
    pub text: String,
    /// Line and column, both from 0, the column in characters.
    pub cursor: (usize, usize),
}

impl Edit {
    /// `text` with the cursor at its end.
    pub fn at_end(text: impl Into<String>) -> Self {
        let text = text.into();
        let last = text.split('\n').next_back().unwrap_or("");
        let cursor = (text.matches('\n').count(), last.chars().count());
        Edit { text, cursor }
    }
}

/// What the pane knows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfigPane {
    /// Contexts to offer, ascending, per request.
    pub ladder: Vec<u64>,
    /// The context that the operator has turned to.
    pub chosen: Option<u64>,
    /// The launch text as it is in force (of the profile).
    pub launch_text: String,
    /// The launch text as edited, if it differs.
    pub edited: Option<String>,
    /// The text area has the keys.
    pub editing: Option<Edit>,
    /// What is wrong with the edited text.
    pub error: Option<crate::profile::TextError>,
}

impl ConfigPane {
    pub fn new(profile: Option<&Profile>) -> Self {
        let Some(profile) = profile else {
            return ConfigPane::default();
        };
        ConfigPane {
            ladder: profile.ladder.clone(),
            chosen: profile.production,
            launch_text: match &profile.service {
                ServiceSpec::Process { launch, .. } => crate::profile::launch_text(launch),
                ServiceSpec::None
                | ServiceSpec::Systemd { .. }
                | ServiceSpec::Compose(_)
                | ServiceSpec::Command(_) => String::new(),
            },
            edited: None,
            editing: None,
            error: None,
        }
    }

    /// The ladder with `also` in it.
    pub fn steps(&self, also: Option<u64>) -> Vec<u64> {
        let mut steps = self.ladder.clone();
        steps.extend(also);
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}
