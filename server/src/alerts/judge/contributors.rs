//! The origin of a change: the values that changed most, by dimension.

use serde::Serialize;
use utoipa::ToSchema;

use crate::alerts::judge::comparison::is_worse_up;
use crate::alerts::judge::verdict::{Verdict, finite};
use crate::alerts::judge::{Case, Judge, samples_of};
use crate::query::{NamedQuery, QueryError};
use crate::store::reads::subject;

/// A value of a dimension with its numbers.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AlertMoved)]
pub struct Moved {
    /// Such as `device_class`. For janks also `stack_hash` and `title`, the group of stacks.
    pub dimension: &'static str,
    pub key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The same number for the base. For a threshold, the base is the window of the same length before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
}

/// The dimensions to break down by, most important first.
const DIMENSIONS: [&str; 9] = [
    "stack_hash",
    "title",
    "page",
    "name",
    "source",
    "device_class",
    "os_name",
    "app_version",
    "network",
];
const MOST_DIMENSIONS: usize = 4;
const MOST_KEYS: u64 = 5;
const LEAST_SAMPLES: u64 = 10;

/// Returns the values that changed most in the bad direction. A failed query only means less evidence.
pub(crate) async fn moved(judge: &Judge, case: &Case<'_>, verdict: &Verdict) -> Vec<Moved> {
    let metric = &case.rule.metric;
    let known = |name: &&&str| {
        let named = verdict.group.contains_key(**name) || metric.filters.contains_key(**name);
        let compared = **name == "app_version" && verdict.sides.version.is_some();
        let has = subject(&metric.signal).and_then(|subject| subject.dimension(name));
        has.is_some() && !named && !compared
    };
    let mut all = Vec::new();
    for dimension in DIMENSIONS.iter().filter(known).take(MOST_DIMENSIONS) {
        match by(judge, case, verdict, dimension).await {
            Ok(moved) => all.extend(moved),
            Err(error) => tracing::debug!(%error, dimension, "failed to break a change down"),
        }
    }
    all
}

async fn by(
    judge: &Judge,
    case: &Case<'_>,
    verdict: &Verdict,
    dimension: &'static str,
) -> Result<Vec<Moved>, QueryError> {
    let rows = judge.rows(case, &ask(case, verdict, dimension)).await?;
    let moved = rows.into_iter().map(|row| Moved {
        dimension,
        key: row.keys.into_iter().next().unwrap_or_default(),
        value: row.now.first().copied().and_then(finite),
        base: row.base.first().copied().and_then(finite),
    });
    Ok(moved.collect())
}

fn ask(case: &Case<'_>, verdict: &Verdict, dimension: &str) -> NamedQuery {
    let sides = &verdict.sides;
    let mut ask = case.ask(sides.from, sides.to);
    for (name, value) in &verdict.group {
        ask.filters.retain(|(known, _)| known != name);
        ask.filters.push((name.clone(), value.clone()));
    }
    let version = sides.version.iter();
    let version = version.map(|version| ("app_version".to_owned(), version.clone()));
    ask.filters.extend(version);
    ask.base_version.clone_from(&sides.base_version);
    ask.base_from = Some(sides.base_from.unwrap_or(sides.from - case.rule.window()));
    ask.base_to = Some(sides.base_to.unwrap_or(sides.from));
    ask.by = vec![dimension.to_owned()];
    let sign = if is_worse_up(case.rule) { "-" } else { "" };
    ask.order = Some(format!("{sign}change.{}", case.rule.metric.measure));
    ask.limit = Some(MOST_KEYS);
    let counts = samples_of(&case.rule.metric.signal) == "samples";
    ask.at_least_samples = counts.then_some(LEAST_SAMPLES);
    ask
}
