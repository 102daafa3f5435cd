//! The metadata of a GGUF file: its header alone, however large the file is.
//!
//! Format: magic `GGUF`, version (u32), tensors (u64), entries (u64), then for each entry its name, its type and its value, little
//! endian (`docs/gguf.md` of ggml). Only numbers and short lists are kept; the word lists of the tokenizer are stepped over.

mod model;
mod read;
#[cfg(test)]
mod tests;

use super::error::MemoryError;
use super::geometry::Geometry;
use std::io::{Read, Seek};

/// The four bytes with which every such file begins.
pub const MAGIC: &[u8; 4] = b"GGUF";

/// Reads the header and what it says about memory. `name` is what the model is called in the answer.
pub fn read(from: impl Read + Seek, name: Option<&str>) -> Result<Geometry, MemoryError> {
    model::geometry(&read::header(from)?, name)
}
