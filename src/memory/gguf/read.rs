//! The entries of a GGUF header, in bounds: a hostile file costs an error, not memory or time.

use crate::memory::error::MemoryError;
use std::collections::HashMap;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Names of entries are short; the format's own bound is 65,535.
const LONGEST_NAME: u64 = 65_535;
/// Texts that are kept; longer ones are stepped over.
const LONGEST_TEXT: u64 = 4096;
/// Lists that are kept: one value a layer.
const LONGEST_LIST: u64 = 4096;
/// Entries of a real file: some hundreds.
const MOST_ENTRIES: u64 = 65_536;
/// Words of a tokenizer: some hundred thousand.
const MOST_WORDS: u64 = 16 << 20;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Whole(u64),
    Real(f64),
    Text(String),
    List(Vec<u64>),
}

/// The entries by their names.
pub type Header = HashMap<String, Value>;

struct Source<R> {
    from: BufReader<R>,
    left: u64,
}

fn fail(what: impl Into<String>) -> MemoryError {
    MemoryError::Gguf(what.into())
}

impl<R: Read + Seek> Source<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], MemoryError> {
        let mut bytes = [0; N];
        self.take(N as u64)?;
        self.from
            .read_exact(&mut bytes)
            .map_err(|error| fail(format!("it ends in the middle ({error})")))?;
        Ok(bytes)
    }

    /// Counts `n` bytes off what the file still has.
    fn take(&mut self, n: u64) -> Result<(), MemoryError> {
        self.left = self
            .left
            .checked_sub(n)
            .ok_or_else(|| fail("it ends in the middle of the header"))?;
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, MemoryError> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, MemoryError> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn skip(&mut self, n: u64) -> Result<(), MemoryError> {
        self.take(n)?;
        let step = i64::try_from(n).map_err(|_| fail("a length in it cannot be"))?;
        self.from
            .seek_relative(step)
            .map_err(|error| fail(format!("it cannot be read on ({error})")))
    }

    fn text(&mut self, longest: u64) -> Result<Option<String>, MemoryError> {
        let length = self.u64()?;
        if length > longest {
            self.skip(length)?;
            return Ok(None);
        }
        self.take(length)?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.from
            .read_exact(&mut bytes)
            .map_err(|error| fail(format!("it ends in the middle ({error})")))?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A value of a fixed size; `None` for a kind that is no number.
    fn number(&mut self, kind: u32) -> Result<Option<Value>, MemoryError> {
        let whole = |n: i64| u64::try_from(n).map_or(Value::Real(n as f64), Value::Whole);
        Ok(Some(match kind {
            0 | 7 => Value::Whole(u8::from_le_bytes(self.bytes()?).into()),
            1 => whole(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Whole(u16::from_le_bytes(self.bytes()?).into()),
            3 => whole(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Whole(self.u32()?.into()),
            5 => whole(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Real(f32::from_le_bytes(self.bytes()?).into()),
            10 => Value::Whole(self.u64()?),
            11 => whole(i64::from_le_bytes(self.bytes()?)),
            12 => Value::Real(f64::from_le_bytes(self.bytes()?)),
            _ => return Ok(None),
        }))
    }

    fn value(&mut self, kind: u32) -> Result<Option<Value>, MemoryError> {
        match kind {
            8 => Ok(self.text(LONGEST_TEXT)?.map(Value::Text)),
            9 => self.list(),
            other => match self.number(other)? {
                Some(value) => Ok(Some(value)),
                None => Err(fail(format!("it has a value of the unknown kind {other}"))),
            },
        }
    }

    fn list(&mut self) -> Result<Option<Value>, MemoryError> {
        let kind = self.u32()?;
        let length = self.u64()?;
        if let Some(size) = size(kind) {
            if length > LONGEST_LIST {
                let bytes = length
                    .checked_mul(size)
                    .ok_or_else(|| fail("a length in it cannot be"))?;
                self.skip(bytes)?;
                return Ok(None);
            }
            let mut values = Vec::new();
            for _ in 0..length {
                match self.number(kind)? {
                    Some(Value::Whole(n)) => values.push(n),
                    Some(Value::Real(f)) if f.fract() == 0.0 && f >= 0.0 => values.push(f as u64),
                    _ => {}
                }
            }
            // A list with values that are no counts is not one of a value a layer.
            let whole = values.len() as u64 == length;
            return Ok(whole.then_some(Value::List(values)));
        }
        if kind != 8 {
            return Err(fail(format!("it has a list of the unknown kind {kind}")));
        }
        if length > MOST_WORDS {
            return Err(fail(format!("it claims a list of {length} texts")));
        }
        for _ in 0..length {
            let bytes = self.u64()?;
            self.skip(bytes)?;
        }
        Ok(None)
    }
}

/// Bytes of one value of a fixed-size kind.
fn size(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Reads the entries.
pub fn header(mut from: impl Read + Seek) -> Result<Header, MemoryError> {
    let unreadable = |error: std::io::Error| fail(format!("it cannot be read ({error})"));
    let left = from.seek(SeekFrom::End(0)).map_err(unreadable)?;
    from.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let mut source = Source {
        from: BufReader::with_capacity(1 << 16, from),
        left,
    };
    if &source.bytes::<4>()? != super::MAGIC {
        return Err(fail("it does not begin with GGUF"));
    }
    let version = source.u32()?;
    if !(2..=3).contains(&version) {
        let why = if version.swap_bytes() <= 3 {
            "it is for big-endian machines".to_string()
        } else {
            format!("its version is {version}; 2 and 3 are known")
        };
        return Err(fail(why));
    }
    let _tensors = source.u64()?;
    let entries = source.u64()?;
    if entries > MOST_ENTRIES {
        return Err(fail(format!("it claims {entries} entries")));
    }
    let mut header = Header::new();
    for _ in 0..entries {
        let name = source
            .text(LONGEST_NAME)?
            .ok_or_else(|| fail("an entry's name is longer than the format allows"))?;
        let kind = source.u32()?;
        if let Some(value) = source.value(kind)? {
            header.insert(name, value);
        }
    }
    Ok(header)
}
