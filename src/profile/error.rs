//! What can be wrong with a profile, with its place in the file.

use crate::units::clean;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A place in a file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    pub line: usize,
    pub column: usize,
    /// Characters to underline, at least 1.
    pub length: usize,
    /// The line as it stands, without what a terminal would obey.
    pub text: String,
}

impl Place {
    /// The place of a byte range in `text`; the end of the file if the range lies outside.
    pub(super) fn of(path: &Path, text: &str, span: Range<usize>) -> Self {
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let (before, after) = text.split_at(start);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = after.find('\n').map_or(text.len(), |at| start + at);
        let end = span.end.clamp(start, line_end);
        let count = |range: Range<usize>| text.get(range).map_or(0, |part| part.chars().count());
        Place {
            path: path.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: count(line_start..start) + 1,
            length: count(start..end).max(1),
            text: clean(text.get(line_start..line_end).unwrap_or_default()),
        }
    }
}

/// Why a profile cannot be used or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Something in the file is wrong.
    Invalid { place: Box<Place>, message: String },
    /// The file cannot be read.
    Unread {
        path: PathBuf,
        what: String,
        advice: String,
    },
    /// The file cannot be written; it is as it was.
    Unwritten { what: String },
    /// The file is in order, but not for what was asked: no such profile, none chosen, a change that does not fit.
    Refused { path: PathBuf, message: String },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::Invalid { place, message } => {
                let number = place.line.to_string();
                let bar = " ".repeat(number.len());
                writeln!(
                    f,
                    "{}:{}:{}: {message}",
                    place.path.display(),
                    place.line,
                    place.column
                )?;
                writeln!(f, "{bar} |")?;
                writeln!(f, "{number} | {}", place.text)?;
                write!(
                    f,
                    "{bar} | {}{}",
                    " ".repeat(place.column - 1),
                    "^".repeat(place.length)
                )
            }
            ProfileError::Unread { path, what, advice } => {
                write!(f, "cannot read {}: {what}. {advice}", path.display())
            }
            ProfileError::Unwritten { what } => write!(
                f,
                "cannot {what}. The file is as it was; is its directory writable, and is there room on the disk?"
            ),
            ProfileError::Refused { path, message } => write!(f, "{}: {message}", path.display()),
        }
    }
}

/// `; did you mean "production"?` for a name close to a known one, else the list of the known ones.
pub(super) fn meant<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let close = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance * 3 <= name.chars().count() + 1)
        .min();
    match close {
        Some((_, name)) => format!("; did you mean {name:?}?"),
        None if known.is_empty() => String::new(),
        None => format!("; known are {}", known.join(", ")),
    }
}
