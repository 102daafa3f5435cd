//! The whole report as Markdown.

use super::escape::text;
use super::table::{NONE, Table, or_none};
use super::{ReportInput, configs, measured};
use crate::app::task::TaskState;
use crate::engine::Facts;
use crate::gpu::CardState;
use crate::reading::Reading;
use crate::units::{gib, mm_ss, thousands};

/// Writes the report.
pub fn markdown(input: &ReportInput) -> String {
    let mut out = String::new();
    head(input, &mut out);
    decisions(input, &mut out);
    configs::write(input, &mut out);
    measured::write(input, &mut out);
    server(input, &mut out);
    cards(input, &mut out);
    tasks(input, &mut out);
    events(input, &mut out);
    words(&mut out);
    out
}

fn head(input: &ReportInput, out: &mut String) {
    let session = &input.session;
    if input.simulated() {
        out.push_str(
            "> **SIMULATED.** The server and the cards behind this report are a simulation; nothing in it was measured on hardware.\n\n",
        );
    }
    out.push_str(&format!("# vramp report: {}\n\n", text(&session.profile)));
    out.push_str(&format!(
        "- Session {} of {}@{}, begun {}, vramp {}\n",
        session.id,
        text(&session.user),
        text(&session.host),
        input.date_time(session.started_unix_ms),
        text(&session.tool_version)
    ));
    out.push_str(&format!(
        "- Written {}; all times are UTC{}\n",
        input.date_time(input.written_unix_ms),
        input.time(input.written_unix_ms, "%:z")
    ));
    out.push_str(&format!("- Server {}\n", text(&session.url)));
    out.push_str(&format!(
        "- Production value now: {}\n\n",
        input.production.map_or_else(
            || "none is set".to_string(),
            |value| format!("{} tokens", thousands(value))
        )
    ));
}

fn decisions(input: &ReportInput, out: &mut String) {
    out.push_str("## Decision\n\n");
    if input.decisions.is_empty() {
        out.push_str("None yet.\n\n");
        return;
    }
    for decision in &input.decisions {
        out.push_str(&format!(
            "- {}: {}@{} made **{}** tokens the production value ({}){}. Engine {} {}, model {}.\n",
            input.date_time(decision.at_unix_ms),
            text(&decision.user),
            text(&decision.host),
            thousands(decision.value),
            decision.previous.map_or_else(
                || "there was none before".to_string(),
                |previous| format!("before: {}", thousands(previous))
            ),
            if decision.simulated {
                ", SIMULATED"
            } else {
                ""
            },
            or_none(decision.engine, |engine| engine.name().to_string()),
            or_none(decision.engine_version.as_deref(), text),
            or_none(decision.model.as_deref(), text),
        ));
    }
    out.push('\n');
}

fn server(input: &ReportInput, out: &mut String) {
    out.push_str("## Server\n\n");
    let Some(facts) = &input.session.facts else {
        out.push_str("It never said what it is.\n\n");
        return;
    };
    let mut table = Table::new(&["<figure", "<value"]);
    for (name, value) in figures(facts) {
        table.row(vec![name.to_string(), value]);
    }
    table.write(out);
    out.push('\n');
    for note in &facts.notes {
        out.push_str(&format!("- {}\n", text(note)));
    }
    if !facts.notes.is_empty() {
        out.push('\n');
    }
}

fn figures(facts: &Facts) -> Vec<(&'static str, String)> {
    let tokens = |reading: &Reading<u64>| shown(reading, |n| format!("{} tokens", thousands(*n)));
    let words = |reading: &Reading<String>| shown(reading, |name| text(name));
    let context = &facts.context;
    vec![
        ("engine", facts.kind.name().to_string()),
        ("version", words(&facts.version)),
        ("model", words(&facts.model)),
        ("context, configured", tokens(&context.configured)),
        ("context, effective", tokens(&context.effective)),
        ("limit of the model", tokens(&context.model_limit)),
        ("KV pool", tokens(&context.pool_tokens)),
        ("request slots", shown(&context.slots, u64::to_string)),
        ("tokens of a slot", tokens(&context.per_slot)),
        (
            "capacity",
            or_none(context.capacity(), |times| {
                format!("{times:.1} full-length requests at once")
            }),
        ),
    ]
}

/// A reading's value, or why there is none.
fn shown<T>(reading: &Reading<T>, show: impl FnOnce(&T) -> String) -> String {
    match reading {
        Reading::Value(value) => show(value),
        Reading::Stale { value, age_ms } => {
            format!("{} ({} s old)", show(value), age_ms / 1000)
        }
        Reading::Absent(why) => text(&why.to_string()),
    }
}

fn cards(input: &ReportInput, out: &mut String) {
    out.push_str("## Cards\n\n");
    if input.session.cards.is_empty() {
        out.push_str("None was seen.\n\n");
        return;
    }
    let mut table = Table::new(&[
        ">card",
        "<name",
        "<state",
        ">memory",
        ">used",
        ">driver's share",
        ">power limit",
        "<uuid",
    ]);
    for card in &input.session.cards {
        let memory = |of: fn(&crate::gpu::Memory) -> u64| {
            shown(&card.memory, |memory| format!("{} GiB", gib(of(memory))))
        };
        table.row(vec![
            card.index.to_string(),
            text(&card.name),
            match &card.state {
                CardState::Ok => "ok".to_string(),
                CardState::Lost { since_unix_ms } => {
                    format!("lost since {}", input.date_time(*since_unix_ms))
                }
                CardState::Unknown(why) => text(why),
            },
            memory(|memory| memory.total),
            memory(|memory| memory.used),
            memory(|memory| memory.reserved),
            shown(&card.power_limit_mw, |mw| format!("{} W", mw / 1000)),
            text(&card.uuid),
        ]);
    }
    table.write(out);
    out.push('\n');
}

fn tasks(input: &ReportInput, out: &mut String) {
    if input.session.tasks.is_empty() {
        return;
    }
    out.push_str("## Tasks\n\n");
    let mut table = Table::new(&["<task", "<state", ">time", "<result"]);
    for task in &input.session.tasks {
        let (state, took, why) = match &task.state {
            TaskState::Pending => ("pending", None, None),
            TaskState::Running { .. } => ("in progress", None, None),
            TaskState::Done { took_ms } => ("done", Some(*took_ms), None),
            TaskState::Failed { took_ms, why } => ("failed", Some(*took_ms), Some(why)),
            TaskState::Blocked { why, .. } => ("blocked", None, Some(why)),
            TaskState::Skipped => ("skipped", None, None),
            TaskState::Waiting => ("waits for the operator", None, None),
        };
        let result: Vec<String> = why
            .into_iter()
            .chain(&task.note)
            .map(|words| text(words))
            .collect();
        table.row(vec![
            text(&task.title),
            state.to_string(),
            took.map_or_else(String::new, mm_ss),
            result.join("; "),
        ]);
    }
    table.write(out);
    out.push('\n');
}

fn events(input: &ReportInput, out: &mut String) {
    let mut table = Table::new(&["<time", "<what", ">context", "<words"]);
    for event in &input.events {
        table.row(vec![
            input.date_time(event.at_unix_ms),
            event.kind.word().to_string(),
            event.context.map_or_else(String::new, thousands),
            text(&event.text),
        ]);
    }
    if !table.is_empty() {
        out.push_str("## What happened\n\n");
        table.write(out);
        out.push('\n');
    }
}

fn words(out: &mut String) {
    out.push_str(&format!(
        "## Words\n\n\
         - `{NONE}`: not measured, or not offered because the point is void. `~`: tokens counted as chunks, for want of better.\n\
         - context: most tokens, input and output, that one request may use. capacity: tokens of the KV pool / context.\n\
         - TTFT: request sent to first token. ITL: time between tokens. decode: 1 / time per output token, of one request.\n\
         - output tok/s: output tokens of all requests / measured window. Lengths and counts: K is 1000.\n\
         - valid, suspect, void: a point that counts, counts with the stated doubt, does not count.\n\
         - tightest free: least free memory of the fullest card. GiB: 2^30 bytes.\n"
    ));
}
