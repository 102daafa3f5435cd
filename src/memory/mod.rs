//! What a context costs: the model's geometry, exact bytes, what fits, and how far the boot log bears it out. Pure arithmetic; only
//! the readers of `config.json` and of GGUF headers see text and bytes, and they see them as they are handed in.
//!
//! All sizes are bytes on one card: with stages, on the fullest one.

pub mod bytes;
mod calibrate;
pub mod config;
mod cost;
mod deployment;
mod error;
mod estimate;
mod forecast;
pub mod geometry;
pub mod gguf;
pub mod launched;
mod pool;
#[cfg(test)]
mod properties;
pub mod size;
#[cfg(test)]
mod tests;
pub mod types;

pub use bytes::Split;
pub use calibrate::{Calibration, Measured, Record, calibrate};
pub use cost::Bytes;
pub use deployment::{Deployment, UBATCH};
pub use error::MemoryError;
pub use estimate::{Estimate, estimate};
pub use forecast::{Bounds, Forecast, forecast, layout, limit};
pub use geometry::Geometry;
