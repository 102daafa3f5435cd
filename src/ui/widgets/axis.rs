//! Scales and their ticks.

/// Round numbers around `[low, high]` for an axis: the range and the value of each tick, `parts` spaces between them at most.
pub fn round_range(low: f64, high: f64, parts: usize) -> (f64, f64, Vec<f64>) {
    let (low, high) = if low.is_finite() && high.is_finite() && low <= high {
        (low, high)
    } else {
        (0.0, 1.0)
    };
    let spread = if high - low > f64::EPSILON * high.abs().max(1.0) {
        high - low
    } else {
        high.abs().max(1.0) * 0.1
    };
    let step = round_step(spread / parts.max(1) as f64);
    let from = (low / step).floor() * step;
    let mut to = (high / step).ceil() * step;
    if to <= from {
        to = from + step;
    }
    let count = (((to - from) / step).round() as usize).min(64);
    let ticks = (0..=count).map(|i| from + step * i as f64).collect();
    (from, to, ticks)
}

/// The smallest round number (one that people count in, times a power of ten) that is not below `wanted`.
fn round_step(wanted: f64) -> f64 {
    if !(wanted.is_finite() && wanted > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(wanted.log10().floor());
    [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= wanted * 0.999)
        .unwrap_or(10.0 * power)
}

/// 1, 2 and 5 times powers of ten from `low` to `high`, for a logarithmic axis: the powers first, then the others, so that what finds
/// no room is one of these.
pub fn decades(low: f64, high: f64) -> Vec<f64> {
    if !(low.is_finite() && high.is_finite() && low > 0.0 && high >= low) {
        return Vec::new();
    }
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    [1.0, 2.0, 5.0]
        .into_iter()
        .flat_map(|factor| powers.clone().map(move |power| factor * 10f64.powi(power)))
        .filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001)
        .collect()
}

/// A tick's value with as many decimals as its axis needs.
pub fn label(value: f64, ticks: &[f64]) -> String {
    let step = match ticks {
        [first, second, ..] => second - first,
        _ => value,
    };
    let whole = |x: f64| (x - x.round()).abs() < 1e-6;
    if whole(step) && whole(value) {
        format!("{value:.0}")
    } else if whole(step * 10.0) {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Where `value` stands between `low` (the bottom) and `high`, as a dot row of `rows`, 0 at the top.
pub fn dot_row(value: f64, low: f64, high: f64, rows: usize) -> usize {
    if rows == 0 || high <= low {
        return 0;
    }
    let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
    ((1.0 - share) * (rows - 1) as f64).round() as usize
}

/// Seconds between labels of a time axis, so that at most `labels` of them stand on `span` seconds.
pub fn time_step(span: i64, labels: usize) -> i64 {
    const STEPS: [i64; 16] = [
        10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
        172_800, 604_800,
    ];
    let labels = i64::try_from(labels.max(1)).unwrap_or(1);
    STEPS
        .into_iter()
        .find(|step| span / step <= labels)
        .unwrap_or_else(|| (span / labels).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_round_and_hold_their_values() {
        assert_eq!(
            round_range(64.9, 73.6, 2),
            (60.0, 75.0, vec![60.0, 65.0, 70.0, 75.0])
        );
        assert_eq!(round_range(0.0, 15.2, 2), (0.0, 16.0, vec![0.0, 8.0, 16.0]));
        for (low, high) in [
            (0.0, 0.0),
            (5.0, 5.0),
            (-3.0, 1e9),
            (f64::NAN, 2.0),
            (1.0, f64::INFINITY),
            (1e-9, 2e-9),
        ] {
            let (from, to, ticks) = round_range(low, high, 3);
            assert!(from < to && ticks.len() >= 2, "{low} {high}: {ticks:?}");
            if low.is_finite() && high.is_finite() {
                assert!(from <= low && to >= high, "{low} {high}: {from} {to}");
            }
        }
    }

    #[test]
    fn labels_carry_what_the_axis_needs() {
        assert_eq!(label(7.5, &[0.0, 7.5, 15.0]), "7.5");
        assert_eq!(label(70.0, &[60.0, 70.0]), "70");
        assert_eq!(label(0.25, &[0.0, 0.25, 0.5]), "0.25");
    }

    #[test]
    fn values_stand_where_they_belong() {
        assert_eq!(dot_row(0.0, 0.0, 10.0, 41), 40);
        assert_eq!(dot_row(10.0, 0.0, 10.0, 41), 0);
        assert_eq!(dot_row(5.0, 0.0, 10.0, 41), 20);
        assert_eq!(dot_row(99.0, 0.0, 10.0, 41), 0);
        assert_eq!(dot_row(1.0, 0.0, 0.0, 41), 0);
    }

    #[test]
    fn decades_are_round_and_inside() {
        assert_eq!(decades(0.16, 12.4), [1.0, 10.0, 0.2, 2.0, 0.5, 5.0]);
        assert!(decades(0.0, 5.0).is_empty() && decades(f64::NAN, 1.0).is_empty());
    }

    #[test]
    fn time_labels_are_few() {
        assert_eq!(time_step(900, 4), 300);
        assert_eq!(time_step(60, 6), 10);
        assert_eq!(time_step(86_400, 8), 10_800);
    }
}
