//! A cell that was measured in two parts, because the program was stopped in between.

use super::plan::Cell;
use super::point::{Failure, FailureKind, Point, Reason, RequestRecord, Validity};
use super::stats::Samples;
use std::collections::BTreeMap;

/// The point of the second part, with the figures of single requests taken from `all` requests of both. What only a stream has (gaps,
/// tokens one by one) and what needs a steady load (throughput) is that of the second part; `cell` is the one first asked for.
pub fn with_earlier(point: Point, cell: Cell, earlier: u32, all: &[RequestRecord]) -> Point {
    let good = || all.iter().filter(|record| record.failure.is_none());
    let summary = |of: fn(&RequestRecord) -> Option<f64>| {
        let mut samples = Samples::default();
        good().filter_map(of).for_each(|ms| samples.add(ms));
        samples.summary()
    };
    let mut failures: BTreeMap<FailureKind, (Failure, u32)> = BTreeMap::new();
    for failure in all.iter().filter_map(|record| record.failure.as_ref()) {
        let entry = failures
            .entry(failure.kind.clone())
            .or_insert((failure.clone(), 0));
        entry.1 += 1;
    }
    let mut failures: Vec<(Failure, u32)> = failures.into_values().collect();
    failures.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let ok = count(good().count());
    let total = count(all.len());
    let met = good().filter(|record| {
        let queued = record.client_queue_ms.unwrap_or(0.0);
        record
            .ttft_ms
            .is_some_and(|ttft| point.slo.met(ttft + queued, record.tpot_ms))
    });
    let slo_share =
        (point.slo.is_some() && total > 0).then(|| met.count() as f64 / f64::from(total));
    let mut reasons = point.reasons.clone();
    reasons.push(Reason {
        weighs: Validity::Valid,
        text: format!(
            "measured in two parts: {earlier} requests before an interruption, {} after it; throughput and gaps are those of the second part",
            total.saturating_sub(earlier)
        ),
    });
    Point {
        cell,
        total,
        ok,
        failed: total - ok,
        failures,
        input_tokens: good().filter_map(|record| record.input_tokens).sum(),
        output_tokens: good().filter_map(|record| record.output_tokens).sum(),
        ttft_ms: summary(|record| record.ttft_ms),
        client_queue_ms: summary(|record| record.client_queue_ms),
        first_answer_ms: summary(|record| record.first_answer_ms),
        tpot_ms: summary(|record| record.tpot_ms),
        e2e_ms: summary(|record| record.e2e_ms),
        slo_share,
        reasons,
        ..point
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture;

    #[test]
    fn both_parts_count() {
        let later = fixture::point(2, Validity::Valid);
        let good = |ttft_ms| RequestRecord {
            ttft_ms: Some(ttft_ms),
            output_tokens: Some(10),
            ..RequestRecord::default()
        };
        let mut all = vec![good(10.0), good(20.0), good(30.0)];
        all.extend(later.requests.clone());
        let cell = Cell {
            requests: 5,
            ..later.cell
        };
        let point = with_earlier(later, cell, 3, &all);
        assert_eq!((point.total, point.ok, point.failed), (5, 4, 1));
        assert_eq!(point.cell.requests, 5);
        assert_eq!((point.ttft_ms.n, point.ttft_ms.max), (4, Some(30.0)));
        assert_eq!(point.output_tokens, 530);
        assert_eq!(point.failures[0].1, 1);
        assert_eq!(point.validity, Validity::Valid);
        assert!(
            point
                .reasons
                .iter()
                .any(|r| r.text.contains("3 requests before"))
        );
    }
}
