//! The buckets of histograms as values with counts.

/// Measurements between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) count: u64,
}

/// The most values of a data point of one sign. More buckets are merged in pairs until they fit.
const MOST: usize = 32;

/// The buckets of a histogram with bounds. `None` if their numbers do not fit together. The outer buckets have no bound of their own; they
/// end at the smallest and the largest value if these are known.
pub(super) fn explicit(
    bounds: &[f64],
    counts: &[u64],
    min: Option<f64>,
    max: Option<f64>,
) -> Option<Vec<Bucket>> {
    let is_sorted = bounds.windows(2).all(|pair| pair[0] < pair[1]);
    if counts.len() != bounds.len() + 1
        || !is_sorted
        || bounds.iter().any(|bound| !bound.is_finite())
    {
        return None;
    }
    let (first, last) = (bounds.first().copied(), bounds.last().copied());
    // Without a smallest value, measurements are taken to be positive, as durations and sizes are.
    let lowest = min.or_else(|| first.map(|first| first.min(0.)));
    let highest = max.or(last);
    let lows = lowest.into_iter().chain(bounds.iter().copied());
    let highs = bounds.iter().copied().chain(highest);
    let all = lows.zip(highs).zip(counts);
    let buckets = all.map(|((low, high), count)| Bucket {
        low: min.map_or(low, |min| low.max(min)),
        high: max.map_or(high, |max| high.min(max)).max(low),
        count: *count,
    });
    Some(merged(buckets.filter(|bucket| bucket.count > 0).collect()))
}

/// The buckets of an exponential histogram of one sign: bucket `offset + n` holds values above base^(offset + n), up to base^(offset + n + 1),
/// where base = 2^(2^-scale) (*Exponential histogram*).
pub(super) fn exponential(scale: i32, offset: i32, counts: &[u64], sign: f64) -> Vec<Bucket> {
    let bound = |index: i64| {
        #[expect(clippy::cast_precision_loss, reason = "an index has 32 bits")]
        // Scales of exporters are -11 to 20. Beyond -12, one bucket holds all numbers.
        let exponent = index as f64 * f64::from(-scale.clamp(-12, 40)).exp2();
        // Larger numbers are not accepted as values.
        exponent.clamp(-790., 790.).exp2()
    };
    let counted = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let buckets = counted.map(|(index, count)| {
        let index = i64::from(offset) + i64::try_from(index).unwrap_or_default();
        let (near, far) = (bound(index) * sign, bound(index + 1) * sign);
        Bucket {
            low: near.min(far),
            high: near.max(far),
            count: *count,
        }
    });
    merged(buckets.collect())
}

fn merged(mut buckets: Vec<Bucket>) -> Vec<Bucket> {
    while buckets.len() > MOST {
        let pairs = buckets.chunks(2).map(|pair| Bucket {
            low: pair.iter().map(|one| one.low).fold(f64::INFINITY, f64::min),
            high: pair
                .iter()
                .map(|one| one.high)
                .fold(f64::NEG_INFINITY, f64::max),
            count: pair
                .iter()
                .fold(0_u64, |sum, one| sum.saturating_add(one.count)),
        });
        buckets = pairs.collect();
    }
    buckets
}

/// One value for each bucket: its middle, moved so that all together have the sum of the measurements, if it is known and possible.
pub(super) fn fitted(buckets: &[Bucket], sum: Option<f64>) -> Vec<(f64, u64)> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a mean of so many values is not exact"
    )]
    let total = |value: fn(&Bucket) -> f64| {
        buckets
            .iter()
            .map(|one| value(one) * one.count as f64)
            .sum::<f64>()
    };
    let middle = total(|one| f64::midpoint(one.low, one.high));
    let room = total(|one| (one.high - one.low) / 2.);
    let share = match sum {
        Some(sum) if sum.is_finite() && room > 0. => ((sum - middle) / room).clamp(-1., 1.),
        _ => 0.,
    };
    let values = buckets.iter().map(|one| {
        let moved = f64::midpoint(one.low, one.high) + share * (one.high - one.low) / 2.;
        (moved, one.count)
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[(f64, u64)]) -> f64 {
        let count: u64 = values.iter().map(|(_, count)| count).sum();
        let sum: f64 = values
            .iter()
            .map(|(value, count)| value * *count as f64)
            .sum();
        sum / count as f64
    }

    #[test]
    fn values_have_the_mean_of_the_measurements_and_stay_in_their_buckets() {
        // 3, 4, 12 and 90, in buckets of 0..5, 5..10, 10..25 and above.
        let buckets = explicit(&[5., 10., 25.], &[2, 0, 1, 1], Some(3.), Some(90.)).unwrap();
        let values = fitted(&buckets, Some(109.));
        assert_eq!(
            values.iter().map(|(_, count)| *count).collect::<Vec<_>>(),
            [2, 1, 1]
        );
        assert!((mean(&values) - 27.25).abs() < 1e-9, "{values:?}");
        for ((value, _), bucket) in values.iter().zip(&buckets) {
            assert!(
                (bucket.low..=bucket.high).contains(value),
                "{value} {bucket:?}"
            );
        }
    }

    #[test]
    fn a_histogram_without_bounds_is_its_range() {
        let buckets = explicit(&[], &[4], Some(1.), Some(9.)).unwrap();
        assert_eq!(fitted(&buckets, Some(8.)), [(2., 4)]);
        // Nothing is known but the number and the sum.
        assert_eq!(explicit(&[], &[4], None, None), Some(Vec::new()));
    }

    #[test]
    fn counts_that_do_not_match_the_bounds_are_refused() {
        assert_eq!(explicit(&[1., 2.], &[1, 1], None, None), None);
        assert_eq!(explicit(&[2., 1.], &[1, 1, 1], None, None), None);
        assert_eq!(explicit(&[f64::NAN], &[1, 1], None, None), None);
    }

    #[test]
    fn exponential_buckets_have_the_bounds_of_the_specification() {
        // Scale 0 has the base 2.
        let buckets = exponential(0, 1, &[3, 0, 1], 1.);
        let bounds: Vec<_> = buckets
            .iter()
            .map(|one| (one.low, one.high, one.count))
            .collect();
        assert_eq!(bounds, [(2., 4., 3), (8., 16., 1)]);
        let negative = exponential(-1, 0, &[1], -1.);
        assert_eq!((negative[0].low, negative[0].high), (-4., -1.));
        // Scales and offsets at the ends of their types are numbers all the same.
        for (scale, offset) in [
            (i32::MIN, i32::MAX),
            (i32::MAX, i32::MIN),
            (20, i32::MAX),
            (-10, i32::MIN),
        ] {
            let all = exponential(scale, offset, &[1; 160], 1.);
            assert!(
                all.len() <= MOST
                    && all
                        .iter()
                        .all(|one| one.low.is_finite() && one.high.is_finite())
            );
            assert_eq!(all.iter().map(|one| one.count).sum::<u64>(), 160);
        }
    }
}
