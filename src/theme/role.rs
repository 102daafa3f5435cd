//! What a piece of the screen means. Colours belong to roles; panes never name a colour.

use std::str::FromStr;

macro_rules! roles {
    ($($variant:ident $name:literal $words:literal),+ $(,)?) => {
        /// A meaning that a theme gives a look.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Role {
            $(#[doc = $words] $variant,)+
        }

        impl Role {
            /// All roles.
            pub const ALL: &'static [Role] = &[$(Role::$variant),+];

            /// The name in theme files, `border-focused`.
            pub fn name(self) -> &'static str {
                match self { $(Role::$variant => $name),+ }
            }

            /// What it is for, in one line.
            pub fn words(self) -> &'static str {
                match self { $(Role::$variant => $words),+ }
            }
        }
    };
}

roles! {
    Text "text" "Ordinary text and figures",
    Strong "strong" "The figures and words that matter most",
    Dim "dim" "Units, labels, what is less important",
    Accent "accent" "The selected thing, the running thing",
    Good "good" "A good state",
    Warn "warn" "A state to look at",
    Bad "bad" "A bad state",
    Border "border" "Borders of panes",
    BorderFocused "border-focused" "The border of the pane with the keys, and of dialogs",
    Title "title" "Titles of panes",
    Header "header" "The ground of the first and of the last line",
    Key "key" "Keys in the footer and in dialogs",
    Selection "selection" "The ground of the selected line",
    Input "input" "A field that takes text or a choice",
    Match "match" "What a search found",
    BarFill "bar-fill" "The full part of a progress bar",
    BarTrack "bar-track" "The empty part of a bar",
    Reserved "reserved" "Memory that the driver keeps for itself",
    Axis "axis" "Axes of charts",
    Mark "mark" "Marks on the time axis",
    Rate "rate" "Output rate",
    Decode "decode" "Decode rate of one request",
    Ttft "ttft" "Time to first token",
    Added "added" "Added lines of a diff",
    Removed "removed" "Removed lines of a diff",
    Simulated "simulated" "The word SIMULATED",
    Shade "shade" "Everything behind a dialog",
}

impl Role {
    /// Whether the role only lies under what is written, whose colour stays.
    pub(super) fn is_ground(self) -> bool {
        matches!(
            self,
            Role::Selection | Role::Header | Role::BarTrack | Role::Reserved | Role::Shade
        )
    }

    /// Whether the role is told by its ground. Where the terminal cannot show that ground, it is shown reversed.
    pub(super) fn needs_ground(self) -> bool {
        matches!(self, Role::Selection | Role::Input | Role::Match)
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Role::ALL
            .iter()
            .copied()
            .find(|role| role.name() == name)
            .ok_or(())
    }
}
