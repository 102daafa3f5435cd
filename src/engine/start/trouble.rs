//! Lines that tell of a failure, in the words of the engines, of PyTorch, of the kernel and of service managers.

use super::super::Phase;
use super::super::text::number_after;
use super::Cause;
use super::line::Line;
use super::seen::{End, Seen, take};
use super::words::{AFTERMATH_WORDS, CRASHED_WORDS, known};
use super::{memory, python, sglang};

/// What a line tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// No memory on a card; the phase tells what for.
    CardMemory,
    Known(Cause),
    /// An error in words that are not known here.
    Words,
    /// Something failed before; the line says no more than that.
    Aftermath,
}

/// How much a line tells of the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Aftermath,
    Words,
    Known,
}

/// The line that tells most so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trouble {
    pub kind: Kind,
    pub line: String,
    /// Where the start was.
    pub phase: Option<Phase>,
    /// The least fraction that would do, where the engine says it.
    pub fraction: Option<f64>,
}

impl Trouble {
    pub fn weight(&self) -> Weight {
        match self.kind {
            Kind::CardMemory | Kind::Known(_) => Weight::Known,
            Kind::Words => Weight::Words,
            Kind::Aftermath => Weight::Aftermath,
        }
    }
}

/// Takes a line that may tell of a failure.
pub(super) fn read(line: &Line<'_>, whole: &str, seen: &mut Seen) {
    let text = line.text;
    if let Some(end) = ending(text) {
        // What a server that was asked to end does is no failure.
        if !seen.stopping && seen.end.is_none() {
            seen.end = Some((end, whole.to_string()));
        }
    }
    let Some(kind) = classify(text) else {
        return;
    };
    if seen.ready && !counts_while_serving(&kind, text, seen) {
        return;
    }
    memory::refine(text, seen);
    if seen
        .trouble
        .as_ref()
        .is_some_and(|old| old.weight() >= weight(&kind))
    {
        return;
    }
    let fraction = figures(text, &kind, seen);
    seen.trouble = Some(Trouble {
        phase: memory::phase_of(text).or(seen.current()),
        kind,
        line: whole.to_string(),
        fraction,
    });
}

fn weight(kind: &Kind) -> Weight {
    match kind {
        Kind::CardMemory | Kind::Known(_) => Weight::Known,
        Kind::Words => Weight::Words,
        Kind::Aftermath => Weight::Aftermath,
    }
}

/// A server that serves prints errors of single requests; only those count that it cannot outlive.
fn counts_while_serving(kind: &Kind, text: &str, seen: &mut Seen) -> bool {
    if seen.stopping {
        return false;
    }
    match kind {
        Kind::CardMemory => true,
        Kind::Known(cause) => matches!(
            cause,
            Cause::OomHost
                | Cause::StalledInCollectives
                | Cause::PortInUse
                | Cause::OomPrefill
                | Cause::Crashed
        ),
        Kind::Aftermath => {
            let dies =
                !text.starts_with("failed to load") && !text.contains("failed to create context");
            seen.dying |= dies;
            dies
        }
        Kind::Words => seen.dying,
    }
}

fn classify(text: &str) -> Option<Kind> {
    // Lines that quote an advice or only warn.
    if text.contains("See root cause above") {
        return Some(Kind::Aftermath);
    }
    if text.contains("This can cause fd limit errors")
        || text.contains("NCCL WARN") && text.contains("bind failed")
    {
        return None;
    }
    if memory::of_card(text) {
        return Some(match memory::is_pool_exhausted(text) {
            true => Kind::Known(Cause::OomPrefill),
            false => Kind::CardMemory,
        });
    }
    if let Some(cause) = known(text) {
        return (!is_warning(text, cause)).then_some(Kind::Known(cause));
    }
    if text.contains("The memory capacity is unbalanced") {
        return python::ends_traceback(text).then_some(Kind::Known(Cause::GpuNotFree));
    }
    if python::wrong_argument(text) {
        return Some(Kind::Known(Cause::BadArgument));
    }
    if python::missing_model(text) {
        return Some(Kind::Known(Cause::ModelMissing));
    }
    if AFTERMATH_WORDS.first_in(text).is_some() {
        return Some(Kind::Aftermath);
    }
    if CRASHED_WORDS.first_in(text).is_some() {
        return Some(Kind::Known(Cause::Crashed));
    }
    if python::refused_configuration(text) {
        return Some(Kind::Known(Cause::BadArgument));
    }
    if text.starts_with("MemoryError") {
        return Some(Kind::Known(Cause::OomHost));
    }
    python::ends_traceback(text).then_some(Kind::Words)
}

/// Forms of known words that do not end the server.
fn is_warning(text: &str, cause: Cause) -> bool {
    match cause {
        Cause::StalledInCollectives => text.contains("self.soft=True"),
        Cause::DriverMismatch => text.contains("UserWarning") || text.starts_with("ggml_cuda_init"),
        _ => false,
    }
}

/// Whether a line tells of no failure, whatever its numbers are: another one of its shape need not be read.
pub(super) fn is_plain(text: &str) -> bool {
    let told = ending(text).is_some() || classify(text).is_some();
    !told && !EXIT_CODE.iter().any(|words| text.contains(words))
}

/// A number follows that tells a failure from an end that was wanted.
const EXIT_CODE: [&str; 4] = [
    "exited with code ",
    "code=exited, status=",
    "(exit code: ",
    "Exit code: ",
];

/// How the process ended, in the words of the shell, of systemd and of compose.
fn ending(text: &str) -> Option<End> {
    if text == "Killed" || text.ends_with(" Killed") || text.contains("code=killed, status=9/KILL")
    {
        return Some(End::Killed);
    }
    if text.contains("start operation timed out. Terminating") {
        return Some(End::TimedOut);
    }
    let crash = [
        "core dumped)",
        "code=dumped",
        "status=11/SEGV",
        "status=6/ABRT",
        "status=4/ILL",
        "status=7/BUS",
    ];
    if crash.iter().any(|words| text.contains(words))
        || [
            "Segmentation fault",
            "Illegal instruction",
            "Bus error",
            "Aborted",
        ]
        .contains(&text)
    {
        return Some(End::Crashed);
    }
    let code = EXIT_CODE
        .iter()
        .find_map(|words| signed_after(text, words))?;
    match code {
        0 => None,
        -9 | 137 => Some(End::Killed),
        code if code < 0 || [132, 134, 135, 139].contains(&code) => Some(End::Crashed),
        code => Some(End::Exit(code)),
    }
}

fn signed_after(text: &str, words: &str) -> Option<i32> {
    let (_, rest) = text.split_once(words)?;
    let number = number_after(rest.trim_start_matches('-'), "")?;
    let number = i32::try_from(number).ok()?;
    Some(if rest.starts_with('-') {
        -number
    } else {
        number
    })
}

/// Takes the figures that a decisive line states.
fn figures(text: &str, kind: &Kind, seen: &mut Seen) -> Option<f64> {
    match kind {
        Kind::CardMemory | Kind::Known(Cause::OomHost) => memory::figures(text, seen),
        Kind::Known(Cause::GpuNotFree) => memory::not_free(text, seen),
        Kind::Known(Cause::KvPoolBelowOneRequest) => memory::below_one_request(text, seen),
        Kind::Known(Cause::ContextAboveModelLimit) => {
            let asked = number_after(text, "context_length (")
                .or_else(|| number_after(text, "max_model_len ("));
            take(&mut seen.facts.requested_context, asked);
            take(&mut seen.facts.model_limit, python::derived_limit(text));
        }
        Kind::Known(Cause::PortInUse) => take(&mut seen.facts.port, taken_port(text)),
        Kind::Known(Cause::NoRoomForPool) => return sglang::fraction(text, seen),
        Kind::Known(Cause::StalledInCollectives) => {
            let ms = number_after(text, " ran for ");
            let seconds = number_after(text, "watchdog_timeout=");
            let after = ms.map(|ms| ms as f64 / 1e3).or(seconds.map(|s| s as f64));
            take(&mut seen.facts.after_s, after);
        }
        _ => {}
    }
    None
}

/// `('0.0.0.0', 30000)`, `port: 18081`, `:::30000`, `0.0.0.0:8000`.
fn taken_port(text: &str) -> Option<u64> {
    let named = text
        .split_once("address (")
        .and_then(|(_, rest)| number_after(rest, ","))
        .or_else(|| number_after(text, "port: "))
        .or_else(|| number_after(text, "port="));
    let address = || {
        text.split([' ', '\'', '"', '/']).find_map(|word| {
            let (_, port) = word.trim_end_matches([':', ',', '.']).rsplit_once(':')?;
            port.parse().ok()
        })
    };
    named
        .or_else(address)
        .filter(|port| (1..=65_535).contains(port))
}
