//! Like with like: another mix of devices is told from a change.

use std::collections::BTreeMap;

use super::comparison::{Contested, Measured, ask, measured};
use super::judge::{Case, Judge, MOST_ANSWERED};
use crate::query::Unanswered;
use crate::store::reads::{Formula, subject};

/// A stratum with fewer samples on either side says nothing.
const STRATUM_SAMPLES: f64 = 10.0;

/// Most of the change is gone where devices are compared with their like.
pub(super) fn is_mix_shift(raw: f64, standardised: f64, up: bool) -> bool {
    let sign = if up { 1.0 } else { -1.0 };
    sign * standardised < sign * raw / 2.0
}

/// What tells devices apart, besides what the rule groups by. Not of totals: more devices make more of them, whichever they are.
pub(super) fn kinds_of_devices(case: &Case<'_>) -> Vec<&'static str> {
    let metric = &case.rule.metric;
    let Some(subject) = subject(&metric.signal) else {
        return Vec::new();
    };
    let formula = subject.measure(&metric.measure).map(|one| one.formula);
    if matches!(formula, None | Some(Formula::Is(_) | Formula::Plus(..))) {
        return Vec::new();
    }
    let kinds = ["device_class", "os_name"].into_iter();
    kinds
        .filter(|name| subject.dimension(name).is_some())
        .filter(|name| metric.by.iter().all(|by| by != name))
        // A question groups by three dimensions at most.
        .take(3 - metric.by.len().min(3))
        .collect()
}

/// The relative change of each group when devices are compared with their like, where there are enough of the same on both sides.
pub(super) async fn standardised(
    judge: &Judge,
    case: &Case<'_>,
    contested: &Contested,
) -> Result<BTreeMap<Vec<String>, f64>, Unanswered> {
    let kinds = kinds_of_devices(case);
    if kinds.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut sides = Vec::new();
    for side in [&contested.head, &contested.base] {
        let mut ask = ask(case, contested, side);
        ask.by.extend(kinds.iter().map(|name| (*name).to_owned()));
        ask.limit = Some(MOST_ANSWERED);
        let mut groups: BTreeMap<Vec<String>, Measured> = BTreeMap::new();
        for (mut keys, value) in measured(judge, case, &ask).await? {
            let stratum = keys.split_off(case.rule.metric.by.len());
            groups.entry(keys).or_default().insert(stratum, value);
        }
        sides.push(groups);
    }
    let changes = sides[0].iter().filter_map(|(keys, head)| {
        let base = sides[1].get(keys)?;
        let change = weighed_change(head, base, STRATUM_SAMPLES)?;
        change.is_finite().then(|| (keys.clone(), change))
    });
    Ok(changes.collect())
}

/// The relative change between like and like: the strata's values summed up on both sides with the same weights, those of Mantel and
/// Haenszel (1959), so that a stratum that one side hardly has hardly counts. Nothing when too little of the base has a counterpart.
fn weighed_change(
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
    fn a_change_that_the_devices_of_the_base_do_not_have_is_one_of_the_mix() {
        assert!(is_mix_shift(0.5, 0.0, true));
        assert!(!is_mix_shift(0.5, 0.4, true));
        assert!(!is_mix_shift(0.21, 0.19, true), "nearly all of it is left");
        assert!(is_mix_shift(-0.5, 0.0, false));
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
