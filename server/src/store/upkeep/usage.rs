//! The disk usage of a project's rows.

use std::collections::BTreeMap;

use clickhouse::Row;
use clickhouse::query::Query;
use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use super::sql_text::text;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::raw_tables::RAW;

const DAY: i64 = 86_400;
/// The maximum time of a query, in seconds.
const MAX_SECONDS: &str = "30";

/// Disk usage of a project's rows in one table.
#[derive(Row, Deserialize, Serialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct TableUse {
    pub table: String,
    pub rows: u64,
    pub bytes: u64,
}

#[derive(Row, Deserialize)]
struct DayUse {
    day: i64,
    bytes: u64,
}

impl ClickHouse {
    fn usage_query(&self, sql: &str) -> Result<Query, Failure> {
        let query = self.reader()?.query_raw(sql);
        Ok(query.with_setting("max_execution_time", MAX_SECONDS))
    }

    /// Returns the average size of the project's events relative to those of all projects, by their wire size in the 30 days before
    /// `now`.
    async fn weight(&self, project: &str, now: UnixTime) -> Result<f64, Failure> {
        let sql = format!(
            "SELECT ifNotFinite((sumIf(wire_bytes, project = {0}) / sumIf(accepted, project = {0})) / (sum(wire_bytes) / sum(accepted)), 1.) \
             FROM `{1}`.usage_daily WHERE project != '' AND day >= toDate({2}) - 30",
            text(project),
            self.database(),
            now.as_secs()
        );
        Ok(self.usage_query(&sql)?.fetch_one::<f64>().await?)
    }

    /// Returns the disk usage of a project by table, largest first. It is an estimate: the project's share of each table by number
    /// and size of rows.
    pub async fn usage(&self, project: &str, now: UnixTime) -> Result<Vec<TableUse>, Failure> {
        let (database, weight) = (self.database(), self.weight(project, now).await?);
        let tables = self.tables_of_projects().await?;
        let counts: Vec<String> = tables
            .iter()
            .map(|table| {
                format!(
                    "SELECT '{table}' AS table, count() AS rows FROM `{database}`.`{table}` WHERE project = {}",
                    text(project)
                )
            })
            .collect();
        let sql = format!(
            "SELECT table, rows, toUInt64(rows * {weight} * ifNull(row_bytes, 0)) AS bytes FROM ({}) AS counts LEFT JOIN \
             (SELECT table, sum(bytes_on_disk) / greatest(sum(rows), 1) AS row_bytes FROM system.parts \
              WHERE database = '{database}' AND active GROUP BY table) AS sizes USING (table) \
             WHERE rows > 0 ORDER BY bytes DESC, table",
            counts.join(" UNION ALL ")
        );
        Ok(self.usage_query(&sql)?.fetch_all().await?)
    }

    /// Returns the disk usage of a project's events by day: the start of the day in seconds since the epoch, and the bytes.
    pub async fn usage_by_day(
        &self,
        project: &str,
        now: UnixTime,
    ) -> Result<BTreeMap<i64, u64>, Failure> {
        let mut days: BTreeMap<i64, u64> = BTreeMap::new();
        let (database, weight) = (self.database(), self.weight(project, now).await?);
        for raw in RAW.iter().filter(|raw| raw.name != "batches") {
            let sql = format!(
                "SELECT toInt64(toUInt32(toDate({0}))) * {DAY} AS day, toUInt64(count() * {weight} * ifNull(\
                 (SELECT sum(bytes_on_disk) / greatest(sum(rows), 1) FROM system.parts \
                  WHERE database = '{database}' AND active AND table = '{1}'), 0)) AS bytes \
                 FROM `{database}`.`{1}` WHERE project = {2} GROUP BY day",
                raw.time,
                raw.name,
                text(project)
            );
            let found = self.usage_query(&sql)?.fetch_all::<DayUse>();
            for one in found.await? {
                *days.entry(one.day).or_default() += one.bytes;
            }
        }
        Ok(days)
    }
}
