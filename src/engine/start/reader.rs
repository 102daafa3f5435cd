//! Reads the log of a start, line by line and in bounded memory.

use super::super::{Kind, Phase};
use super::line::{self, Form, Line};
use super::seen::{Progress, Seen};
use super::shape::{Shape, Shapes};
use super::trouble::{self, Weight};
use super::{Diagnosis, Known, llamacpp, sglang, vllm};

/// Marks of an engine after which it is not doubted any more.
const SURE: u32 = 30;

/// What a line changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// The phase, if it is another one or further on.
    pub phase: Option<(Phase, Progress)>,
    /// The start got on: a new phase, more of one, or a line of a shape that was not there before. A line that only repeats
    /// itself with a new time, as the access log of our own questions does, is no progress.
    pub progress: bool,
}

/// The log of one service as it is read. If it holds several starts, the last one counts.
#[derive(Debug)]
pub struct Reader {
    forced: Option<Kind>,
    /// Marks of SGLang, vLLM and llama.cpp.
    marks: [u32; 3],
    pub(super) seen: Seen,
    /// Starts before the one that is read now.
    pub(super) earlier: u32,
    /// What became of the last of them.
    pub(super) before: Option<Box<Diagnosis>>,
    pub(super) pulse: Pulse,
    /// Of the lines of this start.
    met: Shapes,
    /// Of lines that tell of no failure.
    plain: Shapes,
    /// The last time in llama.cpp's prefix, which begins anew with the program.
    elapsed: f64,
}

/// When the log got on, by its own times.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Pulse {
    last: Option<f64>,
    /// Somebody else tells when each line came: the times in the lines do not count.
    timed: bool,
    moved: Option<f64>,
    /// The cards as a timed log shows them: the least and the most busy one, percent.
    pub busy: Option<(u32, u32)>,
}

impl Pulse {
    /// A moment passes.
    pub fn tick(&mut self, at: f64) {
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
        self.moved = self.moved.or(Some(at));
    }

    fn moves(&mut self) {
        self.moved = self.last;
    }

    /// Seconds without progress at the end of the log.
    pub fn still_s(&self) -> Option<f64> {
        Some(self.last? - self.moved?)
    }
}

impl Reader {
    /// A log of which nothing is read yet. Without a kind it is found out from the lines.
    pub fn new(kind: Option<Kind>) -> Reader {
        Reader {
            forced: kind.filter(|kind| *kind != Kind::OpenAi),
            marks: [0; 3],
            seen: Seen::default(),
            earlier: 0,
            before: None,
            pulse: Pulse::default(),
            met: Shapes::default(),
            plain: Shapes::default(),
            elapsed: 0.0,
        }
    }

    /// Takes a line. One that holds several states of a progress bar is taken state by state.
    pub fn read(&mut self, raw: &str) -> Change {
        let before = self.seen.phase;
        let mut progress = false;
        for part in raw.split(['\r', '\n']) {
            progress |= self.part(part);
        }
        let phase = self.seen.phase.filter(|_| self.seen.phase != before);
        Change {
            phase,
            progress: progress || phase.is_some(),
        }
    }

    /// Takes a line of which it is known when it came, in seconds.
    pub fn read_at(&mut self, raw: &str, at_s: f64) -> Change {
        self.pulse.timed = true;
        self.pulse.tick(at_s);
        self.read(raw)
    }

    /// Takes what the cards did when a timed log was written: the least and the most busy one, percent.
    pub fn cards_at(&mut self, busy: (u32, u32)) {
        self.pulse.busy = Some(busy);
    }

    /// The engine, as far as it is known.
    pub fn kind(&self) -> Option<Kind> {
        let kinds = [Kind::Sglang, Kind::Vllm, Kind::LlamaCpp];
        self.forced.or_else(|| {
            let best = self
                .marks
                .iter()
                .max()
                .copied()
                .filter(|marks| *marks > 0)?;
            let at = self.marks.iter().position(|marks| *marks == best)?;
            kinds.get(at).copied()
        })
    }

    pub fn phase(&self) -> Option<(Phase, Progress)> {
        self.seen.phase
    }

    /// Whether the log has told why the start fails, and of nothing after it that says otherwise.
    pub fn failing(&self) -> bool {
        let weight = self.seen.trouble.as_ref().map(trouble::Trouble::weight);
        weight >= Some(Weight::Words)
    }

    /// Whether the ranks meet or wait for each other.
    pub fn collective(&self) -> bool {
        self.seen.collective || self.seen.waits > 0
    }

    /// The last line that is not blank, cleaned.
    pub fn last_line(&self) -> Option<&str> {
        self.seen.last_line.as_deref()
    }

    /// Judges what was read so far, with what is known from elsewhere.
    pub fn diagnose(&self, known: &Known) -> Diagnosis {
        super::judge::judge(self, known)
    }

    fn part(&mut self, raw: &str) -> bool {
        let cleaned = line::cleaned(raw);
        let whole = cleaned.trim();
        if whole.is_empty() {
            return false;
        }
        let line = line::split(whole);
        if let Some(at) = line.at.filter(|_| !self.pulse.timed) {
            self.pulse.tick(at);
        }
        if self.seen.ready && is_traffic(line.text) {
            return false;
        }
        self.mark(&line);
        if self.begins(&line) {
            self.begin_again();
        }
        let waits = self.seen.waits;
        match self.kind() {
            Some(Kind::Sglang) => sglang::read(&line, &mut self.seen),
            Some(Kind::Vllm) => vllm::read(&line, &mut self.seen),
            Some(Kind::LlamaCpp) => llamacpp::read(&line, &mut self.seen),
            Some(Kind::OpenAi) | None => {}
        }
        let shape = Shape::of(line.text);
        let quotes =
            line.text.starts_with("server_args=") || line.text.starts_with("non-default args:");
        if !quotes && !self.plain.has(shape.with_numbers) {
            trouble::read(&line, whole, &mut self.seen);
            if trouble::is_plain(line.text) {
                self.plain.add(shape.with_numbers);
            }
        }
        self.seen.stopping |= self.seen.ready && is_stop(line.text);
        let waited = self.seen.waits > waits;
        self.seen.last_line = Some(super::super::http::shorten(whole, super::advice::MAX_LINE));
        // A shape that was not there before.
        let progress = !waited && self.met.add(shape.bare);
        if progress {
            self.pulse.moves();
        }
        progress
    }

    /// Which engine writes such lines.
    fn mark(&mut self, line: &Line<'_>) {
        if self.forced.is_some() || self.marks.iter().any(|marks| *marks >= SURE) {
            return;
        }
        let text = line.text;
        let [sglang, vllm, llama] = &mut self.marks;
        match line.form {
            Form::Sglang => *sglang += 3,
            Form::Vllm => *vllm += 3,
            Form::Llama => *llama += 10,
            Form::Plain => {}
        }
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(&[
            "sglang",
            "SGLANG_",
            "server_args=",
            "max_total_num_tokens",
            "mem-fraction-static",
        ]) {
            *sglang += 10;
        }
        if has(&["vllm", "VLLM", "gpu_memory_utilization", "max_model_len"]) {
            *vllm += 8;
        }
        if has(&[
            "llama_",
            "ggml_",
            "gguf",
            "load_tensors:",
            "llama-server",
            "srv ",
            "common_init",
            "print_info:",
        ]) || text.starts_with("error: invalid argument:")
            || text.starts_with("error while handling argument")
        {
            *llama += 8;
        }
    }

    /// Whether a new start begins with this line, after another one that had come somewhere.
    fn begins(&mut self, line: &Line<'_>) -> bool {
        let text = line.text;
        let restarted = line.form == Form::Llama
            && line
                .at
                .is_some_and(|at| std::mem::replace(&mut self.elapsed, at) > at + 0.5);
        let seen = &self.seen;
        let had_come = seen.ready
            || seen.end.is_some()
            || seen
                .current()
                .is_some_and(|phase| phase >= Phase::LoadingWeights)
            || seen
                .trouble
                .as_ref()
                .is_some_and(|trouble| trouble.weight() == Weight::Known);
        let opening = [
            "server_args=",
            "non-default args:",
            "vLLM API server version",
            "SIMULATED rig: ",
            "build: ",
        ];
        had_come && (restarted || opening.iter().any(|words| text.starts_with(words)))
    }

    fn begin_again(&mut self) {
        self.before = Some(Box::new(self.diagnose(&Known::default())));
        self.earlier = self.earlier.saturating_add(1);
        self.seen = Seen::default();
        self.met.forget();
    }
}

/// Lines of requests, of which a server writes millions.
fn is_traffic(text: &str) -> bool {
    [
        "Decode batch",
        "Prefill batch",
        "slot ",
        "Engine 0",
        "srv  update_slots",
        "srv  log_server_r",
    ]
    .iter()
    .any(|words| text.starts_with(words))
        || (text.starts_with("INFO: ") && text.contains("HTTP/1."))
}

/// The server was asked to end.
fn is_stop(text: &str) -> bool {
    [
        "SIGTERM received",
        "[shutdown]",
        "Shutting down",
        "cleaning up before exit",
        "Received SIGTERM",
        "Stopping ",
    ]
    .iter()
    .any(|words| text.contains(words))
}
