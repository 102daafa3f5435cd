//! The configurations tried, side by side.

use super::ReportInput;
use super::escape::{block, text};
use super::table::{Table, change, or_none};
use crate::app::evidence::Evidence;
use crate::app::tried::{Tried, TriedOutcome};
use crate::bench::checks::Verdict;
use crate::profile::Launch;

use crate::units::{duration, gib, mm_ss, short_count, thousands};

pub(super) fn write(input: &ReportInput, out: &mut String) {
    out.push_str("## Configurations tried\n\n");
    if input.configs.is_empty() {
        out.push_str("None.\n\n");
        return;
    }
    let mut table = Table::new(&[
        ">context",
        "<outcome",
        ">start took",
        ">capacity",
        ">tightest free",
        ">longest input",
        ">TTFT there",
        ">decode there",
        ">vs shortest",
        ">failed",
        "<checks",
    ]);
    let evidence = input.evidence();
    for (tried, evidence) in input.configs.iter().zip(&evidence) {
        table.row(vec![
            thousands(tried.context),
            outcome(tried, evidence),
            or_none(tried.start_ms, mm_ss),
            or_none(tried.capacity, |times| format!("{times:.1} x")),
            or_none(tried.tightest, |(card, bytes)| {
                format!("{} GiB on card {card}", gib(bytes))
            }),
            or_none(evidence.longest, |(input, _)| short_count(input)),
            or_none(evidence.longest, |(_, ms)| duration(ms)),
            or_none(evidence.decode, |rate| format!("{rate:.1} tok/s")),
            or_none(evidence.vs_short, |percent| change(percent / 100.0)),
            or_none(evidence.fails, |n| thousands(u64::from(n))),
            checks(evidence),
        ]);
    }
    table.write(out);
    out.push('\n');
    for tried in &input.configs {
        details(tried, out);
    }
}

fn outcome(tried: &Tried, evidence: &Evidence) -> String {
    match (&tried.outcome, evidence.production) {
        (TriedOutcome::Failed(_), _) => "failed".to_string(),
        (TriedOutcome::Served, true) => "served, production value".to_string(),
        (TriedOutcome::Served, false) => "served".to_string(),
    }
}

/// `5 of 6, leak not run`.
fn checks(evidence: &Evidence) -> String {
    let Some((passed, of)) = evidence.checks else {
        return "not run".to_string();
    };
    let mut words = format!("{passed} of {of}");
    for open in &evidence.checks_open {
        words.push_str(&format!(", {}", text(open)));
    }
    words
}

/// What does not fit a row.
fn details(tried: &Tried, out: &mut String) {
    let mut lines = Vec::new();
    if let TriedOutcome::Failed(why) = &tried.outcome {
        lines.push(format!("Why: {}", text(why)));
    }
    for check in &tried.checks {
        let words = match &check.verdict {
            Verdict::Passed(note) => format!("passed, {}", text(note)),
            Verdict::Failed(why) => format!("failed, {}", text(why)),
            Verdict::NotRun(why) => format!("not run, {}", text(why)),
        };
        lines.push(format!("Check {}: {words}", check.kind.name()));
    }
    if lines.is_empty() && tried.config.is_none() {
        return;
    }
    out.push_str(&format!("### {} tokens\n\n", thousands(tried.context)));
    for line in &lines {
        out.push_str(&format!("- {line}\n"));
    }
    if !lines.is_empty() {
        out.push('\n');
    }
    if let Some(config) = &tried.config {
        let launch = match crate::service::render(config) {
            Ok(filled) => Launch {
                argv: filled.argv,
                env: filled.env,
                ..config.launch.clone()
            },
            Err(_) => config.launch.clone(),
        };
        out.push_str(&block(&command(&launch)));
        out.push('\n');
    }
}

/// The launch as one would type it.
fn command(launch: &Launch) -> String {
    let mut lines = Vec::new();
    if let Some(cwd) = &launch.cwd {
        lines.push(format!("cd {}", quoted(&cwd.to_string_lossy())));
    }
    let env = launch
        .env
        .iter()
        .map(|(name, value)| format!("{name}={}", quoted(value)));
    let words: Vec<String> = env
        .chain(launch.argv.iter().map(|arg| quoted(arg)))
        .collect();
    lines.push(words.join(" "));
    lines.join("\n")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%{}".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
