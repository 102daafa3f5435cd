//! The restart as data: where it stands, what was seen, what follows. Nothing here touches the world.
//!
//! ```text
//! forward  validate -> stop -> wait for the cards -> start -> watch -> prove -> ready
//!             |failed    \______________________ failed _______________/
//!          refused   (before the order to stop: refused)
//!                                         |
//! back                                  stop -> wait for the cards -> start -> watch -> prove -> rolled back
//!                                         \_____________________ failed ________________/
//!                                                                halted
//! ```

use super::{Leg, StartFailure, Step, WayOut};
use crate::engine::Facts;

/// Where a restart stands: the step that is being taken. The way back knows why it is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Forward(Step),
    Back(Step, StartFailure),
}

impl State {
    pub fn step(&self) -> Step {
        match self {
            State::Forward(step) | State::Back(step, _) => *step,
        }
    }

    pub fn leg(&self) -> Leg {
        match self {
            State::Forward(_) => Leg::Forward,
            State::Back(..) => Leg::Back,
        }
    }
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// It is done.
    Passed,
    /// The proof: a real token of the new process, and its facts.
    Proven(Box<Facts>),
    Failed(StartFailure),
    /// It failed, and nothing was stopped yet.
    Untouched(StartFailure),
}

/// How it ends.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    Ready(Box<Facts>),
    /// Before anything was stopped.
    Refused(StartFailure),
    RolledBack(StartFailure, Box<Facts>),
    Halted {
        failure: StartFailure,
        back: Option<StartFailure>,
    },
}

/// What follows.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Write the intent, then take this step.
    Take(State),
    End(End),
}

/// What follows when a step came to something. `way_back`: a target is known.
pub fn next(state: State, seen: Seen, way_back: bool) -> Next {
    match (state, seen) {
        (State::Forward(Step::Prove), Seen::Proven(facts)) => Next::End(End::Ready(facts)),
        (State::Back(Step::Prove, failure), Seen::Proven(facts)) => {
            Next::End(End::RolledBack(failure, facts))
        }
        (State::Forward(Step::Validate), Seen::Failed(failure))
        | (State::Forward(_), Seen::Untouched(failure)) => Next::End(End::Refused(failure)),
        // Whatever the failed start left is stopped first, also where nothing can come back.
        (State::Forward(_), Seen::Failed(failure)) => Next::Take(State::Back(Step::Stop, failure)),
        (State::Back(_, failure), Seen::Failed(back) | Seen::Untouched(back)) => {
            Next::End(End::Halted {
                failure,
                back: Some(back),
            })
        }
        (State::Back(Step::Stop, failure), _) if !way_back => Next::End(End::Halted {
            failure,
            back: None,
        }),
        (State::Forward(step), _) => Next::Take(State::Forward(after(step))),
        (State::Back(step, failure), _) => Next::Take(State::Back(after(step), failure)),
    }
}

/// The step after one that passed. The last is repeated until it is proven or fails.
fn after(step: Step) -> Step {
    match step {
        Step::Validate => Step::Stop,
        Step::Stop => Step::WaitCards,
        Step::WaitCards => Step::Start,
        Step::Start => Step::Watch,
        Step::Watch | Step::Prove => Step::Prove,
    }
}

/// Which configuration runs when an unfinished restart is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    Nothing,
    /// The one that was asked for.
    Asked,
    /// The target of the way back.
    Target,
    /// Another, as the old one before its stop.
    Other,
}

/// Where to take up a restart that stands at `leg` and `step`. `failure` says why the way back is taken: what the forward leg
/// failed of, or that it was interrupted.
///
/// A step that was on disk may or may not have been taken, so only what is seen to run counts: a new process that runs is
/// watched on; everything else begins with the stop, which does nothing where nothing runs. Going on with a way back means the way
/// back: the value that was asked for has failed already. Where nothing was stopped yet, rolling back leaves the running server
/// alone and proves that it answers.
pub fn enter(
    (leg, step): (Leg, Step),
    way: WayOut,
    running: Running,
    way_back: bool,
    failure: StartFailure,
) -> Next {
    let began = step >= Step::Start;
    match (leg, way) {
        (Leg::Forward, WayOut::GoOn) if step == Step::Validate => {
            Next::Take(State::Forward(Step::Validate))
        }
        (Leg::Forward, WayOut::GoOn) if began && running == Running::Asked => {
            Next::Take(State::Forward(Step::Watch))
        }
        (Leg::Forward, WayOut::GoOn) => Next::Take(State::Forward(Step::Stop)),
        (Leg::Forward, WayOut::RollBack) if step == Step::Validate => match running {
            Running::Nothing if way_back => Next::Take(State::Back(Step::Stop, failure)),
            Running::Nothing => Next::End(End::Refused(failure)),
            _ => Next::Take(State::Back(Step::Prove, failure)),
        },
        (Leg::Back, _) if began && running == Running::Target => {
            Next::Take(State::Back(Step::Watch, failure))
        }
        (Leg::Forward, WayOut::RollBack) | (Leg::Back, _) => {
            Next::Take(State::Back(Step::Stop, failure))
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
