//! Tests whether two samples differ significantly, and by how much.

use statrs::stats_tests::Alternative;
use statrs::stats_tests::mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu};

/// Maximum number of tested values per side. The test compares all pairs, and more values only reveal irrelevant effects.
pub(super) const MOST_TESTED: usize = 500;
/// Maximum number of values on both sides for an exact p.
const MOST_COUNTED: usize = 40;

/// Below this, the approximation rounds to 0.
const LEAST_P: f64 = 1e-15;

/// The result of a test of two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Test {
    /// Two-sided, not corrected.
    pub(super) p: f64,
    /// Cliff's δ from −1 to 1: how much more often a value of the head is above one of the base than below it.
    pub(super) delta: f64,
}

/// The two-sided Mann–Whitney U test. Returns `None` if a side is empty or a value is NaN.
///
/// Without ties, p is exact for small samples. Otherwise it is the normal approximation, corrected for ties and continuity. The
/// crate's own exact method is not used: it returns the complement if the first sample is not the larger one, and it enumerates
/// every combination.
pub(super) fn mann_whitney(base: &[f64], head: &[f64]) -> Option<Test> {
    let (base, head) = (thinned(base), thinned(head));
    let method = MannWhitneyUMethod::AsymptoticInclContinuityCorrection;
    let (above, approximate) = mannwhitneyu(&head, &base, method, Alternative::TwoSided).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "samples are bounded")]
    let pairs = (base.len() * head.len()) as f64;
    let counted = (base.len() + head.len() <= MOST_COUNTED && !has_ties(&base, &head))
        .then(|| exact(above.max(pairs - above), base.len(), head.len()));
    Some(Test {
        p: counted.unwrap_or(approximate).max(LEAST_P),
        delta: 2.0 * above / pairs - 1.0,
    })
}

/// Returns the smallest p that samples of these sizes can have.
pub(super) fn least_p(base: usize, head: usize) -> f64 {
    let (few, all) = (base.min(head).min(MOST_TESTED), base + head);
    let mut p = 2.0;
    for taken in 0..few {
        #[expect(clippy::cast_precision_loss, reason = "samples are bounded")]
        let share = (few - taken) as f64 / (all - taken) as f64;
        p *= share;
    }
    f64::min(p, 1.0)
}

fn thinned(values: &[f64]) -> Vec<f64> {
    if values.len() <= MOST_TESTED {
        return values.to_vec();
    }
    let place = |number: usize| values[number * values.len() / MOST_TESTED];
    (0..MOST_TESTED).map(place).collect()
}

fn has_ties(base: &[f64], head: &[f64]) -> bool {
    let mut all: Vec<f64> = base.iter().chain(head).copied().collect();
    all.sort_by(f64::total_cmp);
    // −0 and 0 are equal, but not in the total order.
    #[expect(clippy::float_cmp, reason = "ties are equal values")]
    all.windows(2).any(|two| two[0] == two[1])
}

/// Returns twice the share of all orders whose U is at least `u`. Counts the orders value by value.
fn exact(u: f64, base: usize, head: usize) -> f64 {
    // ways[taken][sum]: the number of sets of `taken` ranks, counted from 0, with this sum.
    let ranks = base + head;
    let most = base * head + head * (head - 1) / 2;
    let mut ways = vec![vec![0.0_f64; most + 1]; head + 1];
    ways[0][0] = 1.0;
    for rank in 0..ranks {
        for taken in (1..=head).rev() {
            let (before, after) = ways.split_at_mut(taken);
            let before = &before[taken - 1];
            for sum in (rank..=most).rev() {
                after[0][sum] += before[sum - rank];
            }
        }
    }
    let least = head * (head - 1) / 2;
    let all: f64 = ways[head].iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "samples are small")]
    let beyond = ways[head]
        .iter()
        .enumerate()
        .filter(|(sum, _)| *sum >= least && (*sum - least) as f64 >= u);
    let beyond: f64 = beyond.map(|(_, ways)| ways).sum();
    (2.0 * beyond / all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    /// Compares with the results of `scipy.stats.mannwhitneyu` 1.x.
    #[test]
    fn p_matches_scipy_for_small_and_large_samples_with_and_without_ties() {
        let cases: [(&[f64], &[f64], f64); 7] = [
            (&[1., 2., 3.], &[4., 5., 6., 7.], 0.057_142_857_142_857),
            (
                &[1., 2., 3., 4., 5.],
                &[6., 7., 8., 9., 10.],
                0.007_936_507_936_507_936,
            ),
            (
                &[19., 22., 16., 29., 24.],
                &[20., 11., 17., 12.],
                0.111_111_111_111_111_1,
            ),
            (
                &[1.5, 2.5, 9.5, 4.5, 3.25],
                &[2., 6., 7., 8., 10.],
                0.309_523_809_523_809_5,
            ),
            (
                &[1., 2., 2., 3., 4., 4., 5.],
                &[3., 4., 4., 5., 6., 6., 7., 8.],
                0.022_287_319_014_553,
            ),
            (&[1.; 5], &[2.; 5], 0.003_976_751_709_788_651),
            (&[1.; 5], &[1.; 5], 1.0),
        ];
        for (base, head, p) in cases {
            let test = mann_whitney(base, head).unwrap();
            assert!(close(test.p, p), "{base:?} {head:?}: {test:?}, not {p}");
            let back = mann_whitney(head, base).unwrap();
            assert!(close(back.p, p) && close(back.delta, -test.delta));
        }
        let of = |count: u32, step: u32, modulus: u32, shift: f64| -> Vec<f64> {
            (0..count)
                .map(|number| f64::from(number * step % modulus) + shift)
                .collect()
        };
        let large = mann_whitney(&of(60, 7_919, 1_000, 0.0), &of(70, 7_919, 1_000, 120.0));
        assert!(close(large.unwrap().p, 0.014_121_374_094_677_402));
        let counted = mann_whitney(&of(15, 37, 101, 0.0), &of(18, 53, 103, 20.5));
        assert!(close(counted.unwrap().p, 0.144_774_319_507_941_65));
    }

    #[test]
    fn empty_samples_and_nan_have_no_test() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[1.0], &[f64::NAN]), None);
    }

    #[test]
    fn the_smallest_possible_p_depends_on_the_sample_sizes() {
        assert!(close(least_p(5, 5), 0.007_936_507_936_507_936));
        assert!(close(least_p(1, 1), 1.0));
        assert!(least_p(20, 20) < 1e-10);
        assert!(least_p(5_000, 5_000) < 1e-100);
    }

    #[test]
    fn delta_is_how_much_more_often_the_head_is_above_the_base() {
        let test = mann_whitney(&[1., 2., 3.], &[4., 5., 6.]).unwrap();
        assert!(close(test.delta, 1.0));
        let test = mann_whitney(&[1., 2., 3.], &[2., 1., 3.]).unwrap();
        assert!(close(test.delta, 0.0));
    }
}
