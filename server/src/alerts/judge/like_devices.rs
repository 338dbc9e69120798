//! Compares like devices, to distinguish a shift of the device mix from a change.

use std::collections::BTreeMap;

use crate::alerts::judge::comparison_sides::{Comparison, Measured, ask, measured};
use crate::alerts::judge::{Case, Judge, MAX_ROWS};
use crate::query::{QueryError, strata_of};
use crate::store::reads::{Dimension, subject};

/// A stratum with fewer samples on either side is ignored.
const STRATUM_SAMPLES: f64 = 10.0;

/// Whether most of the change disappears between like devices.
pub(crate) fn is_mix_shift(raw: f64, standardised: f64, up: bool) -> bool {
    let sign = if up { 1.0 } else { -1.0 };
    sign * standardised < sign * raw / 2.0
}

/// Returns the dimensions to stratify devices by, without the dimensions that the rule groups by.
pub(crate) fn kinds_of_devices(case: &Case<'_>) -> Vec<Dimension> {
    let metric = &case.rule.metric;
    let found = subject(&metric.signal).and_then(|of| Some((of, of.measure(&metric.measure)?)));
    found.map_or_else(Vec::new, |(subject, measure)| {
        let by: Vec<_> = metric
            .by
            .iter()
            .filter_map(|name| subject.dimension(name))
            .collect();
        strata_of(subject, measure, &by)
    })
}

/// Returns the relative change between like devices per group, where both sides have enough samples of the same strata.
pub(crate) async fn standardised(
    judge: &Judge,
    case: &Case<'_>,
    contested: &Comparison,
) -> Result<BTreeMap<Vec<String>, f64>, QueryError> {
    let kinds = kinds_of_devices(case);
    if kinds.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut sides = Vec::new();
    for side in [&contested.head, &contested.base] {
        let mut ask = ask(case, contested, side);
        ask.by
            .extend(kinds.iter().map(|kind| kind.name().to_owned()));
        ask.limit = Some(MAX_ROWS);
        let mut groups: BTreeMap<Vec<String>, Measured> = BTreeMap::new();
        for (mut keys, value) in measured(judge, case, &ask).await? {
            let stratum = keys.split_off(case.rule.metric.by.len());
            groups.entry(keys).or_default().insert(stratum, value);
        }
        sides.push(groups);
    }
    let changes = sides[0].iter().filter_map(|(keys, head)| {
        let base = sides[1].get(keys)?;
        let change = weighted_change(head, base, STRATUM_SAMPLES)?;
        change.is_finite().then(|| (keys.clone(), change))
    });
    Ok(changes.collect())
}

/// Returns the relative change between like devices. Both sides sum up their strata with the same weights, those of Mantel and
/// Haenszel (1959), so a stratum that is rare on one side hardly counts. `None` if less than half of the base has a counterpart.
fn weighted_change(
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
    fn a_change_that_vanishes_between_like_devices_is_a_mix_shift() {
        assert!(is_mix_shift(0.5, 0.0, true));
        assert!(!is_mix_shift(0.5, 0.4, true));
        assert!(
            !is_mix_shift(0.21, 0.19, true),
            "nearly all of the change is left"
        );
        assert!(is_mix_shift(-0.5, 0.0, false));
    }

    #[test]
    fn a_mix_shift_cancels_out_and_a_general_slow_down_counts_in_full() {
        let side = |slow: (f64, f64), fast: (f64, f64)| {
            BTreeMap::from([
                (vec!["low".to_owned()], slow),
                (vec!["high".to_owned()], fast),
            ])
        };
        let base = side((400.0, 100.0), (100.0, 900.0));
        let shifted = side((400.0, 900.0), (100.0, 100.0));
        let change = weighted_change(&shifted, &base, 10.0).unwrap();
        assert!(change.abs() < 1e-12);
        let slower = side((440.0, 900.0), (110.0, 100.0));
        let change = weighted_change(&slower, &base, 10.0).unwrap();
        assert!((change - 0.1).abs() < 1e-12);
        let others = side((400.0, 900.0), (100.0, 5.0));
        assert_eq!(
            weighted_change(&others, &base, 10.0),
            None,
            "most of the base has no counterpart"
        );
    }
}
