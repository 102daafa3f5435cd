//! The cockpit's core: no tokio, no I/O, no clock, no ratatui.

pub mod bench;
pub mod config;
pub mod deadline;
pub mod dialog;
pub mod diff;
pub mod effect;
pub mod evidence;
pub mod forecast;
pub mod history;
pub mod keys;
pub mod model;
pub mod msg;
pub mod origin;
pub mod question;
pub mod rig;
pub mod task;
pub mod tasks;
pub mod tried;
pub mod update;
pub mod window;
