//! What the levels of a run say together.

use super::RunReport;
use crate::bench::options::Search;
use crate::bench::point::Point;
use crate::bench::saturation::{highest_within, knee};
use crate::units::short_count;
use serde::Serialize;
use std::collections::BTreeSet;

/// What the levels of one input length say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub isl: u64,
    pub osl: u64,
    /// Above this concurrency the output rate no longer grows.
    pub saturated_at: Option<u32>,
    /// The highest concurrency measured that keeps the latency targets.
    pub highest_within_slo: Option<u32>,
    pub words: Vec<String>,
}

/// One for each length that has anything to say.
pub fn findings(run: &RunReport) -> Vec<Finding> {
    let lengths: BTreeSet<(u64, u64)> = run
        .points
        .iter()
        .map(|point| (point.cell.input, point.cell.output))
        .collect();
    lengths
        .into_iter()
        .filter_map(|(isl, osl)| {
            let of_length = |point: &&Point| (point.cell.input, point.cell.output) == (isl, osl);
            let points: Vec<Point> = run.points.iter().filter(of_length).cloned().collect();
            let mut words = Vec::new();
            let knee = knee(&points);
            words.extend(knee.as_ref().map(|knee| knee.words.clone()));
            let targets = points.iter().any(|point| point.slo.is_some());
            let within = highest_within(&points, Search::default().share).filter(|_| targets);
            if targets {
                words.push(match within {
                    Some(level) => format!(
                        "{level} at once is the highest concurrency measured that keeps the latency targets"
                    ),
                    None => "no concurrency measured keeps the latency targets".to_string(),
                });
            }
            (!words.is_empty()).then_some(Finding {
                isl,
                osl,
                saturated_at: knee.map(|knee| knee.concurrency),
                highest_within_slo: within,
                words,
            })
        })
        .collect()
}

impl Finding {
    /// In lines: `1K in, 500 out: …`.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let who = format!(
            "{} in, {} out",
            short_count(self.isl),
            short_count(self.osl)
        );
        self.words
            .iter()
            .map(move |words| format!("{who}: {words}"))
    }
}
