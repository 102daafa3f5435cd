//! The screen: pictures of every pane and dialog, and what holds for any state at any size.

mod pictures;
mod random;
mod rig;
mod rules;
mod show;
