//! Two runs side by side: for each figure the change, its interval, and what can be said of it.

use super::{RunReport, cell_words};
use crate::bench::plan::{Arrivals, Cell};
use crate::bench::point::{Point, RequestRecord, Validity};
use crate::units::clean;
use serde::Serialize;

/// The normal quantile of a two-sided 95 % interval.
const Z95: f64 = 1.959_964;
/// Requests that each side needs.
const LEAST: usize = 6;

/// The name of the output rate.
const OUTPUT: &str = "output";

/// One run's point with its requests.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    pub point: &'a Point,
    pub requests: &'a [RequestRecord],
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub a: i64,
    pub b: i64,
    pub simulated: bool,
    /// What besides the figures differs between the runs: it may be the reason.
    pub differences: Vec<String>,
    pub cells: Vec<CellComparison>,
    /// Cells that only one of them has.
    pub only_a: Vec<String>,
    pub only_b: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellComparison {
    pub cell: String,
    /// Why the cell is not compared.
    pub void: Option<String>,
    pub figures: Vec<Figure>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    pub name: &'static str,
    pub unit: &'static str,
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// Requests that the figure of each run is from.
    pub n_a: usize,
    pub n_b: usize,
    /// b / a - 1.
    pub change: Option<f64>,
    /// 95 % interval of the change.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Better,
    Worse,
    /// The interval holds no change as well: more requests may tell.
    NoDifferenceShown,
    /// Too few requests for an interval.
    TooFew,
}

impl Verdict {
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifferenceShown => "no difference shown",
            Verdict::TooFew => "too few requests to tell",
        }
    }
}

/// Compares run `b` with run `a`; the requests of each point are asked for by its number on record.
pub fn compare<E>(
    a: &RunReport,
    b: &RunReport,
    mut requests: impl FnMut(i64) -> Result<Vec<RequestRecord>, E>,
) -> Result<Comparison, E> {
    let mut cells = Vec::new();
    for (point, id) in a.points.iter().zip(&a.ids) {
        let Some((other, other_id)) = find(b, point) else {
            continue;
        };
        let (ours, theirs) = (requests(*id)?, requests(other_id)?);
        cells.push(cell(
            Side {
                point,
                requests: &ours,
            },
            Side {
                point: other,
                requests: &theirs,
            },
        ));
    }
    let only = |of: &RunReport, other: &RunReport| {
        let lone = of
            .points
            .iter()
            .filter(|p| !p.repeat && find(other, p).is_none());
        lone.map(|point| cell_words(&point.cell)).collect()
    };
    Ok(Comparison {
        a: a.row.id,
        b: b.row.id,
        simulated: a.simulated() || b.simulated(),
        differences: differences(a, b),
        cells,
        only_a: only(a, b),
        only_b: only(b, a),
    })
}

/// The point of the same load. The first level measured again is a check on drift, not a point of its own.
fn find<'a>(run: &'a RunReport, like: &Point) -> Option<(&'a Point, i64)> {
    if like.repeat {
        return None;
    }
    let key = |cell: &Cell| (cell.input, cell.output, cell.concurrency, cell.arrivals);
    run.points
        .iter()
        .zip(&run.ids)
        .find(|(point, _)| !point.repeat && key(&point.cell) == key(&like.cell))
        .map(|(point, id)| (point, *id))
}

fn differences(a: &RunReport, b: &RunReport) -> Vec<String> {
    let text = |value: &Option<String>| value.as_deref().map_or("unknown".to_string(), clean);
    let number = |value: Option<u64>| value.map_or("unknown".to_string(), crate::units::thousands);
    let (a, b) = (&a.row, &b.row);
    [
        (
            "engine",
            a.engine.name().to_string(),
            b.engine.name().to_string(),
        ),
        (
            "engine version",
            text(&a.engine_version),
            text(&b.engine_version),
        ),
        ("model", clean(&a.model), clean(&b.model)),
        ("context", number(a.context), number(b.context)),
        ("server", clean(&a.url), clean(&b.url)),
        (
            "simulated",
            a.simulated.to_string(),
            b.simulated.to_string(),
        ),
    ]
    .into_iter()
    .filter(|(_, a, b)| a != b)
    .map(|(what, a, b)| format!("{what}: {a} -> {b}"))
    .collect()
}

fn cell(a: Side<'_>, b: Side<'_>) -> CellComparison {
    let void = |side: Side<'_>, which: &str| {
        (side.point.validity == Validity::Void).then(|| {
            let why = side
                .point
                .reasons
                .first()
                .map_or(String::new(), |r| format!(": {}", clean(&r.text)));
            format!("{which} is void{why}")
        })
    };
    let void = void(a, "the first").or_else(|| void(b, "the second"));
    let figures = if void.is_some() {
        Vec::new()
    } else {
        figures(a, b)
    };
    CellComparison {
        cell: cell_words(&a.point.cell),
        void,
        figures,
    }
}

fn figures(a: Side<'_>, b: Side<'_>) -> Vec<Figure> {
    let median = |name, of: fn(&RequestRecord) -> Option<f64>| {
        let spread =
            |side: Side<'_>| Estimate::median(side.requests.iter().filter_map(of).collect());
        figure(name, "ms", false, spread(a), spread(b))
    };
    let mut all = vec![
        median("TTFT median", |r| r.ttft_ms),
        median("TPOT median", |r| r.tpot_ms),
        median("end to end median", |r| r.e2e_ms),
    ];
    let closed = a.point.cell.arrivals == Arrivals::Closed;
    // In an open loop the output follows the rate that was asked for.
    if closed {
        let rate = |side: Side<'_>| Estimate::throughput(side.point, side.requests);
        all.push(figure(OUTPUT, "tok/s", true, rate(a), rate(b)));
    }
    all
}

/// A figure and the standard error of its logarithm, where there are requests enough for one.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    value: Option<f64>,
    error: Option<f64>,
    n: usize,
}

impl Estimate {
    /// The median; its error from order statistics: ranks `n/2 -+ z sqrt(n)/2` span 95 %.
    fn median(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let value = values.get(n / 2).copied();
        let half = Z95 * (n as f64).sqrt() / 2.0;
        let low = (n as f64 / 2.0 - half).floor().max(0.0) as usize;
        let high = ((n as f64 / 2.0 + half).ceil() as usize).min(n.saturating_sub(1));
        let error = match (values.get(low), values.get(high)) {
            (Some(low), Some(high)) if n >= LEAST && *low > 0.0 => {
                Some((high / low).ln() / (2.0 * Z95))
            }
            _ => None,
        };
        Estimate { value, error, n }
    }

    /// Output tokens a second. In a closed loop it is concurrency times tokens over latency (Little's law), so its error is that of
    /// the ratio of tokens to latency over the requests.
    fn throughput(point: &Point, requests: &[RequestRecord]) -> Self {
        let pairs: Vec<(f64, f64)> = requests
            .iter()
            .filter_map(|r| Some((r.output_tokens? as f64, r.e2e_ms?)))
            .collect();
        let n = pairs.len() as f64;
        let (tokens, ms): (f64, f64) = pairs
            .iter()
            .fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
        let error = (pairs.len() >= LEAST && tokens > 0.0 && ms > 0.0).then(|| {
            let ratio = tokens / ms;
            let off: f64 = pairs.iter().map(|(t, ms)| (t - ratio * ms).powi(2)).sum();
            (off / (n - 1.0) / n).sqrt() / (tokens / n)
        });
        Estimate {
            value: point.output_tok_s,
            error,
            n: pairs.len(),
        }
    }
}

fn figure(
    name: &'static str,
    unit: &'static str,
    more_is_better: bool,
    a: Estimate,
    b: Estimate,
) -> Figure {
    let ratio = a
        .value
        .zip(b.value)
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .map(|(a, b)| b / a);
    let error = a.error.zip(b.error).map(|(a, b)| (a * a + b * b).sqrt());
    let bounds = ratio.zip(error).map(|(ratio, error)| {
        (
            ratio * (-Z95 * error).exp() - 1.0,
            ratio * (Z95 * error).exp() - 1.0,
        )
    });
    let verdict = match bounds {
        None => Verdict::TooFew,
        Some((low, high)) if low <= 0.0 && high >= 0.0 => Verdict::NoDifferenceShown,
        Some((low, _)) if (low > 0.0) == more_is_better => Verdict::Better,
        Some(_) => Verdict::Worse,
    };
    Figure {
        name,
        unit,
        a: a.value,
        b: b.value,
        n_a: a.n,
        n_b: b.n,
        change: ratio.map(|ratio| ratio - 1.0),
        low: bounds.map(|(low, _)| low),
        high: bounds.map(|(_, high)| high),
        verdict,
    }
}

impl Figure {
    /// How the figure and its interval are made, in one sentence.
    pub fn formula(&self) -> &'static str {
        match self.name {
            OUTPUT => {
                "output tokens / measured window; its interval from the ratio of tokens to latency over the requests (Little's law)"
            }
            _ => {
                "median over the requests; its interval from order statistics, ranks n/2 -+ 1.96 sqrt(n)/2"
            }
        }
    }
}

impl Comparison {
    /// In lines for people.
    pub fn text(&self) -> String {
        let mut out = format!(
            "run {} -> run {}{}\n",
            self.a,
            self.b,
            if self.simulated { "  SIMULATED" } else { "" }
        );
        for difference in &self.differences {
            out.push_str(&format!("differs in {difference}\n"));
        }
        for cell in &self.cells {
            out.push_str(&format!("\n{}\n", cell.cell));
            if let Some(void) = &cell.void {
                out.push_str(&format!("  not compared: {void}\n"));
            }
            for figure in &cell.figures {
                out.push_str(&line(figure));
            }
        }
        for (which, cells) in [(self.a, &self.only_a), (self.b, &self.only_b)] {
            for cell in cells {
                out.push_str(&format!("\nonly run {which} has: {cell}\n"));
            }
        }
        if self.cells.is_empty() {
            out.push_str("\nthe runs have no load in common\n");
        } else {
            out.push_str(
                "\nIntervals are 95 % over the requests of each run. They do not know how much one run differs from the next: \
                 repeat both to see that.\n",
            );
        }
        out
    }
}

fn line(figure: &Figure) -> String {
    let value = |value: Option<f64>| value.map_or("–".to_string(), |v| format!("{v:.1}"));
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let interval = match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!("({} to {})", percent(low), percent(high)),
        _ => String::new(),
    };
    format!(
        "  {:<18} {:>10} -> {:>10} {:<6} {:>9} {:<24} {}\n",
        figure.name,
        value(figure.a),
        value(figure.b),
        figure.unit,
        figure.change.map_or(String::new(), percent),
        interval,
        figure.verdict.words()
    )
}
