//! Distributions from all samples.

use super::point::Summary;
use hdrhistogram::Histogram;

/// Samples that a percentile needs to say anything, as `point.rs` states.
const P90_FROM: u64 = 30;
const P95_FROM: u64 = 60;
const P99_FROM: u64 = 300;
/// Samples from which the extremes enclose the median with 95 % (1 - 2 / 2^n).
const INTERVAL_FROM: u64 = 6;

/// The longest time that is told apart, in nanoseconds: two hours.
const LONGEST_NS: u64 = 7_200_000_000_000;

/// Times in milliseconds (or rates), kept to three digits in bounded memory; mean, minimum and maximum are exact.
#[derive(Debug)]
pub struct Samples {
    /// Nanoseconds. `None` only if the fixed bounds were refused, which they are not.
    histogram: Option<Histogram<u64>>,
    n: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Default for Samples {
    fn default() -> Self {
        Samples::with_digits(3)
    }
}

impl Samples {
    /// Percentiles to one percent, in a tenth of the memory.
    pub fn coarse() -> Self {
        Samples::with_digits(2)
    }

    fn with_digits(digits: u8) -> Self {
        Samples {
            histogram: Histogram::new_with_bounds(1, LONGEST_NS, digits).ok(),
            n: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    pub fn add(&mut self, ms: f64) {
        self.add_many(ms, 1);
    }

    /// Adds the same time `times` over: a read of k tokens gives k of them.
    pub fn add_many(&mut self, ms: f64, times: u64) {
        if !ms.is_finite() || times == 0 {
            return;
        }
        self.n += times;
        self.sum += ms * times as f64;
        self.min = self.min.min(ms);
        self.max = self.max.max(ms);
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record_n((ms * 1e6).max(0.0) as u64, times);
        }
    }

    /// The value that `share` (0..1) of the samples do not exceed, in milliseconds.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let histogram = self.histogram.as_ref().filter(|_| self.n > 0)?;
        let ms = histogram.value_at_quantile(share) as f64 / 1e6;
        // A bucket is wider than the exact bounds.
        Some(ms.clamp(self.min, self.max))
    }

    /// How many samples are over `ms`.
    pub fn count_over(&self, ms: f64) -> u64 {
        let from = (ms * 1e6).max(0.0) as u64 + 1;
        self.histogram
            .as_ref()
            .map_or(0, |histogram| histogram.count_between(from, u64::MAX))
    }

    /// The 95 % interval of the median, by order statistics: the samples of ranks n/2 -+ 0.98 sqrt(n) (normal approximation of the
    /// binomial; Conover, Practical Nonparametric Statistics, section 3.2). Only for independent samples.
    pub fn median_interval(&self) -> Option<(f64, f64)> {
        if self.n < INTERVAL_FROM {
            return None;
        }
        let n = self.n as f64;
        let half = 0.98 * n.sqrt();
        let at = |rank: f64| self.quantile((rank.clamp(1.0, n) - 0.5) / n);
        at((n / 2.0 - half).floor()).zip(at((n / 2.0 + 1.0 + half).ceil()))
    }

    /// Width of that interval as a share of the median.
    pub fn median_width(&self) -> Option<f64> {
        let (low, high) = self.median_interval()?;
        let median = self.quantile(0.5).filter(|median| *median > 0.0)?;
        Some((high - low) / median)
    }

    /// The summary of samples of which many come from one request: without an interval, because they are not independent.
    pub fn summary_of_streams(&self) -> Summary {
        Summary {
            p50_low: None,
            p50_high: None,
            ..self.summary()
        }
    }

    pub fn summary(&self) -> Summary {
        let interval = self.median_interval();
        let some = |from: u64| (self.n >= from.max(1)).then_some(());
        let at = |share, from| some(from).and_then(|()| self.quantile(share));
        Summary {
            n: self.n,
            mean: some(1).map(|()| self.sum / self.n as f64),
            p50: at(0.5, 1),
            p50_low: interval.map(|(low, _)| low),
            p50_high: interval.map(|(_, high)| high),
            p90: at(0.9, P90_FROM),
            p95: at(0.95, P95_FROM),
            p99: at(0.99, P99_FROM),
            min: some(1).map(|()| self.min),
            max: some(1).map(|()| self.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_need_their_samples() {
        let mut samples = Samples::default();
        assert_eq!(samples.summary(), Summary::default());
        let mut seen = Vec::new();
        for n in 1..=300_u64 {
            samples.add(n as f64);
            let s = samples.summary();
            seen.push((
                s.p50.is_some(),
                s.p90.is_some(),
                s.p95.is_some(),
                s.p99.is_some(),
            ));
        }
        assert_eq!(seen[0], (true, false, false, false));
        assert_eq!(seen[28], (true, false, false, false));
        assert_eq!(seen[29], (true, true, false, false));
        assert_eq!(seen[59], (true, true, true, false));
        assert_eq!(seen[298], (true, true, true, false));
        assert_eq!(seen[299], (true, true, true, true));
        let s = samples.summary();
        assert_eq!(
            (s.mean, s.min, s.max),
            (Some(150.5), Some(1.0), Some(300.0))
        );
        let near = |value: Option<f64>, want: f64| (value.unwrap() / want - 1.0).abs() < 0.002;
        assert!(near(s.p50, 150.0) && near(s.p90, 270.0) && near(s.p99, 297.0));
        assert_eq!(samples.count_over(250.5), 50);
    }

    #[test]
    fn the_median_has_an_interval_from_six_samples_on() {
        let mut samples = Samples::default();
        for n in 1..=5 {
            samples.add(f64::from(n));
        }
        assert_eq!(
            (samples.median_interval(), samples.median_width()),
            (None, None)
        );
        samples.add(6.0);
        let (low, high) = samples.median_interval().unwrap();
        assert!((low - 1.0).abs() < 0.01 && (high - 6.0).abs() < 0.01);
        // Of 100 samples those of ranks 40 and 61 (exact: 95.4 %).
        let mut samples = Samples::default();
        for n in 1..=100 {
            samples.add(f64::from(n));
        }
        let s = samples.summary();
        assert_eq!(
            (s.n, s.mean, s.min, s.max),
            (100, Some(50.5), Some(1.0), Some(100.0))
        );
        assert!((s.p50_low.unwrap() - 40.0).abs() < 0.1, "{s:?}");
        assert!((s.p50_high.unwrap() - 61.0).abs() < 0.1, "{s:?}");
        assert!((samples.median_width().unwrap() - 21.0 / 50.0).abs() < 0.01);
        assert_eq!(samples.summary_of_streams().p50_low, None);
    }

    #[test]
    fn one_sample_is_itself_and_nonsense_is_none() {
        let mut samples = Samples::default();
        samples.add(f64::NAN);
        samples.add(-0.0);
        assert_eq!(samples.summary().n, 1);
        let mut samples = Samples::default();
        samples.add_many(15_234.567, 3);
        let s = samples.summary();
        assert_eq!((s.n, s.p50, s.max), (3, Some(15_234.567), Some(15_234.567)));
    }
}
