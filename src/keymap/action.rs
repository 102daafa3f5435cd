//! Everything that a key can ask for, by name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! actions {
    ($($variant:ident $name:literal $words:literal),+ $(,)?) => {
        /// A named wish of the operator. Names are stable: keymaps, the command list and the help use them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Action {
            $(#[doc = $words] $variant,)+
        }

        impl Action {
            /// All actions, in the order in which the help lists them.
            pub const ALL: &'static [Action] = &[$(Action::$variant),+];

            /// The name in keymaps and in the command list, `run-benchmark`.
            pub fn name(self) -> &'static str {
                match self { $(Action::$variant => $name),+ }
            }

            /// What it does, in one line.
            pub fn words(self) -> &'static str {
                match self { $(Action::$variant => $words),+ }
            }
        }
    };
}

actions! {
    FocusTasks "focus-tasks" "Go to the tasks",
    FocusGpus "focus-gpus" "Go to the GPUs",
    FocusBenchmark "focus-benchmark" "Go to the benchmark",
    FocusConfig "focus-config" "Go to the configuration",
    NextPane "next-pane" "Go to the next pane",
    PreviousPane "previous-pane" "Go to the previous pane",
    Zoom "zoom" "Give the pane the whole screen, or give it back",
    MoveUp "move-up" "Move up",
    MoveDown "move-down" "Move down",
    MoveLeft "move-left" "Move left: down the ladder, the cursor back in time",
    MoveRight "move-right" "Move right: up the ladder, the cursor on in time",
    MoveTop "move-top" "Move to the top",
    MoveBottom "move-bottom" "Move to the bottom",
    PageUp "page-up" "Move up a page",
    PageDown "page-down" "Move down a page",
    Act "act" "Act on the selected thing",
    RunBenchmark "run-benchmark" "Run the benchmark",
    Stop "stop" "Stop what runs (asks first)",
    SetContext "set-context" "Set the context length",
    Log "log" "Show the server's log",
    Freeze "freeze" "Freeze the charts, or let them go on",
    Copy "copy" "Copy what is shown or selected",
    Origin "origin" "Say where this number comes from",
    Search "search" "Search",
    SearchNext "search-next" "Go to the next match",
    SearchPrevious "search-previous" "Go to the previous match",
    Commands "commands" "Find every command by name",
    Help "help" "Show the keys",
    Back "back" "Go back, close",
    Quit "quit" "Quit; the server goes on (asks while something runs)",
    QuitNow "quit-now" "Quit from anywhere; the server goes on",
    Suspend "suspend" "Suspend to the shell",
    TaskAdd "task-add" "Add a task of your own",
    TaskEdit "task-edit" "Edit your own task",
    TaskDelete "task-delete" "Delete the task",
    TaskSkip "task-skip" "Skip the task, or take it up again",
    TaskUndo "task-undo" "Undo the last change to the list",
    TaskUp "task-up" "Move the task up",
    TaskDown "task-down" "Move the task down",
    TaskToggle "task-toggle" "Mark your own task as done, or not",
    Mark "mark" "Set a mark in the memory history",
    WindowShorter "window-shorter" "Show less: less time, fewer levels",
    WindowLonger "window-longer" "Show more: more time, more levels",
    WindowEarlier "window-earlier" "Go back in the memory history",
    WindowLater "window-later" "Go on in the memory history, to the present",
    OverlayStarts "overlay-starts" "Lay this start over the last one",
    ChartView "chart-view" "Show the next charts",
    CompareRuns "compare-runs" "Compare two finished runs",
    ConfigEdit "config-edit" "Edit the launch text",
    ConfigDiff "config-diff" "Show what would change",
    ConfigApply "config-apply" "Apply: restart as a trial (asks first)",
    ConfigDiscard "config-discard" "Discard the edits of the launch text",
    Keep "keep" "Keep this as the production value",
    Adjust "adjust" "Adjust the value",
    RollBack "roll-back" "Go back to the production value",
    MeasureFirst "measure-first" "Measure before deciding",
    Later "later" "Decide later",
    Yes "yes" "Yes, do it",
    No "no" "No, change nothing",
    Deadline "deadline" "Give the trial another deadline, or none",
    Drain "drain" "Wait until the requests of others have ended",
    GoOn "go-on" "Go on with the unfinished restart",
    BringBack "bring-back" "Bring the earlier value back",
    WaitOn "wait-on" "Wait on for the cards",
    EndLeftOver "end-left-over" "End what is left over from the stopped server",
    GiveUp "give-up" "Give the restart up",
    Submit "submit" "Take the text",
    Cancel "cancel" "Leave the text as it was",
    LogFollow "log-follow" "Follow the end of the log, or stop following",
}

impl Action {
    /// Whether the command list offers it: what only makes sense inside a dialog is not there.
    pub fn offered(self) -> bool {
        !self.answers()
            && !matches!(
                self,
                Action::No
                    | Action::Later
                    | Action::Adjust
                    | Action::Drain
                    | Action::Deadline
                    | Action::Submit
                    | Action::Cancel
                    | Action::LogFollow
                    | Action::Commands
            )
            || matches!(self, Action::RollBack | Action::MeasureFirst)
    }

    /// Whether this answers a question about the server. Such an action can never be on Enter: a key pressed out of habit must not
    /// restart anything.
    pub fn answers(self) -> bool {
        matches!(
            self,
            Action::Keep
                | Action::RollBack
                | Action::Yes
                | Action::GoOn
                | Action::BringBack
                | Action::WaitOn
                | Action::EndLeftOver
                | Action::GiveUp
                | Action::MeasureFirst
        )
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Action {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Action::ALL
            .iter()
            .copied()
            .find(|action| action.name() == name)
            .ok_or(())
    }
}

/// Where a key is pressed. The four panes, and the things that lie over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Context {
    Global,
    Tasks,
    Gpus,
    Benchmark,
    Config,
    /// The question after a trial is ready.
    Question,
    /// A yes-or-no dialog.
    Confirm,
    /// An unfinished restart that was found at the start.
    Recovery,
    /// Cards that stay occupied in a restart.
    Cards,
    /// A text field or the text area.
    Text,
    Log,
    Help,
    /// A list to choose from, with a filter to type.
    List,
}

impl Context {
    pub const ALL: &'static [Context] = &[
        Context::Global,
        Context::Tasks,
        Context::Gpus,
        Context::Benchmark,
        Context::Config,
        Context::Question,
        Context::Confirm,
        Context::Recovery,
        Context::Cards,
        Context::Text,
        Context::Log,
        Context::Help,
        Context::List,
    ];

    /// The name of its table in a keymap file.
    pub fn name(self) -> &'static str {
        match self {
            Context::Global => "global",
            Context::Tasks => "tasks",
            Context::Gpus => "gpus",
            Context::Benchmark => "benchmark",
            Context::Config => "config",
            Context::Question => "question",
            Context::Confirm => "confirm",
            Context::Recovery => "recovery",
            Context::Cards => "cards",
            Context::Text => "text",
            Context::Log => "log",
            Context::Help => "help",
            Context::List => "list",
        }
    }

    /// Whether a key of `[global]` reaches `action` from here. From the panes all do. What lies over them lets through only what is
    /// harmless there, and a text only what no text can mean.
    pub fn passes(self, action: Action) -> bool {
        match self {
            Context::Global
            | Context::Tasks
            | Context::Gpus
            | Context::Benchmark
            | Context::Config => true,
            Context::Text | Context::List => {
                matches!(action, Action::QuitNow | Action::Suspend)
            }
            Context::Question | Context::Confirm | Context::Recovery | Context::Cards => {
                is_move(action)
                    || matches!(
                        action,
                        Action::Back
                            | Action::Help
                            | Action::Quit
                            | Action::QuitNow
                            | Action::Suspend
                    )
            }
            Context::Log | Context::Help => {
                is_move(action)
                    || matches!(
                        action,
                        Action::Back
                            | Action::Help
                            | Action::Quit
                            | Action::QuitNow
                            | Action::Suspend
                            | Action::Copy
                            | Action::Search
                            | Action::SearchNext
                            | Action::SearchPrevious
                    )
            }
        }
    }
}

fn is_move(action: Action) -> bool {
    matches!(
        action,
        Action::MoveUp
            | Action::MoveDown
            | Action::MoveLeft
            | Action::MoveRight
            | Action::MoveTop
            | Action::MoveBottom
            | Action::PageUp
            | Action::PageDown
    )
}

impl FromStr for Context {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Context::ALL
            .iter()
            .copied()
            .find(|context| context.name() == name)
            .ok_or(())
    }
}
