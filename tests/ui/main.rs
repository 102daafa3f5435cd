//! The screen: pictures of every pane and dialog, and what holds for any state at any size.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod pictures;
mod random;
mod rig;
mod rules;
mod show;
