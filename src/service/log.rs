//! The server's log on disk: lines from a byte offset on, whatever the server wrote.

use crate::units;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that one call reads at most.
const CHUNK: u64 = 1 << 20;
/// A backlog longer than this is not read from its beginning: the end is what decides.
const BACKLOG: u64 = 8 << 20;
/// Bytes of one line that are kept.
const LINE: usize = 8 << 10;

/// Where the log ends, in bytes; 0 if there is none yet.
pub fn end(path: &Path) -> io::Result<u64> {
    match std::fs::metadata(path) {
        Ok(meta) => Ok(meta.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Lines from byte `from` on, cleaned, without empty ones, and the offset to go on from. At most 1 MiB a call: the caller goes
/// on until the offset stays.
///
/// A line ends at a line feed or a carriage return (progress bars). A line that has not ended is left for the next call, unless
/// `ended` says that nobody writes any more, or it fills a whole call. A file that became shorter was truncated or replaced: it
/// is read from its beginning. A long backlog is skipped to its end, which a line says.
pub fn since(path: &Path, from: u64, ended: bool) -> io::Result<(Vec<String>, u64)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    let mut lines = Vec::new();
    let mut start = if from > size { 0 } else { from };
    let skip = size - start > BACKLOG;
    if skip {
        let skipped = size - start - CHUNK;
        lines.push(format!("… {skipped} bytes of the log are skipped here"));
        start = size - CHUNK;
    }
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(CHUNK).read_to_end(&mut bytes)?;
    let full = bytes.len() as u64 == CHUNK;
    let whole = match bytes.iter().rposition(|byte| is_end(*byte)) {
        _ if ended && !full => bytes.len(),
        Some(at) => at + 1,
        None if full => bytes.len(),
        None => 0,
    };
    let mut pieces = bytes.get(..whole).unwrap_or_default().split(|b| is_end(*b));
    if skip {
        // The first piece is the rest of a line that began in what was skipped.
        pieces.next();
    }
    lines.extend(pieces.map(line).filter(|line| !line.is_empty()));
    Ok((lines, start + whole as u64))
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn line(bytes: &[u8]) -> String {
    let kept = bytes.get(..LINE).unwrap_or(bytes);
    let mut text = units::clean(&String::from_utf8_lossy(kept));
    text.truncate(text.trim_end().len());
    if kept.len() < bytes.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn written(text: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.log");
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn a_line_is_given_once_and_only_when_it_has_ended() {
        let (_dir, path) = written(b"one\ntwo\npart");
        let (lines, at) = since(&path, 0, false).unwrap();
        assert_eq!((lines, at), (vec!["one".to_string(), "two".into()], 8));
        assert_eq!(since(&path, at, false).unwrap(), (vec![], 8));
        assert_eq!(
            since(&path, at, true).unwrap(),
            (vec!["part".to_string()], 12)
        );
        assert_eq!(since(&path, 12, true).unwrap(), (vec![], 12));
    }

    #[test]
    fn progress_bars_colours_and_bytes_that_are_no_text() {
        let (_dir, path) = written(b"\r 10%\r\x1b[32m 20%\x1b[0m\n\xff\xfe ok\n\n");
        let (lines, _) = since(&path, 0, false).unwrap();
        assert_eq!(lines, [" 10%", " 20%", "\u{fffd}\u{fffd} ok"]);
    }

    #[test]
    fn a_shorter_file_is_read_from_its_beginning_and_a_missing_one_is_empty() {
        let (_dir, path) = written(b"new\n");
        assert_eq!(
            since(&path, 1000, false).unwrap(),
            (vec!["new".to_string()], 4)
        );
        let gone = path.with_file_name("gone");
        assert_eq!(since(&gone, 5, false).unwrap(), (vec![], 0));
        assert_eq!(end(&gone).unwrap(), 0);
        assert_eq!(end(&path).unwrap(), 4);
    }

    #[test]
    fn huge_lines_and_backlogs_stay_bounded() {
        let mut text = vec![b'x'; 3 << 20];
        text.extend_from_slice(b"\nlast\n");
        let (_dir, path) = written(&text);
        let (mut lines, mut at) = (Vec::new(), 0);
        loop {
            let (more, next) = since(&path, at, false).unwrap();
            if next == at {
                break;
            }
            lines.extend(more);
            at = next;
        }
        assert!(lines.iter().all(|line| line.len() <= LINE + 3));
        assert_eq!(lines.last().unwrap(), "last");

        let text = "a line of the log\n".repeat(1 << 20);
        let (_dir, path) = written(text.as_bytes());
        let (lines, at) = since(&path, 0, false).unwrap();
        assert_eq!(at, text.len() as u64);
        assert!(lines[0].contains("skipped"));
        assert!(lines[1..].iter().all(|line| line == "a line of the log"));
    }
}
