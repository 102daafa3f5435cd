//! A failed step in the operator's terms.

use super::tail::Tail;
use super::{StartFailure, Step};
use crate::engine::start::{Cause, Known, Outcome};
use crate::engine::{Context, Facts};
use crate::units::{clean, thousands};

impl StartFailure {
    /// In one line: what, the decisive line, what to do, what to try.
    pub fn words(&self) -> String {
        let mut words = self.cause.clone();
        if let Some(line) = &self.line
            && !words.contains(line.as_str())
        {
            words.push_str(&format!(" — {line}"));
        }
        if let Some(advice) = &self.advice {
            words.push_str(&format!(" · {advice}"));
        }
        if let Some(suggests) = self.suggests {
            words.push_str(&format!(" · try {}", thousands(suggests)));
        }
        words
    }
}

/// A failure that needs no more words than its cause.
pub fn at(step: Step, cause: impl ToString) -> StartFailure {
    StartFailure {
        step,
        phase: None,
        cause: clean(&cause.to_string()),
        line: None,
        advice: None,
        suggests: None,
        held: Vec::new(),
    }
}

/// The same with what to do next.
pub fn advised(step: Step, cause: impl ToString, advice: impl ToString) -> StartFailure {
    StartFailure {
        advice: Some(advice.to_string()),
        ..at(step, cause)
    }
}

/// The operator's own stop.
pub fn by_operator(step: Step) -> StartFailure {
    at(step, "stopped by the operator")
}

/// A failed start with what its log said: why, the decisive line, what to do, what to try. `what` is how it was noticed.
pub fn from_log(step: Step, what: &str, tail: &Tail, known: &Known) -> StartFailure {
    let found = tail.diagnose(known);
    let line = found.evidence.first();
    let cause = match (found.cause, line) {
        // Its own words are the cause.
        (Some(Cause::Unknown), Some(line)) if found.outcome == Outcome::Failed => {
            format!("{line}; {what}")
        }
        (None | Some(Cause::Unknown | Cause::Crashed | Cause::Killed), _) => what.to_string(),
        (Some(cause), _) => format!("{}; {what}", cause.words()),
    };
    StartFailure {
        step,
        phase: found.phase,
        cause,
        line: line.cloned(),
        advice: found.advice,
        suggests: found.suggested_context,
        held: Vec::new(),
    }
}

/// How a process ended, in words. Negative codes are signals.
pub fn exit_words(exit: Option<i32>) -> String {
    let words = match exit {
        None => "the server ended; how is not known, because another cockpit had started it",
        Some(0) => "the server ended by itself as if all were done (exit code 0)",
        Some(-9) => {
            "the server was killed (SIGKILL): by the system for want of memory, by hand, or by itself as SGLang does"
        }
        Some(-15) => "the server was asked to end (SIGTERM) by somebody else",
        Some(-4) => "the server crashed without words (SIGILL): built for another processor",
        Some(-6) => "the server aborted (SIGABRT)",
        Some(-7) => "the server crashed without words (SIGBUS)",
        Some(-11) => "the server crashed without words (SIGSEGV)",
        Some(signal) if signal < 0 => return format!("the server was ended by signal {}", -signal),
        Some(code @ (126 | 127)) => {
            return format!("the program could not be run (exit code {code})");
        }
        Some(code) => return format!("the server ended with exit code {code}"),
    };
    words.to_string()
}

/// The same where the service's manager has a word for it, in systemd's terms.
pub fn ending_words(exit: Option<i32>, result: Option<&str>) -> String {
    let words = match result {
        Some("oom-kill") => {
            "the kernel killed the server for want of memory: the host's, or what its control group may take"
        }
        Some("timeout") => {
            "the service manager ended it, because its unit's time was over (TimeoutStartSec=, RuntimeMaxSec=)"
        }
        Some("watchdog") => {
            "the service manager ended it, because it gave no sign of life (WatchdogSec=)"
        }
        Some("start-limit-hit") => "the service manager refused it after too many starts",
        Some("success") if exit.is_none() => "the server was stopped, and ended as it should",
        Some("resources") => "the service manager could not start it for want of resources",
        _ => return exit_words(exit),
    };
    words.to_string()
}

/// Whether the server serves `expected` tokens a request, which is what `asked` comes to with this engine. One that serves less
/// has failed, and what it serves is the suggestion; so has one that serves more, because the number did not reach it.
pub fn check_context(facts: &Facts, asked: u64, expected: u64) -> Result<(), StartFailure> {
    let configured = facts.context.configured.known().copied();
    let effective = facts.context.effective.known().copied();
    let Some(served) = [configured, effective].into_iter().flatten().min() else {
        return Err(advised(
            Step::Prove,
            "the server does not say which context it serves",
            "Only an engine that says so can be restarted safely: sglang, vllm or llamacpp",
        ));
    };
    if served < expected {
        let bounds = bounds(&facts.context);
        let by = bounds.iter().find(|(_, tokens)| *tokens == Some(served));
        let by = by.map(|(what, _)| format!(", by the {what}"));
        let all = bounds
            .map(|(what, tokens)| format!("{what} {}", tokens.map_or("–".to_string(), thousands)));
        return Err(StartFailure {
            suggests: Some(served),
            ..advised(
                Step::Prove,
                format!(
                    "the server serves {} tokens, not {} as asked{}",
                    thousands(served),
                    thousands(asked),
                    by.unwrap_or_default()
                ),
                format!(
                    "Choose {}, or move what bounds a request: {}",
                    thousands(served),
                    all.join(", ")
                ),
            )
        });
    }
    let told = configured.unwrap_or(served);
    if told > expected {
        return Err(advised(
            Step::Prove,
            format!(
                "the server was to serve {} tokens and says {}",
                thousands(asked),
                thousands(told)
            ),
            "See whether the launch passes {context} on, and whether its slots are stated",
        ));
    }
    Ok(())
}

/// All that bounds the context of a request, in tokens. Where several come to the same, the first is the reason: a slot is what is left
/// after the model's limit, and a pool of one request is its slot.
fn bounds(context: &Context) -> [(&'static str, Option<u64>); 4] {
    [
        ("model limit", &context.model_limit),
        ("slot", &context.per_slot),
        ("KV pool", &context.pool_tokens),
        ("flag", &context.configured),
    ]
    .map(|(what, tokens)| (what, tokens.known().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Health, Kind};
    use crate::reading::Reading;

    fn facts(configured: Option<u64>, effective: Option<u64>) -> Facts {
        Facts {
            kind: Kind::LlamaCpp,
            version: Reading::default(),
            model: Reading::default(),
            model_file: None,
            health: Health::Up,
            context: Context {
                configured: configured.into(),
                effective: effective.into(),
                ..Context::default()
            },
            simulated: false,
            notes: vec![],
        }
    }

    #[test]
    fn the_context_must_be_the_one_asked_for() {
        let check =
            |configured, effective| check_context(&facts(configured, effective), 1000, 1024);
        assert_eq!(check(Some(1024), Some(1024)), Ok(()));
        assert_eq!(check(None, Some(1024)), Ok(()));
        assert_eq!(check(Some(1024), None), Ok(()));
        // Capped in silence, a pool smaller than the flag, a number that did not arrive.
        assert_eq!(check(Some(512), Some(512)).unwrap_err().suggests, Some(512));
        let less = check(Some(1024), Some(900)).unwrap_err();
        assert_eq!(less.suggests, Some(900));
        assert!(less.cause.contains("900") && less.cause.contains("1,000"));
        let mut pooled = facts(Some(1024), Some(900));
        pooled.context.pool_tokens = Reading::Value(900);
        pooled.context.model_limit = Reading::Value(4096);
        let told = check_context(&pooled, 1024, 1024).unwrap_err();
        assert!(told.cause.ends_with("not 1,024 as asked, by the KV pool"));
        assert!(
            told.advice
                .unwrap()
                .ends_with("model limit 4,096, slot –, KV pool 900, flag 1,024")
        );
        let more = check(Some(8192), Some(8192)).unwrap_err();
        assert!(more.cause.contains("8,192"));
        assert_eq!(more.suggests, None);
        assert!(check(None, None).is_err());
    }

    #[test]
    fn ends_have_words() {
        assert!(exit_words(Some(-11)).contains("without words"));
        assert!(exit_words(Some(-9)).contains("killed"));
        assert!(exit_words(Some(1)).contains("exit code 1"));
        assert!(exit_words(Some(127)).contains("could not be run"));
        assert!(exit_words(Some(-31)).contains("signal 31"));
        assert!(exit_words(None).contains("not known"));
        assert!(ending_words(Some(-9), Some("oom-kill")).contains("for want of memory"));
        assert!(ending_words(Some(-15), Some("timeout")).contains("RuntimeMaxSec"));
        assert_eq!(
            ending_words(Some(1), Some("exit-code")),
            exit_words(Some(1))
        );
        assert_eq!(ending_words(Some(1), None), exit_words(Some(1)));
        assert!(ending_words(None, Some("success")).contains("was stopped"));
    }
}
