//! The kernel's lock on a file, here.

use super::{HostError, failed};
use crate::units;
use rustix::fs::{FlockOperation, flock};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// Whether a lock could be taken.
#[derive(Debug)]
pub enum Locked {
    /// It is ours until this is dropped.
    Ours(Box<dyn Unlock>),
    /// Somebody else has it: what he wrote of himself, cleaned; empty if that is nothing.
    Held(String),
}

/// A lock that is held. Dropping it gives it back.
pub trait Unlock: fmt::Debug + Send + Sync {
    /// Whether it is still ours: a lock on another host ends with the connection.
    fn held(&self) -> bool;
}

impl Unlock for File {
    fn held(&self) -> bool {
        true
    }
}

/// Bytes of a holder's own words that are read.
const WORDS: u64 = 300;

/// Takes the lock, or says who has it.
pub fn lock(path: &Path, who: &str) -> Result<Locked, HostError> {
    let disk = |error: std::io::Error| failed(format!("lock {}", path.display()), error);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(disk)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut bytes = Vec::new();
            // Who cannot be read has not said who he is.
            let _ = (&mut file).take(WORDS).read_to_end(&mut bytes);
            return Ok(Locked::Held(units::clean(&String::from_utf8_lossy(&bytes))));
        }
        Err(error) => return Err(disk(error.into())),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(format!("{who}\n").as_bytes()))
        .map_err(disk)?;
    Ok(Locked::Ours(Box::new(file)))
}
