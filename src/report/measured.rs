//! What was measured, by plan and run.

use super::ReportInput;
use super::bars::bars;
use super::escape::text;
use super::table::{NONE, Table, change, or_none};
use crate::bench::plan::PlanKind;
use crate::bench::point::{Point, Summary, TokensSource, Validity};
use crate::store::{Ending, RunRow};
use crate::units::{duration, short_count, thousands};

pub(super) fn write(input: &ReportInput, out: &mut String) {
    out.push_str("## Measurements\n\n");
    let mut any = false;
    for (kind, title) in [
        (PlanKind::Throughput, "Throughput"),
        (PlanKind::LongContext, "Long context"),
    ] {
        for run in input.runs.iter().filter(|run| run.kind == kind) {
            let points: Vec<&Point> = input
                .points
                .iter()
                .filter(|stored| stored.run == run.id)
                .map(|stored| &stored.point)
                .collect();
            any = true;
            head(input, title, run, out);
            if points.is_empty() {
                out.push_str("No point was finished.\n\n");
                continue;
            }
            match kind {
                PlanKind::Throughput => throughput(&points, out),
                PlanKind::LongContext => long_context(&points, out),
            }
            reasons(kind, &points, out);
        }
    }
    if !any {
        out.push_str("None.\n\n");
    }
}

fn head(input: &ReportInput, title: &str, run: &RunRow, out: &mut String) {
    out.push_str(&format!(
        "### {title} at a context of {}\n\nRun {}, plan {}, {}, {} {}, model {}, prompt seed {}. {}\n\n",
        or_none(run.context, thousands),
        run.id,
        text(&run.plan),
        input.date_time(run.started_unix_ms),
        run.engine.name(),
        or_none(run.engine_version.as_deref(), text),
        text(&run.model),
        run.seed,
        match run.ending {
            Some(Ending::Finished) => "Every point of it was run.",
            Some(Ending::Stopped) => "It was stopped by the operator; what was measured is here.",
            Some(Ending::Failed) => "It could not go on; what was measured is here.",
            None => "It has no recorded end; what was measured is here.",
        }
    ));
}

fn throughput(points: &[&Point], out: &mut String) {
    let mut table = Table::new(&[
        ">concurrency",
        ">in",
        ">out",
        ">requests",
        ">failed",
        ">output tok/s",
        ">decode tok/s",
        ">TTFT p50",
        ">TTFT p90",
        ">ITL p50",
        ">end to end p50",
        "<validity",
    ]);
    for point in points {
        table.row(vec![
            point.cell.concurrency.to_string(),
            short_count(point.cell.input),
            short_count(point.cell.output),
            point.total.to_string(),
            point.failed.to_string(),
            speed(point, point.offered_output()),
            speed(point, point.decode_tok_s),
            time(point, point.ttft_ms.p50),
            time(point, point.ttft_ms.p90),
            itl(point, &point.itl_ms),
            time(point, point.e2e_ms.p50),
            validity(point),
        ]);
    }
    table.write(out);
    out.push('\n');
    chart("Output tok/s by concurrency", points, out, |point| {
        (point.cell.concurrency.to_string(), point.offered_output())
    });
}

fn long_context(points: &[&Point], out: &mut String) {
    // Within one context, so that the figures tell the input length alone apart.
    let shortest = |context: Option<u64>| {
        points
            .iter()
            .filter(|point| point.speed_counts() && point.context == context)
            .min_by_key(|point| point.cell.input)
            .and_then(|point| point.decode_tok_s)
            .filter(|rate| *rate > 0.0)
    };
    let mut table = Table::new(&[
        ">in",
        ">out",
        ">concurrency",
        ">requests",
        ">failed",
        ">TTFT p50",
        ">prefill tok/s",
        ">decode tok/s",
        ">vs shortest",
        ">ITL p50",
        "<validity",
    ]);
    for point in points {
        let share = point
            .decode_tok_s
            .filter(|_| point.speed_counts())
            .zip(shortest(point.context))
            .map(|(rate, first)| rate / first - 1.0);
        table.row(vec![
            short_count(point.cell.input),
            short_count(point.cell.output),
            point.cell.concurrency.to_string(),
            point.total.to_string(),
            point.failed.to_string(),
            time(point, point.ttft_ms.p50),
            speed(point, point.prefill_tok_s),
            speed(point, point.decode_tok_s),
            or_none(share, change),
            itl(point, &point.itl_ms),
            validity(point),
        ]);
    }
    table.write(out);
    out.push('\n');
    chart("Decode tok/s by input length", points, out, |point| {
        (short_count(point.cell.input), point.decode_tok_s)
    });
}

fn chart(
    title: &str,
    points: &[&Point],
    out: &mut String,
    of: impl Fn(&Point) -> (String, Option<f64>),
) {
    let lines: Vec<(String, f64)> = points
        .iter()
        .filter(|point| point.validity != Validity::Void)
        .filter_map(|point| {
            let (label, value) = of(point);
            value.map(|value| (label, value))
        })
        .collect();
    let mut chart = String::new();
    bars("tok/s", &lines, &mut chart);
    if !chart.is_empty() {
        out.push_str(&format!("{title}:\n\n{chart}"));
    }
}

/// The doubts of each point and its failures, in words.
fn reasons(kind: PlanKind, points: &[&Point], out: &mut String) {
    let mut lines = Vec::new();
    for point in points {
        let who = match kind {
            PlanKind::Throughput => format!("concurrency {}", point.cell.concurrency),
            PlanKind::LongContext => format!("{} in", short_count(point.cell.input)),
        };
        for reason in &point.reasons {
            lines.push(format!(
                "- {who}, {}: {}\n",
                reason.weighs.word(),
                text(&reason.text)
            ));
        }
        for (failure, times) in &point.failures {
            lines.push(format!(
                "- {who}, {times} failed: {}\n",
                text(&failure.message)
            ));
        }
    }
    if !lines.is_empty() {
        out.push_str(&lines.concat());
        out.push('\n');
    }
}

/// A rate in tokens a second. That of a void point is not offered; `~` marks tokens that were only counted as chunks.
fn speed(point: &Point, rate: Option<f64>) -> String {
    match rate {
        Some(rate) if point.validity != Validity::Void => {
            format!("{}{rate:.1}", mark(point.tokens_source))
        }
        _ => NONE.to_string(),
    }
}

fn time(point: &Point, ms: Option<f64>) -> String {
    or_none(ms.filter(|_| point.validity != Validity::Void), duration)
}

/// The gap of a token is apportioned over its chunk unless the server counted the tokens.
fn itl(point: &Point, summary: &Summary) -> String {
    or_none(
        summary.p50.filter(|_| point.validity != Validity::Void),
        |ms| format!("{}{ms:.1} ms", mark(point.tokens_source)),
    )
}

fn mark(source: TokensSource) -> &'static str {
    match source {
        TokensSource::Chunks => "~",
        TokensSource::Usage | TokensSource::Tokenizer => "",
    }
}

fn validity(point: &Point) -> String {
    let word = point.validity.word();
    if point.partial {
        format!("{word}, partial")
    } else {
        word.to_string()
    }
}
