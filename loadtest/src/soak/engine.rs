//! The engine's CPU time by table: merges from `part_log`, INSERTs from `query_log`.
//!
//! Both logs are ring buffers in memory, so they must be read in every interval.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::clickhouse::ClickHouse;

/// The work for one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TableWork {
    pub(super) table: String,
    pub(super) inserts: u64,
    pub(super) inserted_rows: u64,
    pub(super) insert_cpu_s: f64,
    pub(super) merges: u64,
    pub(super) merged_rows: u64,
    pub(super) merge_cpu_s: f64,
}

impl TableWork {
    pub(super) fn cpu_s(&self) -> f64 {
        self.insert_cpu_s + self.merge_cpu_s
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) inserted: u64,
    pub(super) merged: u64,
}

#[derive(Default)]
pub(super) struct EngineWork {
    tables: BTreeMap<String, TableWork>,
    /// Time of the last entries that were read, in microseconds since the epoch.
    queries_until: i64,
    merges_until: i64,
}

/// All queries except INSERTs.
const OTHER_QUERIES: &str = "(queries)";

const CPU: &str =
    "sum(ProfileEvents['UserTimeMicroseconds'] + ProfileEvents['SystemTimeMicroseconds'])";

impl EngineWork {
    pub(super) async fn read(&mut self, clickhouse: &ClickHouse) -> Result<()> {
        let sql = format!(
            "SELECT if(query_kind = 'Insert', extract(query, 'INSERT INTO `?\\\\w+`?\\\\.`?(\\\\w+)'), '{OTHER_QUERIES}') AS name, count(), \
             sum(written_rows), {CPU}, max(toUnixTimestamp64Micro(event_time_microseconds)) FROM system.query_log \
             WHERE type != 'QueryStart' AND toUnixTimestamp64Micro(event_time_microseconds) > {} GROUP BY name",
            self.queries_until
        );
        for row in clickhouse.rows(&sql).await? {
            let table = self.table(&row)?;
            table.inserts += number(&row, 1)?;
            table.inserted_rows += number(&row, 2)?;
            table.insert_cpu_s += number(&row, 3)? as f64 / 1e6;
            self.queries_until = self.queries_until.max(i64::try_from(number(&row, 4)?)?);
        }
        let sql = format!(
            "SELECT table, count(), sum(rows), {CPU}, max(toUnixTimestamp64Micro(event_time_microseconds)) FROM system.part_log \
             WHERE event_type = 'MergeParts' AND toUnixTimestamp64Micro(event_time_microseconds) > {} GROUP BY table",
            self.merges_until
        );
        for row in clickhouse.rows(&sql).await? {
            let table = self.table(&row)?;
            table.merges += number(&row, 1)?;
            table.merged_rows += number(&row, 2)?;
            table.merge_cpu_s += number(&row, 3)? as f64 / 1e6;
            self.merges_until = self.merges_until.max(i64::try_from(number(&row, 4)?)?);
        }
        Ok(())
    }

    fn table(&mut self, row: &[String]) -> Result<&mut TableWork> {
        let name = row
            .first()
            .context("ClickHouse returned a row without a table")?;
        let table = self.tables.entry(name.clone()).or_default();
        table.table.clone_from(name);
        Ok(table)
    }

    pub(super) fn totals(&self) -> Totals {
        let of_tables = || {
            self.tables
                .values()
                .filter(|one| one.table != OTHER_QUERIES)
        };
        Totals {
            inserted: of_tables().map(|one| one.inserted_rows).sum(),
            merged: of_tables().map(|one| one.merged_rows).sum(),
        }
    }

    pub(super) fn tables(&self) -> Vec<TableWork> {
        let mut tables: Vec<_> = self.tables.values().cloned().collect();
        tables.sort_by(|one, other| other.cpu_s().total_cmp(&one.cpu_s()));
        tables
    }
}

fn number(row: &[String], index: usize) -> Result<u64> {
    row.get(index)
        .and_then(|text| text.parse().ok())
        .with_context(|| format!("unexpected row {row:?} from ClickHouse"))
}
