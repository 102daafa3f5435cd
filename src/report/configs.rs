//! The configurations tried, side by side.

use super::ReportInput;
use super::escape::{block, text};
use super::table::{Table, change, or_none};
use crate::profile::Launch;
use crate::store::Tried;
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
    for tried in &input.configs {
        table.row(vec![
            thousands(tried.context),
            tried.verdict.words().to_string(),
            or_none(tried.start_ms, mm_ss),
            or_none(tried.capacity, |times| format!("{times:.1} x")),
            or_none(tried.tightest_free, |bytes| format!("{} GiB", gib(bytes))),
            or_none(tried.longest_input, short_count),
            or_none(tried.longest_ttft_ms, duration),
            or_none(tried.decode_tok_s, |rate| format!("{rate:.1} tok/s")),
            or_none(tried.decode_change, change),
            or_none(tried.failed_requests, thousands),
            checks(tried),
        ]);
    }
    table.write(out);
    out.push('\n');
    for tried in &input.configs {
        details(input, tried, out);
    }
}

/// `5 of 6, leak not run`.
fn checks(tried: &Tried) -> String {
    if tried.checks.is_empty() {
        return "not run".to_string();
    }
    let passed = tried
        .checks
        .iter()
        .filter(|check| check.passed == Some(true))
        .count();
    let mut words = format!("{passed} of {}", tried.checks.len());
    for check in &tried.checks {
        match check.passed {
            Some(true) => {}
            Some(false) => words.push_str(&format!(", {} failed", text(&check.name))),
            None => words.push_str(&format!(", {} not run", text(&check.name))),
        }
    }
    words
}

/// What does not fit a row.
fn details(input: &ReportInput, tried: &Tried, out: &mut String) {
    let mut lines = Vec::new();
    if let Some(why) = &tried.why {
        lines.push(format!("Why: {}", text(why)));
    }
    if let Some(served) = tried.served.filter(|served| *served != tried.context) {
        lines.push(format!("The server reported {} tokens", thousands(served)));
    }
    if let Some(pool) = tried.pool_tokens {
        lines.push(format!("KV pool: {} tokens", thousands(pool)));
    }
    if let Some(card) = tried.tightest_card {
        lines.push(format!("Tightest card: {card}"));
    }
    for check in &tried.checks {
        if let Some(note) = &check.note {
            lines.push(format!("Check {}: {}", text(&check.name), text(note)));
        }
    }
    if lines.is_empty() && tried.launch.is_none() {
        return;
    }
    out.push_str(&format!(
        "### {} tokens, {}\n\n",
        thousands(tried.context),
        input.date_time(tried.since_unix_ms)
    ));
    for line in &lines {
        out.push_str(&format!("- {line}\n"));
    }
    if !lines.is_empty() {
        out.push('\n');
    }
    if let Some(launch) = &tried.launch {
        out.push_str(&block(&command(launch)));
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
