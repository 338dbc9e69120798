//! Raw rows of a signal, to be taken along.

use super::{Ask, AskError};
use crate::store::reads::{Reading, SUBJECTS};

/// More is for ClickHouse's own tools.
const MOST_ROWS: u64 = 10_000_000;

/// The signals whose rows are rows of one table.
pub fn tables() -> impl Iterator<Item = &'static str> {
    let whole = SUBJECTS.iter().filter(|one| !one.raw.contains("JOIN"));
    whole.map(|one| one.name)
}

/// What to read for the raw rows of a signal, and how many of them at most.
pub fn raw_rows(
    mut ask: Ask,
    project: &str,
    signal: &str,
    now: i64,
) -> Result<(Reading, u64), AskError> {
    let limit = ask.limit.take().unwrap_or(MOST_ROWS).min(MOST_ROWS);
    Ok((ask.single(project, signal, now)?, limit))
}
