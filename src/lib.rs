//! `vramp` measures an inference server, raises its context length by restarting it while watching every card, and keeps the
//! evidence on which the operator decides.
//!
//! A pure core ([`app`]), actors that own every side effect ([`runtime`] and the domain modules), views that only read ([`ui`]).
//! `app` and the domain modules never import `ui` or `runtime`; a test checks it.

pub mod app;
pub mod bench;
pub mod cli;
pub mod clock;
pub mod confirm;
pub mod discover;
pub mod engine;
pub mod gpu;
pub mod host;
pub mod keymap;
pub mod launch;
pub mod memory;
pub mod places;
pub mod profile;
pub mod ramp;
pub mod reading;
pub mod report;
pub mod runtime;
pub mod service;
pub mod sim;
pub mod store;
pub mod theme;
pub mod ui;
pub mod units;
