//! Tests which changes of a compared table chance cannot explain, with the test that alert rules use.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use unjank_foundation::holm::holm;

use super::QueryError;
use super::named_query::ResolvedQuery;
use crate::store::reads::{
    Base, Dimension, Filter, Formula, LEAST_INSTALLS, Measure, Reading, Side, SignificanceTest,
    Subject, Wanted, have_same_test,
};
use crate::store::{ClickHouse, Failure};

/// The significance level over all groups of a table together. A change with a lower p-value is significant.
pub const SIGNIFICANCE: f64 = 0.01;
/// Number of measures that one request tests at the same time. Each test uses all free cores.
const AT_ONCE: usize = 2;

/// The result of the test for one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Significance {
    pub keys: Vec<String>,
    /// For each measure, the probability of such a difference by chance, in either direction, corrected for the number of compared
    /// groups (Holm). `None` if the measure has no test, or if either side has too few installs.
    pub p: Vec<Option<f64>>,
}

/// Tests every measure of a compared reading, by group.
pub async fn significance(
    clickhouse: &ClickHouse,
    asked: &ResolvedQuery,
) -> Result<Vec<Significance>, QueryError> {
    let mut reading = asked.reading.clone();
    let Some((head, base)) = sides(&mut reading) else {
        return Ok(Vec::new());
    };
    let measures = reading.measures.clone();
    let mut distinct: Vec<&'static Measure> = Vec::new();
    for measure in measures.iter().copied() {
        if !distinct.iter().any(|one| have_same_test(one, measure)) {
            distinct.push(measure);
        }
    }
    let mut found: BTreeMap<Vec<String>, Vec<Option<f64>>> = BTreeMap::new();
    for some in distinct.chunks(AT_ONCE) {
        let tests = some
            .iter()
            .copied()
            .map(|measure| tested(clickhouse, &reading, measure, (&head, &base)));
        for (measure, groups) in some.iter().zip(try_join_all(tests).await?) {
            let is_same = |place: &usize| have_same_test(measure, measures[*place]);
            let same: Vec<usize> = (0..measures.len()).filter(is_same).collect();
            for (keys, p) in groups {
                let row = found.entry(keys);
                let row = row.or_insert_with(|| vec![None; measures.len()]);
                same.iter().for_each(|place| row[*place] = Some(p));
            }
        }
    }
    let rows = found.into_iter();
    Ok(rows.map(|(keys, p)| Significance { keys, p }).collect())
}

/// Tests one measure. Returns the groups with enough installs and their corrected p-values.
async fn tested(
    clickhouse: &ClickHouse,
    reading: &Reading,
    measure: &'static Measure,
    (head, base): (&Side, &Side),
) -> Result<Vec<(Vec<String>, f64)>, Failure> {
    let mut reading = reading.clone();
    reading.measures = vec![measure];
    let strata = strata_of(reading.subject, measure, &reading.by);
    let test = SignificanceTest {
        reading: &reading,
        head,
        base,
        up: true,
        strata: &strata,
    };
    let groups = clickhouse.tested(&test).await?.unwrap_or_default();
    let enough: Vec<_> = groups
        .into_iter()
        .filter(|one| one.installs.0.min(one.installs.1) >= LEAST_INSTALLS)
        .collect();
    let p: Vec<f64> = enough
        .iter()
        .map(|one| (2.0 * one.p.min(1.0 - one.p)).min(1.0))
        .collect();
    let corrected = holm(&p, p.len());
    Ok(enough
        .into_iter()
        .map(|one| one.keys)
        .zip(corrected)
        .collect())
}

/// Takes the base out of a reading. Returns `None` if the reading has no base, or if it compares several versions with one.
fn sides(reading: &mut Reading) -> Option<(Side, Side)> {
    let base = reading.base.take()?;
    let side = |version: Option<&String>, span| Side {
        version: version.cloned(),
        span,
    };
    let Base::Version { name, span } = &base else {
        return Some((side(None, reading.span), side(None, base.span())));
    };
    let of_version = |filter: &Filter| filter.dimension.name() == "app_version";
    let mut chosen = reading.filters.iter().filter(|one| of_version(one));
    let head = match (chosen.next().map(|one| &one.wanted), chosen.next()) {
        (Some(Wanted::OneOf(versions)), None) if versions.len() == 1 => versions.first().cloned(),
        _ => return None,
    };
    reading.filters.retain(|one| !of_version(one));
    Some((side(head.as_ref(), reading.span), side(Some(name), *span)))
}

/// Returns the dimensions to stratify devices by, without the dimensions of the groups. Totals have no strata, because they grow with the
/// number of devices of any kind.
#[must_use]
pub fn strata_of(subject: &'static Subject, measure: &Measure, by: &[Dimension]) -> Vec<Dimension> {
    if matches!(measure.formula, Formula::Is(_) | Formula::Plus(..)) {
        return Vec::new();
    }
    let kinds = ["device_class", "os_name"].into_iter();
    kinds
        .filter(|name| by.iter().all(|one| one.name() != *name))
        .filter_map(|name| subject.dimension(name))
        // A query groups by at most three dimensions.
        .take(3 - by.len().min(3))
        .collect()
}
