//! Figures and the picture for the README. Not part of the tests: the scripts beside this file run them.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod diagnose;
mod drawing;
mod idle;
mod picture;
#[path = "../support/mod.rs"]
mod support;
mod svg;
