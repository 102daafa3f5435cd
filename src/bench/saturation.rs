//! Where more load brings nothing more: the knee of a throughput curve, and the highest concurrency that keeps the latency targets.

use super::options::Search;
use super::plan::Arrivals;
use super::point::{Point, Validity};

/// Gain in output rate for doubled concurrency under which a level is saturated.
const GAIN: f64 = 0.05;
/// How much TTFT must grow along with it, so that noise is no knee.
const GROWTH: f64 = 0.05;

/// The last level that was worth raising to.
#[derive(Debug, Clone, PartialEq)]
pub struct Knee {
    pub concurrency: u32,
    /// One sentence.
    pub words: String,
}

/// The knee of the points that have the input length of the first. Void points and open loops say nothing about it.
pub fn knee(points: &[Point]) -> Option<Knee> {
    let input = points.first()?.cell.input;
    let mut levels: Vec<(u32, f64, f64)> = points
        .iter()
        .filter(|p| p.validity != Validity::Void && p.cell.arrivals == Arrivals::Closed)
        .filter(|p| !p.repeat && p.cell.concurrency > 0 && p.cell.input == input)
        .filter_map(|p| Some((p.cell.concurrency, p.output_tok_s?, p.ttft_ms.p50?)))
        .collect();
    levels.sort_by_key(|(level, ..)| *level);
    levels.dedup_by_key(|(level, ..)| *level);
    levels.windows(2).find_map(|pair| {
        let [(low, rate, ttft), (high, next_rate, next_ttft)] = pair else {
            return None;
        };
        let doublings = f64::from(*high).log2() - f64::from(*low).log2();
        let gain = (next_rate / rate).powf(1.0 / doublings) - 1.0;
        let saturated = *rate > 0.0 && gain < GAIN && *next_ttft > ttft * (1.0 + GROWTH);
        saturated.then(|| Knee {
            concurrency: *low,
            words: format!(
                "saturated at {low} at once: with {high} the output rate goes from {rate:.1} to {next_rate:.1} tok/s and the first \
                 token from {ttft:.0} to {next_ttft:.0} ms"
            ),
        })
    })
}

/// Whether a level keeps its targets: a share of all its requests meets them, and it counts.
pub fn keeps(point: &Point, share: f64) -> bool {
    point.validity != Validity::Void && point.slo_share.is_some_and(|met| met >= share)
}

/// The highest concurrency among the points that keeps the targets, with none below it that does not.
pub fn highest_within(points: &[Point], share: f64) -> Option<u32> {
    let levels = levels(points, share);
    let missed = levels.iter().filter(|(_, kept)| !kept).map(|(l, _)| *l);
    let below = missed.min().unwrap_or(u32::MAX);
    let kept = levels.iter().filter(|(l, kept)| *kept && *l < below);
    kept.map(|(level, _)| *level).max()
}

fn levels(points: &[Point], share: f64) -> Vec<(u32, bool)> {
    points
        .iter()
        .filter(|p| p.cell.arrivals == Arrivals::Closed && !p.repeat)
        .map(|p| (p.cell.concurrency, keeps(p, share)))
        .collect()
}

/// The next level that the search measures: doubled until one misses the targets, then halfway between the last that keeps them and
/// the first that does not, to within a twentieth. `None` when it is done.
pub fn next_level(search: &Search, points: &[Point]) -> Option<u32> {
    let levels = levels(points, search.share);
    let missed = levels.iter().filter(|(_, kept)| !kept).map(|(l, _)| *l);
    let missed = missed.min();
    let kept = highest_within(points, search.share).unwrap_or(0);
    match missed {
        None if kept >= search.limit => None,
        None => Some(kept.saturating_mul(2).clamp(1, search.limit)),
        Some(missed) if missed - kept <= (kept / 20).max(1) => None,
        Some(missed) => Some(kept + (missed - kept) / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::options::Slo;
    use crate::bench::plan::{Cell, PlanKind};
    use crate::bench::point::Summary;

    fn point(concurrency: u32, rate: f64, ttft: f64) -> Point {
        let cell = Cell {
            kind: PlanKind::Throughput,
            input: 1000,
            output: 500,
            concurrency,
            requests: 8,
            arrivals: Arrivals::Closed,
        };
        Point {
            output_tok_s: Some(rate),
            ttft_ms: Summary {
                n: 8,
                p50: Some(ttft),
                ..Summary::default()
            },
            slo: Slo {
                ttft_ms: Some(1000.0),
                tpot_ms: None,
            },
            slo_share: Some(if ttft <= 1000.0 { 1.0 } else { 0.5 }),
            ..Point::empty(cell)
        }
    }

    #[test]
    fn the_knee_is_where_rate_stands_and_waiting_grows() {
        let points = [
            point(1, 73.5, 140.0),
            point(2, 137.7, 150.0),
            point(4, 207.1, 200.0),
            point(16, 480.0, 400.0),
            point(32, 500.0, 900.0),
            point(64, 505.0, 1900.0),
        ];
        let found = knee(&points).unwrap();
        assert_eq!(found.concurrency, 16);
        assert_eq!(
            found.words,
            "saturated at 16 at once: with 32 the output rate goes from 480.0 to 500.0 tok/s and the first token from 400 to 900 ms"
        );
        assert_eq!(knee(&points[..4]), None);
        // Flat for another reason: nobody waits.
        assert_eq!(knee(&[point(1, 70.0, 100.0), point(2, 70.0, 100.0)]), None);
    }

    #[test]
    fn the_search_finds_the_highest_level_within_the_targets() {
        for edge in [1_u32, 5, 37, 64, 100, 1024] {
            let search = Search {
                limit: 128,
                share: 0.95,
            };
            let mut points = Vec::new();
            while let Some(level) = next_level(&search, &points) {
                assert!(points.len() < 20, "{edge}");
                points.push(point(level, 1.0, if level <= edge { 1.0 } else { 2000.0 }));
            }
            let found = highest_within(&points, search.share).unwrap();
            let want = edge.min(128);
            assert!(
                found <= want && want - found <= want / 20,
                "{found} for {want}"
            );
        }
    }

    #[test]
    fn where_nothing_keeps_them_none_is_found() {
        let points = [
            point(4, 1.0, 2000.0),
            point(2, 1.0, 2000.0),
            point(1, 1.0, 2000.0),
        ];
        let search = Search::default();
        assert_eq!(next_level(&search, &points), None);
        assert_eq!(highest_within(&points, search.share), None);
        assert_eq!(next_level(&search, &points[..2]), Some(1));
        assert_eq!(next_level(&search, &[]), Some(1));
    }
}
