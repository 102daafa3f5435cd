//! The report of a session as one page: the values tried, the decision, and every run with its charts.

use super::ReportInput;
use super::bench::{RunReport, html_page, html_section, html_text};
use super::table::{NONE, change};
use crate::units::{duration, gib, short_count, thousands};

/// The whole page.
pub fn html(input: &ReportInput) -> String {
    let title = format!("vramp report: {}", html_text(&input.session.profile));
    let session = &input.session;
    let mut body = format!(
        "<h1>{title}</h1>\n<p>Session {} of {}@{}, server {}, begun {}, written {} (UTC{}). Production value now: {}.</p>\n",
        session.id,
        html_text(&session.user),
        html_text(&session.host),
        html_text(&session.url),
        input.date_time(session.started_unix_ms),
        input.date_time(input.written_unix_ms),
        input.time(input.written_unix_ms, "%:z"),
        input
            .production
            .map_or_else(|| "none is set".to_string(), thousands)
    );
    decisions(input, &mut body);
    tried(input, &mut body);
    for row in &input.runs {
        let of_run = || input.points.iter().filter(|stored| stored.run == row.id);
        let run = RunReport {
            row: row.clone(),
            points: of_run().map(|stored| stored.point.clone()).collect(),
            ids: of_run().map(|stored| stored.id).collect(),
        };
        body.push_str(&format!(
            "<h2>{} at a context of {}</h2>\n{}",
            html_text(&row.plan),
            row.context.map_or("unknown length".to_string(), thousands),
            html_section(&run)
        ));
    }
    html_page(&title, input.simulated(), &body)
}

fn decisions(input: &ReportInput, out: &mut String) {
    for decision in &input.decisions {
        out.push_str(&format!(
            "<p>{}: {}@{} made <strong>{}</strong> tokens the production value{}.</p>\n",
            input.date_time(decision.at_unix_ms),
            html_text(&decision.user),
            html_text(&decision.host),
            thousands(decision.value),
            decision.previous.map_or(String::new(), |previous| format!(
                ", before: {}",
                thousands(previous)
            ))
        ));
    }
}

/// What speaks for and against each context.
fn tried(input: &ReportInput, out: &mut String) {
    if input.configs.is_empty() {
        return;
    }
    let heads = [
        "context",
        "capacity",
        "tightest free",
        "longest input",
        "TTFT there",
        "decode there",
        "vs shortest",
        "failed",
        "checks",
    ];
    let heads: String = heads
        .iter()
        .map(|head| format!("<th>{head}</th>"))
        .collect();
    let rows: String = input
        .evidence()
        .iter()
        .map(|one| {
            let or_none = |value: Option<String>| value.unwrap_or_else(|| NONE.to_string());
            let cells = [
                thousands(one.context),
                or_none(one.capacity.map(|times| format!("{times:.1} x"))),
                or_none(
                    one.tightest
                        .map(|(card, bytes)| format!("{} GiB on card {card}", gib(bytes))),
                ),
                or_none(one.longest.map(|(input, _)| short_count(input))),
                or_none(one.longest.map(|(_, ms)| duration(ms))),
                or_none(one.decode.map(|rate| format!("{rate:.1} tok/s"))),
                or_none(one.vs_short.map(|percent| change(percent / 100.0))),
                one.fails.map_or_else(|| "–".to_string(), |n| n.to_string()),
                one.checks.map_or("not run".to_string(), |(passed, of)| {
                    format!("{passed} of {of}")
                }),
            ];
            let cells: String = cells
                .iter()
                .map(|cell| format!("<td>{cell}</td>"))
                .collect();
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    out.push_str(&format!(
        "<h2>Values tried</h2>\n<div class=\"wide\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    ));
}
