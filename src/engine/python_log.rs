//! What the logs of the two Python servers have in common: prefixes, progress bars, tracebacks.

use super::http::shorten;
use crate::units::clean;

/// A decisive line is shown whole up to this many characters.
const MAX_LINE: usize = 600;

/// The message of a line without SGLang's `[date TP0]` or vLLM's `(Process pid=1) ERROR 01-02 10:00:00 [file.py:1]`.
pub fn message(line: &str) -> &str {
    let mut rest = line.trim_start();
    if let Some(inside) = rest.strip_prefix('(')
        && let Some((head, tail)) = inside.split_once(") ")
        && head.contains("pid=")
    {
        rest = tail;
    }
    for level in ["INFO ", "WARNING ", "ERROR ", "DEBUG "] {
        if let Some(tail) = rest.strip_prefix(level)
            && let Some((_, tail)) = tail.split_once(".py:")
            && let Some((_, tail)) = tail.split_once(']')
        {
            return tail.strip_prefix(' ').unwrap_or(tail);
        }
    }
    if let Some(inside) = rest.strip_prefix('[')
        && inside.starts_with(|c: char| c.is_ascii_digit())
        && let Some((_, tail)) = inside.split_once("] ")
    {
        return tail;
    }
    rest
}

/// The line, if it is the end of a traceback or one of the servers' own last words. Lines that only point at another line are not.
pub fn failure(line: &str) -> Option<String> {
    let text = message(line);
    if text.contains("See root cause above") {
        return None;
    }
    let known = [
        "CUDA out of memory",
        "Not enough memory. Please try to increase",
        "Loaded weights leave no GPU memory",
        "Prefill out of memory",
        "Decode out of memory",
        "No available memory for the cache blocks",
        "on startup is less than desired GPU memory utilization",
        "To serve at least one request",
        "is greater than the derived",
        "error while attempting to bind on address",
        "Address already in use",
        // The cause inside a validation error of the configuration.
        "Value error, ",
    ];
    let decisive = known.iter().any(|words| text.contains(words)) || ends_traceback(text);
    decisive.then(|| shorten(&clean(text.trim()), MAX_LINE))
}

/// `ValueError: …`, `torch.OutOfMemoryError: …`: a dotted name that ends in `Error` or `Exception`, at the start of the message. A
/// validation error is that of one request; where it is that of the configuration, the next line gives the cause.
fn ends_traceback(text: &str) -> bool {
    let Some((name, _)) = text.split_once(": ") else {
        return false;
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    (last.ends_with("Error") || last.ends_with("Exception"))
        && !last.ends_with("ValidationError")
        && last.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_off() {
        assert_eq!(
            message("[2026-09-02 10:00:01 TP0] Load weight begin."),
            "Load weight begin."
        );
        assert_eq!(
            message("(EngineCore_DP0 pid=1094) ERROR 02-08 10:11:12 [core.py:390] ValueError: x"),
            "ValueError: x"
        );
        assert_eq!(
            message("INFO 09-18 08:00:01 [gpu_worker.py:642] Available KV"),
            "Available KV"
        );
        assert_eq!(message("ValueError: x"), "ValueError: x");
        assert_eq!(
            message("[W1130 16:08:35] Warning"),
            "[W1130 16:08:35] Warning"
        );
    }

    #[test]
    fn the_cause_is_told_apart_from_what_points_at_it() {
        assert!(failure("torch.OutOfMemoryError: CUDA out of memory. Tried").is_some());
        assert!(failure("ModuleNotFoundError: No module named 'x'").is_some());
        assert!(failure("[2026-01-01 10:00:00] ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use").is_some());
        for other in [
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
            "[2026-01-01 10:00:00] Ignore import error when loading x: cannot import name 'y'",
            "(EngineCore pid=1) ERROR 11-30 16:08:37 [core.py:1510]     raise ValueError(",
            "vllm.exceptions.VLLMValidationError: Token id 398 is out of vocabulary",
            "Triton Error handling: on",
            "INFO:     Waiting for application startup.",
        ] {
            assert_eq!(failure(other), None, "{other}");
        }
    }
}
