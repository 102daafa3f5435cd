//! One line of a log without what others put before it: the time, the rank, the container, the journal.

use crate::units::clean;
use std::borrow::Cow;

/// A line of a log, taken apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line<'a> {
    /// The message itself.
    pub text: &'a str,
    /// Seconds on a clock of the log's own; only differences mean something.
    pub at: Option<f64>,
    /// Which rank or process of the server speaks, as the log writes it.
    pub rank: Option<&'a str>,
    /// The form of the prefix, as a hint at the engine.
    pub form: Form,
}

/// Who writes prefixes like this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Plain,
    /// `[2026-09-02 10:00:01 TP0]`
    Sglang,
    /// `(EngineCore pid=7) INFO 09-18 08:00:01 [core.py:7]`
    Vllm,
    /// `0.00.003.791 I`
    Llama,
}

/// The line without colours and control characters; it is copied only if there are any.
pub fn cleaned(raw: &str) -> Cow<'_, str> {
    let harmless = |byte: u8| (0x20..0x7f).contains(&byte);
    if raw.bytes().all(harmless) {
        Cow::Borrowed(raw)
    } else {
        Cow::Owned(clean(raw))
    }
}

/// Takes a cleaned line apart.
pub fn split(cleaned: &str) -> Line<'_> {
    let mut line = Line {
        text: cleaned.trim(),
        at: None,
        rank: None,
        form: Form::Plain,
    };
    // A container's prefix, the journal's, the engine's own, the rank's: each at most once or twice.
    for _ in 0..6 {
        if !strip_one(&mut line) {
            break;
        }
    }
    line
}

fn strip_one(line: &mut Line<'_>) -> bool {
    let text = line.text;
    let Some(first) = text.as_bytes().first() else {
        return false;
    };
    let found = match first {
        b'[' => bracket(text),
        b'(' => process(text),
        b'0'..=b'9' => llama(text).or_else(|| iso(text)),
        _ => None,
    };
    let found = found
        .or_else(|| leveled(text))
        .or_else(|| compose(text))
        .or_else(|| journal(text));
    let Some(found) = found else {
        return false;
    };
    line.text = found.rest.trim_start();
    line.at = found.at.or(line.at);
    line.rank = found.rank.or(line.rank);
    if found.form != Form::Plain {
        line.form = found.form;
    }
    true
}

/// What a prefix said, and what is left.
struct Found<'a> {
    rest: &'a str,
    at: Option<f64>,
    rank: Option<&'a str>,
    form: Form,
}

impl<'a> Found<'a> {
    fn plain(rest: &'a str, at: Option<f64>) -> Self {
        Found {
            rest,
            at,
            rank: None,
            form: Form::Plain,
        }
    }
}

/// `[2026-09-02 10:00:01 DP0 TP0] `, and torch's `[rank0]: `.
fn bracket(text: &str) -> Option<Found<'_>> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    if inside.starts_with("rank") {
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        return Some(Found {
            rest,
            at: None,
            rank: Some(inside),
            form: Form::Plain,
        });
    }
    // `[TP0] `, where somebody has taken the time away.
    let rank = ["TP", "DP", "PP"]
        .iter()
        .find_map(|name| inside.strip_prefix(name));
    if rank.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Some(Found {
            rest,
            at: None,
            rank: Some(inside),
            form: Form::Sglang,
        });
    }
    let (date, time) = inside.split_once(' ')?;
    let (time, rank) = match time.split_once(' ') {
        Some((time, rank)) => (time, Some(rank)),
        None => (time, None),
    };
    Some(Found {
        rest,
        at: Some(day(date)? + clock(time)?),
        rank,
        form: Form::Sglang,
    })
}

/// `(EngineCore_DP0 pid=1094) `.
fn process(text: &str) -> Option<Found<'_>> {
    let (inside, rest) = text.strip_prefix('(')?.split_once(')')?;
    inside.contains("pid=").then_some(Found {
        rest,
        at: None,
        rank: Some(inside),
        form: Form::Vllm,
    })
}

/// `ERROR 02-08 10:11:12 [core.py:390] `; older releases leave the opening bracket out.
fn leveled(text: &str) -> Option<Found<'_>> {
    let levels = ["INFO ", "WARNING ", "ERROR ", "DEBUG ", "CRITICAL "];
    let tail = levels.iter().find_map(|level| text.strip_prefix(level))?;
    let (stamp, tail) = tail.split_at_checked("02-08 10:11:12".len())?;
    let (date, time) = stamp.split_once(' ')?;
    let (place, rest) = tail.split_once(']')?;
    place.contains(".py:").then_some(())?;
    Some(Found {
        rest,
        at: Some(day(date)? + clock(time)?),
        rank: None,
        form: Form::Vllm,
    })
}

/// `0.00.003.791 I `: minutes, seconds, milliseconds and microseconds since the start, and the level.
fn llama(text: &str) -> Option<Found<'_>> {
    let (stamp, rest) = text.split_once(' ')?;
    let mut parts = stamp.split('.').map(str::parse::<u32>);
    let mut part = || parts.next()?.ok().map(f64::from);
    let at = part()? * 60.0 + part()? + part()? / 1e3 + part()? / 1e6;
    if parts.next().is_some() {
        return None;
    }
    let rest = ["I ", "W ", "E ", "D ", "T "]
        .iter()
        .find_map(|level| rest.strip_prefix(level))
        .unwrap_or(rest);
    Some(Found {
        rest,
        at: Some(at),
        rank: None,
        form: Form::Llama,
    })
}

/// `2026-09-02T10:00:01.123Z `, as containers and the journal write it; Kubernetes adds `stdout F `.
fn iso(text: &str) -> Option<Found<'_>> {
    let (stamp, rest) = text.split_once(' ')?;
    let (date, time) = stamp.split_once('T')?;
    let at = day(date)? + clock(time.get(..8)?)?;
    let rest = ["stdout F ", "stderr F ", "stdout P ", "stderr P "]
        .iter()
        .find_map(|stream| rest.strip_prefix(stream))
        .unwrap_or(rest);
    Some(Found::plain(rest, Some(at)))
}

/// `sglang-1  | `, as compose writes it.
fn compose(text: &str) -> Option<Found<'_>> {
    let (head, rest) = text.split_once('|')?;
    let name = head.trim_end();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let named = name.len() < head.len() && !name.is_empty() && name.chars().all(plain);
    (named && name.contains(|c: char| c.is_ascii_alphabetic() || c == '-'))
        .then(|| Found::plain(rest, None))
}

/// `Sep 02 10:00:01 host sglang[123]: `, as the journal writes it.
fn journal(text: &str) -> Option<Found<'_>> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (month, tail) = text.split_once(' ')?;
    let month = MONTHS.iter().position(|name| *name == month)?;
    let (date, tail) = tail.trim_start().split_once(' ')?;
    let (time, tail) = tail.split_once(' ')?;
    let (_host, tail) = tail.split_once(' ')?;
    let (unit, rest) = tail.split_once(": ")?;
    (!unit.contains(' ')).then_some(())?;
    let date: u32 = date.parse().ok()?;
    let at = clock(time)? + f64::from(month as u32 * 31 + date) * 86_400.0;
    Some(Found::plain(rest, Some(at)))
}

/// Seconds of `2026-09-02` or `09-02` on a calendar whose months have 31 days: good enough for differences within a start.
fn day(text: &str) -> Option<f64> {
    let mut parts = text.rsplit('-').map(str::parse::<u32>);
    let date = parts.next()?.ok()?;
    let month = parts.next()?.ok()?;
    let year = match parts.next() {
        Some(year) => year.ok()?,
        None => 0,
    };
    if parts.next().is_some() || !(1..=31).contains(&date) || !(1..=12).contains(&month) {
        return None;
    }
    Some((f64::from(year) * 372.0 + f64::from(month * 31 + date)) * 86_400.0)
}

/// Seconds of `10:00:01`, with a fraction or without.
fn clock(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let hours: u32 = parts.next()?.parse().ok()?;
    let minutes: u32 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next()?.replace(',', ".").parse().ok()?;
    let right = parts.next().is_none() && hours < 24 && minutes < 60 && seconds.is_finite();
    right.then(|| f64::from(hours * 3600 + minutes * 60) + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_off() {
        for (raw, text, form) in [
            (
                "[2026-09-02 10:00:01 TP0] Load weight begin.",
                "Load weight begin.",
                Form::Sglang,
            ),
            (
                "(EngineCore_DP0 pid=1094) ERROR 02-08 10:11:12 [core.py:390] ValueError: x",
                "ValueError: x",
                Form::Vllm,
            ),
            (
                "INFO 09-18 08:00:01 [gpu_worker.py:642] Available KV",
                "Available KV",
                Form::Vllm,
            ),
            (
                "INFO 08-31 09:50:46 utils.py:975] Found nccl",
                "Found nccl",
                Form::Vllm,
            ),
            ("0.00.003.791 I srv  x: y", "srv  x: y", Form::Llama),
            ("sglang-1  | [2026-09-02 10:00:01] x", "x", Form::Sglang),
            (
                "Sep 02 10:00:01 gpu1 llama-server[812]: 0.00.003.791 E boom",
                "boom",
                Form::Llama,
            ),
            (
                "Sep  2 10:00:01 gpu1 systemd[1]: x.service: Failed",
                "x.service: Failed",
                Form::Plain,
            ),
            (
                "2026-09-02T10:00:01.5Z stdout F ValueError: x",
                "ValueError: x",
                Form::Plain,
            ),
            ("[rank1]: ValueError: x", "ValueError: x", Form::Plain),
            (
                "[TP0] Load weight begin.",
                "Load weight begin.",
                Form::Sglang,
            ),
            (
                "[W1130 16:08:35] Warning",
                "[W1130 16:08:35] Warning",
                Form::Plain,
            ),
            (
                "slot release: id  3 | task 4",
                "slot release: id  3 | task 4",
                Form::Plain,
            ),
            ("", "", Form::Plain),
        ] {
            let line = split(raw);
            assert_eq!((line.text, line.form), (text, form), "{raw}");
        }
    }

    #[test]
    fn times_and_ranks_are_read() {
        let a = split("[2026-09-02 10:00:01 DP0 TP1] x");
        let b = split("[2026-09-02 10:01:03] x");
        assert_eq!(a.rank, Some("DP0 TP1"));
        assert_eq!(b.at.zip(a.at).map(|(b, a)| b - a), Some(62.0));
        assert_eq!(split("1.05.500.000 W x").at, Some(65.5));
        assert_eq!(split("[2026-13-02 10:00:01] x").at, None);
    }

    #[test]
    fn colours_go_and_plain_lines_are_not_copied() {
        assert_eq!(cleaned("\u{1b}[1;33mred\u{1b}[0m"), "red");
        assert!(matches!(cleaned("plain"), Cow::Borrowed(_)));
    }
}
