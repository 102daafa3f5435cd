//! vLLM and SGLang themselves, on the CPU with a tiny model. `tests/run full` installs them and runs these; the ordinary tests leave them out,
//! since both together need some 8 GB and minutes to start.

// Tests may stop where they cannot go on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raise;
mod sglang;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod vllm;
