//! The record of rebuilt parts in ClickHouse. An interrupted rebuild continues from it.

use std::collections::BTreeSet;

use super::{Part, Rebuilder};
use crate::store::clickhouse::Failure;

impl Rebuilder {
    /// Returns the parts that an interrupted run of the same name finished within the last day.
    pub async fn finished(&self, run: &str) -> Result<BTreeSet<(String, u32)>, Failure> {
        let sql = format!(
            "SELECT DISTINCT toString(target), month FROM `{0}`.rollup_rebuilds WHERE run = {{run:String}} AND target != '' \
             AND finished_at > now64(3) - INTERVAL 1 DAY \
             AND finished_at > (SELECT max(finished_at) FROM `{0}`.rollup_rebuilds WHERE run = {{run:String}} AND target = '')",
            self.holder.clickhouse.database()
        );
        let query = self.holder.clickhouse.client()?.query_raw(&sql);
        let parts = query.param("run", run).fetch_all::<(String, u32)>().await?;
        Ok(parts.into_iter().collect())
    }

    /// Records that a part is rebuilt. `rows` is the number of its raw rows.
    pub async fn note_part(&self, run: &str, part: &Part, rows: u64) -> Result<(), Failure> {
        self.note(run, &part.target, part.month, part.hours(), rows)
            .await
    }

    /// Records that the run is complete, so that the next run of this name starts over.
    pub async fn note_end(&self, run: &str) -> Result<(), Failure> {
        self.note(run, "", 0, 0, 0).await
    }

    async fn note(
        &self,
        run: &str,
        target: &str,
        month: u32,
        hours: u64,
        rows: u64,
    ) -> Result<(), Failure> {
        let sql = format!(
            "INSERT INTO `{}`.rollup_rebuilds (run, target, month, hours, rows) SELECT {{run:String}}, '{target}', {month}, {hours}, {rows}",
            self.holder.clickhouse.database()
        );
        let query = self.holder.clickhouse.client()?.query_raw(&sql);
        Ok(query.param("run", run).execute().await?)
    }
}
