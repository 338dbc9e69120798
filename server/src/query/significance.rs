//! Tests which changes of a compared table chance cannot explain, with the test that alert rules use.

use super::QueryError;
use super::named_query::ResolvedQuery;
use crate::holm::holm;
use crate::store::ClickHouse;
use crate::store::reads::{
    Base, Dimension, Filter, Formula, LEAST_INSTALLS, Measure, Reading, Side, SignificanceTest,
    Subject, Wanted,
};

/// The significance level over all groups of a table together. A change with a lower p-value is significant.
pub const SIGNIFICANCE: f64 = 0.01;

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
    let mut found: Vec<Significance> = Vec::new();
    let measures = reading.measures.clone();
    for (place, measure) in measures.iter().enumerate() {
        reading.measures = vec![measure];
        let strata = strata_of(reading.subject, measure, &reading.by);
        let test = SignificanceTest {
            reading: &reading,
            head: &head,
            base: &base,
            up: true,
            strata: &strata,
        };
        let tested = clickhouse.tested(&test).await?.unwrap_or_default();
        let enough = tested
            .into_iter()
            .filter(|one| one.installs.0.min(one.installs.1) >= LEAST_INSTALLS);
        let enough: Vec<_> = enough.collect();
        let p: Vec<f64> = enough
            .iter()
            .map(|one| (2.0 * one.p.min(1.0 - one.p)).min(1.0))
            .collect();
        for (one, p) in enough.into_iter().zip(holm(&p, p.len())) {
            let row = found.iter().position(|row| row.keys == one.keys);
            let row = row.unwrap_or_else(|| {
                found.push(Significance {
                    keys: one.keys,
                    p: vec![None; measures.len()],
                });
                found.len() - 1
            });
            found[row].p[place] = Some(p);
        }
    }
    Ok(found)
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
