//! Formulas: Holm's correction, and the change between like and like. The tests themselves are ClickHouse's and `store::reads`'.

use std::collections::BTreeMap;

/// p-values corrected for `compared` comparisons by Holm (1979): those that are not in `p` are taken as 1. In the order of `p`.
pub(super) fn holm(p: &[f64], compared: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut corrected = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        let left = u32::try_from(compared.saturating_sub(rank).max(1)).unwrap_or(u32::MAX);
        least = least.max((p[place] * f64::from(left)).min(1.0));
        corrected[place] = least;
    }
    corrected
}

/// The relative change between like and like: the strata's values summed up on both sides with the same weights, those of Mantel and
/// Haenszel (1959), so that a stratum that one side hardly has hardly counts. Nothing when too little of the base has a counterpart.
pub(super) fn weighed_change(
    head: &BTreeMap<Vec<String>, (f64, f64)>,
    base: &BTreeMap<Vec<String>, (f64, f64)>,
    least_samples: f64,
) -> Option<f64> {
    let counts = |(value, samples): (f64, f64)| value.is_finite() && samples >= least_samples;
    let total: f64 = base.values().map(|(_, samples)| samples).sum();
    let (mut of_head, mut of_base, mut known) = (0.0, 0.0, 0.0);
    for (stratum, before) in base {
        let Some(now) = head.get(stratum).filter(|now| counts(**now)) else {
            continue;
        };
        if counts(*before) {
            let weight = now.1 * before.1 / (now.1 + before.1);
            of_head += now.0 * weight;
            of_base += before.0 * weight;
            known += before.1;
        }
    }
    let enough = known * 2.0 >= total && of_base != 0.0;
    enough.then(|| (of_head - of_base) / of_base.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_multiplies_by_what_is_left_and_never_turns_the_order_around() {
        // The example of Holm's paper in its common form.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005], 4);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (actual, expected) in corrected.iter().zip(expected) {
            assert!((actual - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[0.5], 10), [1.0]);
        assert!((holm(&[0.001], 10)[0] - 0.01).abs() < 1e-12);
    }

    #[test]
    fn a_shift_of_the_mix_weighs_nothing_and_a_slow_down_of_all_weighs_in_full() {
        let side = |slow: (f64, f64), fast: (f64, f64)| {
            BTreeMap::from([
                (vec!["low".to_owned()], slow),
                (vec!["high".to_owned()], fast),
            ])
        };
        let base = side((400.0, 100.0), (100.0, 900.0));
        let shifted = side((400.0, 900.0), (100.0, 100.0));
        let change = weighed_change(&shifted, &base, 10.0).unwrap();
        assert!(change.abs() < 1e-12);
        let slower = side((440.0, 900.0), (110.0, 100.0));
        let change = weighed_change(&slower, &base, 10.0).unwrap();
        assert!((change - 0.1).abs() < 1e-12);
        let others = side((400.0, 900.0), (100.0, 5.0));
        assert_eq!(
            weighed_change(&others, &base, 10.0),
            None,
            "most of the base is gone"
        );
    }
}
