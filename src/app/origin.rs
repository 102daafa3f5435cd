//! Where the selected number comes from, and what copying it gives.

use super::bench::sheet::sheet;
use super::model::{Model, Pane};
use super::task::TaskState;
use crate::bench::plan::PlanKind;
use crate::bench::point::{Point, TokensSource};
use crate::clock::date_time;
use crate::units::{duration, gib, thousands};

/// What `y` copies in the focused pane.
pub fn value(model: &Model) -> Option<String> {
    match model.focus {
        Pane::Tasks => model.tasks.selected().map(|t| t.title.clone()),
        Pane::Gpus => model.rig.gpus.cards.get(model.gpu_scroll).map(|card| {
            let memory = card
                .memory
                .known()
                .map_or("memory unknown".to_string(), |m| {
                    format!("{}/{} GiB", gib(m.used), gib(m.total))
                });
            format!("{} {} {memory}", card.index, card.name)
        }),
        Pane::Bench => sheet(model),
        Pane::Config => model.config.chosen.map(|c| c.to_string()),
    }
}

/// What `i` says in the focused pane.
pub fn lines(model: &Model) -> Vec<String> {
    match model.focus {
        Pane::Tasks => task(model),
        Pane::Gpus => gpus(model),
        Pane::Bench => bench(model),
        Pane::Config => context(model),
    }
}

fn task(model: &Model) -> Vec<String> {
    let Some(task) = model.tasks.selected() else {
        return vec!["the list is empty; a adds a task".into()];
    };
    let mut lines = vec![task.title.clone()];
    match &task.state {
        TaskState::Failed { why, .. } => lines.push(format!("failed: {why}")),
        TaskState::Blocked { why, raise_to } => {
            lines.push(format!("blocked: {why}"));
            lines.extend(
                raise_to.map(|to| format!("Enter asks for a restart at {}", thousands(to))),
            );
        }
        TaskState::Done { took_ms } => {
            lines.push(format!("done in {}", crate::units::mm_ss(*took_ms)))
        }
        TaskState::Running { since_unix_ms, .. } => {
            lines.push(format!("running since {}", date_time(*since_unix_ms)))
        }
        TaskState::Pending => lines.push("not run yet".into()),
        TaskState::Skipped => lines.push("skipped; s takes it up again".into()),
        TaskState::Waiting => lines.push("waits for your answer; Enter opens the question".into()),
    }
    lines.extend(task.note.clone());
    lines
}

fn gpus(model: &Model) -> Vec<String> {
    let gpus = &model.rig.gpus;
    let mut lines = vec![format!(
        "source: {}",
        if gpus.source.is_empty() {
            "none yet"
        } else {
            gpus.source.as_str()
        }
    )];
    lines.extend(gpus.fault.clone());
    if gpus.at.unix_ms > 0 {
        lines.push(format!("read at {}", date_time(gpus.at.unix_ms)));
    }
    let owned = &model.rig.owned;
    let numbers: Vec<String> = owned.cards.iter().map(u32::to_string).collect();
    let cards = match numbers.is_empty() {
        true => "all cards".to_string(),
        false => format!("cards {}", numbers.join(", ")),
    };
    lines.push(format!("of the server: {cards}; {}", owned.by.words()));
    lines.push(
        "used: without the driver's own share, as nvidia-smi counts; GiB = 2^30 bytes".into(),
    );
    lines.push("busy: share of time in which some kernel ran, not load".into());
    lines.push(
        "tightest: the card with the least free memory; never a sum or a mean over cards".into(),
    );
    lines
}

fn bench(model: &Model) -> Vec<String> {
    if let Some(compared) = &model.bench.compared {
        return compared.origin();
    }
    match model.bench.selected() {
        Some(selected) => point(selected),
        None => vec!["no point is measured yet; b runs the benchmark".into()],
    }
}

fn point(point: &Point) -> Vec<String> {
    let kind = match point.cell.kind {
        PlanKind::Throughput => "throughput",
        PlanKind::LongContext => "long context",
    };
    let mut lines = vec![
        format!(
            "{kind}: {} in, {} out, concurrency {}, at a context of {}",
            thousands(point.cell.input),
            thousands(point.cell.output),
            point.cell.concurrency,
            point.context.map_or("?".into(), thousands)
        ),
        format!(
            "measured {} to {}",
            date_time(point.started_unix_ms),
            date_time(point.ended_unix_ms)
        ),
        format!(
            "requests: {} of {} good, {} failed",
            point.ok, point.total, point.failed
        ),
        format!(
            "tokens: {} in, {} out, from {}",
            thousands(point.input_tokens),
            thousands(point.output_tokens),
            match point.tokens_source {
                TokensSource::Usage => "the server's usage",
                TokensSource::Tokenizer => "the server's tokenizer",
                TokensSource::Chunks => "a count of chunks (~)",
            }
        ),
        format!(
            "TTFT {}: request sent to first token, median, n = {}",
            point.ttft_ms.p50.map_or("unknown".into(), duration),
            point.ttft_ms.n
        ),
        format!(
            "decode rate {}: 1 / median TPOT, n = {}; TPOT: (end - first token) / (output tokens - 1)",
            rate(point.decode_tok_s),
            point.tpot_ms.n
        ),
        format!(
            "output {}: output tokens / measured window{}, over all requests, n = {}",
            rate(point.output_tok_s),
            point
                .steady_s
                .map_or(String::new(), |s| format!(" of {s:.1} s")),
            point.total
        ),
        format!("validity: {}", point.validity.word()),
    ];
    lines.extend(point.reasons.iter().map(|r| format!("  {}", r.text)));
    lines.extend(
        point
            .failures
            .iter()
            .map(|(f, n)| format!("  {n} x {}", f.message)),
    );
    lines
}

fn rate(value: Option<f64>) -> String {
    value.map_or("unknown".into(), |v| format!("{v:.1} tok/s"))
}

fn context(model: &Model) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(facts) = &model.rig.facts {
        let show = |name: &str, reading: &crate::reading::Reading<u64>| match reading.known() {
            Some(n) => format!("{name}: {}", thousands(*n)),
            None => format!(
                "{name}: {}",
                reading
                    .absent()
                    .map_or("unknown".into(), ToString::to_string)
            ),
        };
        let c = &facts.context;
        lines.push("per request; what a request can really use is the least of these".into());
        lines.push(show("configured", &c.configured));
        lines.push(show("model limit", &c.model_limit));
        lines.push(show("KV pool", &c.pool_tokens));
        lines.push(show("slot share", &c.per_slot));
        lines.push(show("effective", &c.effective));
    }
    if let Some(profile) = &model.profile
        && let Some(file) = &profile.file
    {
        lines.push(format!("profile {} in {}", profile.name, file.display()));
    }
    if let Some(launch) = model.launch().filter(|launch| launch.slots > 1) {
        lines.push(format!(
            "the engine's argument is a total: {} slots x the context",
            launch.slots
        ));
    }
    lines
}
