//! Scratch tables, and the state of the month that they replace.

use clickhouse::{Row, RowOwned, RowRead};
use serde::Deserialize;

use super::{Part, Rebuilder, SETTINGS};
use crate::store::clickhouse::Failure;

/// Changes with every INSERT into a month and every mutation of it, but not with merges.
#[derive(Row, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MonthState {
    last_block: i64,
    mutation: i64,
}

/// Matches the names of scratch tables.
pub(crate) const SCRATCH: &str = "_(hourly|daily)_rebuild_[0-9]{6}_[0-9a-f]{32}(_rest)?$";

impl Rebuilder {
    /// Creates an empty table like the part's. Its name contains the rebuild's id: a rebuild that was believed dead cannot write to
    /// the table of another.
    pub(super) async fn new_scratch(&self, part: &Part, what: &str) -> Result<String, Failure> {
        let (database, target) = (self.database(), &part.target);
        let holder = self.holder.id.simple();
        let scratch = format!(
            "`{database}`.`{target}_rebuild_{}_{holder}{what}`",
            part.month
        );
        self.drop_scratch(&scratch).await?;
        self.execute(&format!(
            "CREATE TABLE {scratch} AS `{database}`.`{target}`"
        ))
        .await?;
        Ok(scratch)
    }

    /// Creates a table with the rows of the month that are kept as they are, including marks. Its files are links to those of the
    /// month, and a lightweight DELETE only records which rows are gone: 2.4 million rows took 0.3 s, compared with 7.6 s for a
    /// copy.
    pub(super) async fn rest(&self, part: &Part, rebuilt: &str) -> Result<String, Failure> {
        let rest = self.new_scratch(part, "_rest").await?;
        let month = format!("`{}`.`{}`", self.database(), part.target);
        if self.month_state(part).await?.last_block > 0 {
            self.attach(&rest, part.month, &month).await?;
            self.execute(&format!(
                "DELETE FROM {rest} WHERE {rebuilt} SETTINGS lightweight_deletes_sync = 2"
            ))
            .await?;
        }
        Ok(rest)
    }

    /// Attaches a month of another table, if it has any rows.
    pub(super) async fn attach(&self, table: &str, month: u32, from: &str) -> Result<(), Failure> {
        if !self.has_rows(from).await? {
            return Ok(());
        }
        let sql = format!("ALTER TABLE {table} ATTACH PARTITION {month} FROM {from}");
        self.execute(&sql).await
    }

    pub(super) async fn drop_scratch(&self, scratch: &str) -> Result<(), Failure> {
        let sql = format!("DROP TABLE IF EXISTS {scratch} SYNC");
        let query = self.holder.clickhouse.client()?.query_raw(&sql);
        let query = query.with_setting("max_table_size_to_drop", "0");
        Ok(query.execute().await?)
    }

    /// Drops the scratch tables of one rebuild, or of all rebuilds if `id` is empty.
    pub(super) async fn drop_scratches(&self, id: &str) -> Result<(), Failure> {
        let sql = format!(
            "SELECT name FROM system.tables WHERE database = '{}' AND match(name, '{SCRATCH}') AND position(name, '{id}') > 0",
            self.database()
        );
        for name in self.ask::<String>(&sql).await? {
            self.drop_scratch(&format!("`{}`.`{name}`", self.database()))
                .await?;
        }
        Ok(())
    }

    pub(super) async fn has_rows(&self, scratch: &str) -> Result<bool, Failure> {
        let sql = format!("SELECT count() FROM {scratch}");
        let rows = self.ask::<u64>(&sql).await?;
        Ok(rows.into_iter().sum::<u64>() > 0)
    }

    pub(super) async fn month_state(&self, part: &Part) -> Result<MonthState, Failure> {
        let sql = format!(
            "SELECT max(max_block_number) AS last_block, max(toInt64OrZero(splitByChar('_', name)[5])) AS mutation FROM system.parts \
             WHERE database = '{}' AND table = '{}' AND active AND partition = '{}'",
            self.database(),
            part.target,
            part.month
        );
        let states = self.ask::<MonthState>(&sql).await?;
        states
            .into_iter()
            .next()
            .ok_or_else(|| Failure::Later("system.parts returned no row".to_owned()))
    }

    pub(super) async fn ask<T>(&self, sql: &str) -> Result<Vec<T>, Failure>
    where
        T: RowOwned + RowRead,
    {
        let query = self.holder.clickhouse.client()?.query_raw(sql);
        let query = SETTINGS.into_iter().fold(query, |query, (name, value)| {
            query.with_setting(name, value)
        });
        Ok(query.fetch_all::<T>().await?)
    }
}
