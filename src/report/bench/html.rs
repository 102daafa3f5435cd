//! A run as one page that needs nothing else: no network, no script, light and dark as the reader has it.

use super::{Document, RunReport, charts, document, findings, load_words};
use crate::bench::point::{Point, Summary, TokensSource, Validity};
use crate::clock::date_time;
use crate::store::Ending;
use crate::units::{GIB, clean, duration, short_count, thousands};

/// The whole page.
pub fn html(run: &RunReport) -> String {
    let title = format!("vramp run {}: {}", run.row.id, text(&run.row.model));
    let mut body = format!("<h1>{title}</h1>\n");
    body.push_str(&section(run));
    page(&title, run.simulated(), &body)
}

/// What a page has for one run: facts, charts, table, reasons and the data.
pub fn section(run: &RunReport) -> String {
    let mut out = facts(run);
    let drawn = charts::charts(&run.points);
    if !drawn.is_empty() {
        out.push_str("<div class=\"charts\">\n");
        for (title, svg) in drawn {
            out.push_str(&format!(
                "<figure><figcaption>{}</figcaption>{svg}</figure>\n",
                text(&title)
            ));
        }
        out.push_str("</div>\n");
    }
    out.push_str(&table(run));
    out.push_str(&remarks(run));
    out.push_str(&data(&document(run)));
    out
}

/// A page around `body`.
pub fn page(title: &str, simulated: bool, body: &str) -> String {
    let mark = if simulated {
        "<p class=\"simulated\">SIMULATED: no figure on this page comes from a real server</p>\n"
    } else {
        ""
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n{mark}{body}\
         <footer>written by vramp {}</footer>\n</body>\n</html>\n",
        if simulated { " (SIMULATED)" } else { "" },
        include_str!("page.css"),
        charts::css(),
        env!("CARGO_PKG_VERSION")
    )
}

/// Text from outside, harmless in HTML.
pub fn text(outside: &str) -> String {
    let mut out = String::with_capacity(outside.len());
    for c in clean(&outside.replace('\n', " ")).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn facts(run: &RunReport) -> String {
    let row = &run.row;
    let ending = match row.ending {
        Some(Ending::Finished) => "every point was run",
        Some(Ending::Stopped) => "stopped by the operator: partial",
        Some(Ending::Failed) => "it could not go on: partial",
        None => "no recorded end: partial",
    };
    let version = row.engine_version.as_deref().unwrap_or("?");
    let facts = [
        ("run", row.id.to_string()),
        ("name", row.name.clone().unwrap_or_default()),
        ("plan", row.plan.clone()),
        (
            "server",
            format!("{} {version} at {}", row.engine.name(), row.url),
        ),
        ("model", row.model.clone()),
        (
            "context",
            row.context.map_or("unknown".to_string(), thousands),
        ),
        ("begun", date_time(row.started_unix_ms)),
        ("end", ending.to_string()),
        ("prompt seed", row.seed.to_string()),
    ];
    let lines: String = facts
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", text(value)))
        .collect();
    format!("<dl>\n{lines}</dl>\n")
}

const HEADS: [&str; 15] = [
    "load",
    "in",
    "out",
    "requests",
    "failed",
    "validity",
    "output tok/s",
    "decode tok/s",
    "TTFT p50",
    "TTFT p99",
    "TPOT p50",
    "ITL p50",
    "gap max",
    "end to end p50",
    "least free",
];

fn table(run: &RunReport) -> String {
    let heads: String = HEADS
        .iter()
        .map(|head| format!("<th>{head}</th>"))
        .collect();
    let rows: String = run.points.iter().map(row).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn row(point: &Point) -> String {
    let counts = point.validity != Validity::Void;
    let none = || "–".to_string();
    let mark = |estimated: bool| if estimated { "~" } else { "" };
    let chunks = point.tokens_source == TokensSource::Chunks;
    let speed = |rate: Option<f64>| {
        rate.filter(|_| counts)
            .map_or_else(none, |rate| format!("{}{rate:.1}", mark(chunks)))
    };
    let time = |ms: Option<f64>, n: &Summary, estimated: bool| {
        ms.filter(|_| counts).map_or_else(none, |ms| {
            format!(
                "<span title=\"n = {}\">{}{}</span>",
                n.n,
                mark(estimated),
                fine(ms)
            )
        })
    };
    let free = point.cards.iter().map(|card| card.free_min).min();
    let word = point.validity.word();
    let notes = [(point.partial, ", partial"), (point.repeat, ", repeated")];
    let notes: String = notes
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, note)| *note)
        .collect();
    let cells = [
        load_words(&point.cell),
        short_count(point.cell.input),
        short_count(point.cell.output),
        point.total.to_string(),
        point.failed.to_string(),
        format!("{word}{notes}"),
        speed(point.output_tok_s),
        speed(point.decode_tok_s.filter(|_| point.speed_counts())),
        time(point.ttft_ms.p50, &point.ttft_ms, false),
        time(point.ttft_ms.p99, &point.ttft_ms, false),
        time(point.tpot_ms.p50, &point.tpot_ms, chunks),
        time(
            point.itl_ms.p50,
            &point.itl_ms,
            chunks || point.itl_estimated,
        ),
        time(point.chunk_gap_ms.max, &point.chunk_gap_ms, false),
        time(point.e2e_ms.p50, &point.e2e_ms, false),
        free.map_or_else(none, |bytes| format!("{:.1} GiB", bytes as f64 / GIB)),
    ];
    let cells: String = cells
        .iter()
        .map(|cell| format!("<td>{cell}</td>"))
        .collect();
    format!("<tr class=\"{word}\">{cells}</tr>\n")
}

fn fine(ms: f64) -> String {
    if ms < 100.0 {
        format!("{ms:.1} ms")
    } else {
        duration(ms)
    }
}

/// Doubts and failures of each point, in words.
fn remarks(run: &RunReport) -> String {
    let mut lines = String::new();
    for finding in findings(run) {
        for line in finding.lines() {
            lines.push_str(&format!("<li>{}</li>\n", text(&line)));
        }
    }
    for point in &run.points {
        let who = super::cell_words(&point.cell);
        for reason in &point.reasons {
            let word = reason.weighs.word();
            lines.push_str(&format!(
                "<li class=\"{word}\">{who}: {word}: {}</li>\n",
                text(&reason.text)
            ));
        }
        for (failure, count) in &point.failures {
            lines.push_str(&format!(
                "<li>{who}: {count} failed: {}</li>\n",
                text(&failure.message)
            ));
        }
        if point.stalls > 0 {
            lines.push_str(&format!(
                "<li>{who}: {} stalls inside answers</li>\n",
                point.stalls
            ));
        }
    }
    if lines.is_empty() {
        lines
    } else {
        format!("<ul>\n{lines}</ul>\n")
    }
}

/// The document of the run inside the page, for whoever wants to compute with it.
fn data(document: &Document) -> String {
    // Numbers, strings and names always have a JSON form; `<` must not end the element.
    let json = serde_json::to_string(document)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    format!("<script type=\"application/json\">{json}</script>\n")
}
