//! The two sides of a comparison, and what is measured on each.

use std::collections::BTreeMap;

use crate::alerts::judge::{Case, Judge};
use crate::query::{NamedQuery, QueryError};
use crate::store::reads::Side;

/// The two sides of a comparison. `app` restricts both to one app.
pub(crate) struct Comparison {
    pub(crate) app: Option<String>,
    pub(crate) head: Side,
    pub(crate) base: Side,
}

pub(crate) type Measured = BTreeMap<Vec<String>, (f64, f64)>;

/// Returns the rule's query for one side.
pub(crate) fn ask(case: &Case<'_>, contested: &Comparison, side: &Side) -> NamedQuery {
    let mut ask = case.ask(side.span.from, side.span.to);
    if let Some(app) = &contested.app {
        ask.filters.retain(|(name, _)| name != "app_id");
        ask.filters.push(("app_id".to_owned(), app.clone()));
    }
    if let Some(version) = &side.version {
        ask.filters
            .push(("app_version".to_owned(), version.clone()));
    }
    ask
}

pub(crate) async fn measured(
    judge: &Judge,
    case: &Case<'_>,
    ask: &NamedQuery,
) -> Result<Measured, QueryError> {
    let rows = judge.rows(case, ask).await?;
    let measured = rows.into_iter().map(|row| {
        let value = row.now.first().copied().unwrap_or(f64::NAN);
        (
            row.keys,
            (value, row.now.get(1).copied().unwrap_or_default()),
        )
    });
    Ok(measured.collect())
}
