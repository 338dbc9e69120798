//! Raw rows of a signal, for export.

use unjank_foundation::clock::UnixTime;

use super::{InvalidQuery, NamedQuery};
use crate::store::reads::{Reading, SUBJECTS};

/// Larger exports are a case for ClickHouse's own tools.
const MOST_ROWS: u64 = 10_000_000;

/// The signals that are stored as rows of one table.
pub fn tables() -> impl Iterator<Item = &'static str> {
    let whole = SUBJECTS.iter().filter(|one| one.is_one_table());
    whole.map(|one| one.name)
}

/// Returns the reading for the raw rows of a signal, and the maximum number of rows.
pub fn raw_rows(
    mut ask: NamedQuery,
    project: &str,
    signal: &str,
    now: UnixTime,
) -> Result<(Reading, u64), InvalidQuery> {
    let limit = ask.limit.take().unwrap_or(MOST_ROWS).min(MOST_ROWS);
    Ok((ask.single(project, signal, now)?, limit))
}
