//! One thing that was looked at.

use serde::Serialize;

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// vramp works without it, or not as well.
    Warn,
    Fail,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "fail",
        }
    }
}

/// What was looked at, what was seen, what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub what: &'static str,
    pub result: Verdict,
    pub detail: String,
    pub what_to_do: Option<String>,
}

impl Check {
    pub fn ok(what: &'static str, detail: impl ToString) -> Check {
        Check {
            what,
            result: Verdict::Ok,
            detail: detail.to_string(),
            what_to_do: None,
        }
    }

    pub fn warn(what: &'static str, detail: impl ToString, advice: impl ToString) -> Check {
        Check {
            result: Verdict::Warn,
            what_to_do: Some(advice.to_string()),
            ..Check::ok(what, detail)
        }
    }

    pub fn fail(what: &'static str, detail: impl ToString, advice: impl ToString) -> Check {
        Check {
            result: Verdict::Fail,
            ..Check::warn(what, detail, advice)
        }
    }
}
