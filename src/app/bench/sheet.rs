//! What the pane shows, as tab-separated text for another program.

use super::view::{Row, View, lines, live_window};
use crate::app::model::Model;
use crate::bench::plan::PlanKind;
use crate::bench::point::Point;

/// What is on screen: the comparison, the run over its time, or the measured points. `None`: nothing is.
pub fn sheet(model: &Model) -> Option<String> {
    let pane = &model.bench;
    match (&pane.compared, pane.shown()) {
        (_, View::Live) => live(model),
        (Some(compared), _) => Some(compared.sheet()),
        (None, View::Latency) => Some(points(
            lines(model, PlanKind::Throughput)
                .0
                .into_iter()
                .flat_map(|line| line.points),
        )),
        (None, View::Curves) => {
            let rows = pane.table(pane.kind()).into_iter();
            let found = rows.filter_map(|row| match row {
                Row::Point { point, .. } => Some(point),
                _ => None,
            });
            let found: Vec<&Point> = found.collect();
            (!found.is_empty()).then(|| points(found))
        }
    }
}

fn live(model: &Model) -> Option<String> {
    let line = model.bench.timeline.as_ref()?;
    let window = live_window(model);
    let mut out = "seconds\toutput tok/s\tTTFT ms\tasked\tat the server\n".to_string();
    let most =
        |span: Option<(f64, f64)>| span.map_or(String::new(), |(_, most)| format!("{most:.1}"));
    for moment in line.moments() {
        if !window.has(moment.at_ms) {
            continue;
        }
        let figures = [moment.rate, moment.ttft_ms, moment.asked, moment.seen].map(most);
        let second = moment.at_ms as f64 / 1000.0;
        out.push_str(&format!("{second:.1}\t{}\n", figures.join("\t")));
    }
    Some(out)
}

fn points<'m>(points: impl IntoIterator<Item = &'m Point>) -> String {
    let mut out = "kind\tcontext\tinput\toutput\tconcurrency\toutput tok/s\tdecode tok/s\tTTFT ms\tTPOT ms\tgood\tfailed\tvalidity\twhy\n"
        .to_string();
    let number = |n: Option<f64>| n.map_or(String::new(), |n| format!("{n:.2}"));
    for p in points {
        let kind = match p.cell.kind {
            PlanKind::Throughput => "throughput",
            PlanKind::LongContext => "long context",
        };
        let context = p.context.map_or(String::new(), |n| n.to_string());
        let reasons: Vec<&str> = p.reasons.iter().map(|r| r.text.as_str()).collect();
        let cells = [
            kind.to_string(),
            context,
            p.cell.input.to_string(),
            p.cell.output.to_string(),
            p.cell.concurrency.to_string(),
            number(p.offered_output()),
            number(p.decode_tok_s.filter(|_| p.speed_counts())),
            number(p.ttft_ms.p50),
            number(p.tpot_ms.p50),
            p.ok.to_string(),
            p.failed.to_string(),
            p.validity.word().to_string(),
            reasons.join("; ").replace(['\t', '\n'], " "),
        ];
        out.push_str(&cells.join("\t"));
        out.push('\n');
    }
    out
}
