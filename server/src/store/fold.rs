//! Rolls rows up many at a time.
//!
//! A group of a roll-up costs as much as some events, and the events of one INSERT fall into nearly as many groups as there are
//! events. So under load the rows of several ranges get the same number, `fold`, which the views that fill the roll-ups
//! pass by; when the fold is full or old enough, the SELECTs of these very views run over its rows. Smaller ranges have no
//! number, and the views roll them up within their INSERT: who watches a single device sees it at once.
//!
//! Exactly once: a range is written down with its fold before its first INSERT, and a fold is written down as closed before it is
//! rolled up, so it always has the same rows; each roll-up is one block with a token made of the fold and the view.

use std::time::Duration;

use clickhouse::Row;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::clickhouse::{ClickHouse, EXACTLY_ONCE, Failure};
use crate::fingerprint::fingerprint;

/// Raw tables that have the column `fold`.
const FOLDED: [&str; 9] = [
    "spans",
    "frame_windows",
    "janks",
    "page_loads",
    "metrics",
    "app_starts",
    "recompositions",
    "sdk_health",
    "traffic",
];

/// Ranges with so many rows are rolled up later: below, a range costs little whatever is done with it.
const FOLDED_FROM: usize = 50_000;
/// A fold of so many rows is rolled up at once: its groups fit in memory.
const FULL: u64 = 3_000_000;
/// And one that is so old: how far the roll-ups may lie behind.
pub(super) const OLD: Duration = Duration::from_secs(10);
/// And one that no range was added to for so long, which is longer than ranges wait for company.
pub(super) const QUIET: Duration = Duration::from_secs(2);

#[must_use]
pub fn is_folded(table: &str) -> bool {
    FOLDED.contains(&table)
}

pub(super) fn worth_folding(rows: usize) -> bool {
    rows >= FOLDED_FROM
}

/// Rows that are rolled up together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fold {
    /// Grows with time, so that the parts of other folds are passed over, and no other log's fold has it.
    pub(super) number: u64,
    pub(super) rows: u64,
    /// No range is added any more.
    pub(super) closed: bool,
}

impl Fold {
    /// The next fold of a log after `last`, begun at `at` in microseconds since the epoch.
    pub(super) fn next(log_id: Uuid, last: u64, at: i64) -> Self {
        const LOG_BITS: u32 = 20;
        let log = fingerprint(&[log_id.as_bytes()]) >> (u64::BITS - LOG_BITS);
        let millis = u64::try_from(at / 1_000).unwrap_or_default();
        let millis = millis.max((last >> LOG_BITS) + 1);
        Self {
            number: (millis << LOG_BITS) | log,
            rows: 0,
            closed: false,
        }
    }

    pub(super) fn is_full(self) -> bool {
        !self.closed && self.rows >= FULL
    }
}

/// A view that fills a roll-up from raw rows, and passes by those that have a fold.
#[derive(Row, Deserialize)]
struct View {
    name: String,
    target: String,
    columns: Vec<String>,
    select: String,
}

/// The groups of a fold come as one block, so that its parts are the same ones each time.
const ONE_BLOCK: [(&str, &str); 3] = [
    ("min_insert_block_size_rows", "1000000000"),
    ("min_insert_block_size_bytes", "0"),
    ("max_insert_threads", "1"),
];

/// What the views say of rows with a fold; here it is the fold that is asked for.
const WITHOUT_FOLD: &str = "WHERE fold = 0";

/// The migration that says so.
const FOLDS: &str = include_str!("../../../migrations/clickhouse/0010_folds.sql");

const VIEWS: &str = "SELECT t.name AS name, extract(any(t.create_table_query), ' TO [^ (]*\\.`?([^ (`.]+)') AS target, \
     arrayMap(one -> one.2, arraySort(groupArray((c.position, c.name)))) AS columns, any(t.as_select) AS select \
     FROM system.tables AS t INNER JOIN system.columns AS c ON c.database = t.database AND c.table = t.name \
     WHERE t.database = {database:String} AND t.engine = 'MaterializedView' AND position(t.as_select, {mark:String}) > 0 \
     GROUP BY t.name ORDER BY name";

impl ClickHouse {
    /// Rolls up the rows of a closed fold, exactly once: the same fold again changes nothing.
    pub(super) async fn roll_up(&self, fold: Fold, log_id: Uuid) -> Result<(), Failure> {
        let client = self.client()?;
        let views = client
            .query_raw(VIEWS)
            .param("database", self.database())
            .param("mark", WITHOUT_FOLD)
            .fetch_all::<View>()
            .await?;
        let wanted = FOLDS.matches(WITHOUT_FOLD).count();
        if views.len() < wanted {
            return Err(Failure::Later(format!(
                "only {} of the {wanted} views that fill roll-ups read `{WITHOUT_FOLD}`: has somebody changed one?",
                views.len()
            )));
        }
        for view in views {
            let select = view
                .select
                .replace(WITHOUT_FOLD, &format!("WHERE fold = {}", fold.number));
            let sql = format!(
                "INSERT INTO `{}`.`{}` (`{}`) {select}",
                self.database(),
                view.target,
                view.columns.join("`, `"),
            );
            let token = format!("{log_id}:fold:{}:{}", fold.number, view.name);
            let roll_up = EXACTLY_ONCE
                .into_iter()
                .chain(ONE_BLOCK)
                .fold(client.query_raw(&sql), |query, (setting, value)| {
                    query.with_setting(setting, value)
                });
            roll_up
                .with_setting("insert_deduplication_token", token)
                .execute()
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_of_a_log_grow_even_when_the_clock_stands() {
        let log = Uuid::from_u128(7);
        let first = Fold::next(log, 0, 1_000_000_000);
        let second = Fold::next(log, first.number, 1_000_000_000);
        let third = Fold::next(log, second.number, 5_000_000_000);
        assert!(first.number < second.number && second.number < third.number);
        assert_ne!(
            first.number,
            Fold::next(Uuid::from_u128(8), 0, 1_000_000_000).number
        );
    }
}
