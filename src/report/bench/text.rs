//! A run as lines for people.

use super::{RunReport, cell_words};
use crate::bench::point::{Point, TokensSource, Validity};
use crate::clock::date_time;
use crate::store::Ending;
use crate::units::{clean, duration, short_count, thousands};

const NONE: &str = "–";

/// What was measured, one line a point, and what is to be said about it.
pub fn table(run: &RunReport) -> String {
    let mut out = head(run);
    if run.points.is_empty() {
        out.push_str("no point was measured\n");
        return out;
    }
    let names = [
        "load",
        "in",
        "out",
        "requests",
        "failed",
        "output tok/s",
        "decode tok/s",
        "TTFT p50",
        "TTFT p99",
        "TPOT p50",
        "gap max",
        "e2e p50",
        "validity",
    ];
    let mut rows: Vec<Vec<String>> = vec![names.iter().map(|name| (*name).to_string()).collect()];
    rows.extend(run.points.iter().map(row));
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    for row in &rows {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    for point in &run.points {
        remarks(point, &mut out);
    }
    out
}

fn head(run: &RunReport) -> String {
    let row = &run.row;
    let ending = match row.ending {
        Some(Ending::Finished) => "finished",
        Some(Ending::Stopped) => "stopped: partial",
        Some(Ending::Failed) => "failed: partial",
        None => "not ended: partial",
    };
    let name = row
        .name
        .as_deref()
        .map_or(String::new(), |name| format!(" {name:?}"));
    format!(
        "run {}{}, {}, {} {}, model {}, context {}, {}, {ending}{}\n",
        row.id,
        clean(&name),
        clean(&row.plan),
        row.engine.name(),
        clean(row.engine_version.as_deref().unwrap_or("?")),
        clean(&row.model),
        row.context.map_or("unknown".to_string(), thousands),
        date_time(row.started_unix_ms),
        if run.simulated() { "  SIMULATED" } else { "" }
    )
}

fn row(point: &Point) -> Vec<String> {
    let cell = &point.cell;
    let counts = point.validity != Validity::Void;
    let mark = if point.tokens_source == TokensSource::Chunks {
        "~"
    } else {
        ""
    };
    let speed = |rate: Option<f64>| {
        rate.filter(|_| counts)
            .map_or(NONE.to_string(), |rate| format!("{mark}{rate:.1}"))
    };
    let time = |ms: Option<f64>| ms.filter(|_| counts).map_or(NONE.to_string(), fine);
    vec![
        match cell.arrivals.rate() {
            Some(rate) => format!("{}/s", rate.per_second()),
            None => cell.concurrency.to_string(),
        },
        short_count(cell.input),
        short_count(cell.output),
        point.total.to_string(),
        point.failed.to_string(),
        speed(point.output_tok_s),
        speed(point.decode_tok_s.filter(|_| point.speed_counts())),
        time(point.ttft_ms.p50),
        time(point.ttft_ms.p99),
        time(point.tpot_ms.p50),
        time(point.chunk_gap_ms.max),
        time(point.e2e_ms.p50),
        match (point.partial, point.repeat) {
            (true, _) => format!("{}, partial", point.validity.word()),
            (_, true) => format!("{}, repeated", point.validity.word()),
            _ => point.validity.word().to_string(),
        },
    ]
}

/// Short times with their tenths.
fn fine(ms: f64) -> String {
    if ms < 100.0 {
        format!("{ms:.1} ms")
    } else {
        duration(ms)
    }
}

fn remarks(point: &Point, out: &mut String) {
    let who = cell_words(&point.cell);
    for reason in &point.reasons {
        out.push_str(&format!(
            "{who}: {}: {}\n",
            reason.weighs.word(),
            clean(&reason.text)
        ));
    }
    for (failure, count) in &point.failures {
        out.push_str(&format!(
            "{who}: {count} failed: {}\n",
            clean(&failure.message)
        ));
    }
    if point.stalls > 0 {
        out.push_str(&format!("{who}: {} stalls inside answers\n", point.stalls));
    }
    if let Some(goodput) = point.goodput {
        let share = point.slo_share.map_or(String::new(), |share| {
            format!(", {:.0} % of all", share * 100.0)
        });
        out.push_str(&format!(
            "{who}: {goodput:.2} requests a second met the targets{share}\n"
        ));
    }
}
