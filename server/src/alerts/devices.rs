//! Like with like: another mix of devices is told from a change.

use std::collections::BTreeMap;

use super::comparison::{Contested, Measured, ask, measured};
use super::judge::{Case, Judge};
use super::statistics::weighed_change;
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
        ask.limit = Some(1_000);
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
}
