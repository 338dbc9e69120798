//! The tables of unjank in ClickHouse, restricted to the rows of one run.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use unjank_protocol::Signal;
use uuid::Uuid;

use crate::clickhouse::ClickHouse;
use crate::fingerprint::{self, SIGNALS, Times};
use crate::ledger::Sum;
use crate::run_tag::RunTag;
use crate::verify::Store;

/// Selects the rows of the run.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// Simulated devices: their install ids share a prefix, and their batch ids a suffix.
    Run(RunTag, Times),
    /// Recorded batches: the rows of these sessions and batches.
    Recorded {
        sessions: Vec<Uuid>,
        batches: Vec<Uuid>,
    },
}

impl Scope {
    fn rows(&self) -> String {
        match self {
            Self::Run(tag, _) => format!(
                "startsWith(toString(install_id), '{}')",
                tag.install_prefix()
            ),
            Self::Recorded { sessions, .. } => format!("session_id IN ({})", quoted(sessions)),
        }
    }

    fn times(&self) -> Times {
        match self {
            Self::Run(_, times) => *times,
            Self::Recorded { .. } => Times::Ignored,
        }
    }

    fn batches(&self) -> String {
        match self {
            Self::Run(tag, _) => format!("endsWith(toString(batch_id), '{}')", tag.batch_suffix()),
            Self::Recorded { batches, .. } => format!("batch_id IN ({})", quoted(batches)),
        }
    }
}

fn quoted(ids: &[Uuid]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    quoted.join(", ")
}

/// The ClickHouse rows of one run.
pub(crate) struct RunStore<'a> {
    pub(crate) clickhouse: &'a ClickHouse,
    pub(crate) scope: Scope,
}

impl Store for RunStore<'_> {
    async fn sums(&self, signal: Signal) -> Result<HashMap<Uuid, Sum>> {
        let sql = format!(
            "SELECT toString(session_id), count(), sum({}) FROM {signal} WHERE {} GROUP BY session_id",
            fingerprint::sql(signal, self.scope.times()),
            self.scope.rows(),
        );
        let mut sums = HashMap::new();
        for row in self.clickhouse.rows(&sql).await? {
            let sum = Sum {
                rows: field(&row, 1)?,
                fingerprints: field(&row, 2)?,
            };
            sums.insert(field(&row, 0)?, sum);
        }
        Ok(sums)
    }

    async fn rows(&self, signal: Signal, sessions: &[Uuid]) -> Result<Vec<(Uuid, u64)>> {
        let sql = format!(
            "SELECT toString(session_id), {} FROM {signal} WHERE {} AND session_id IN ({})",
            fingerprint::sql(signal, self.scope.times()),
            self.scope.rows(),
            quoted(sessions),
        );
        let rows = self.clickhouse.rows(&sql).await?;
        rows.iter()
            .map(|row| Ok((field(row, 0)?, field(row, 1)?)))
            .collect()
    }

    async fn batches(&self) -> Result<HashMap<Uuid, u64>> {
        let sql = format!(
            "SELECT toString(batch_id), count() FROM batches WHERE {} GROUP BY batch_id",
            self.scope.batches(),
        );
        let rows = self.clickhouse.rows(&sql).await?;
        rows.iter()
            .map(|row| Ok((field(row, 0)?, field(row, 1)?)))
            .collect()
    }

    async fn stacks(&self, table: &str) -> Result<(u64, u64)> {
        let sql = format!(
            "SELECT uniqExact(hash), uniqExactIf(hash, hash IN (SELECT stack_hash FROM {table})) \
             FROM (SELECT arrayJoin(arrayPushBack(`samples.stack_hash`, stack_hash)) AS hash FROM janks WHERE {}) \
             WHERE hash != 0",
            self.scope.rows(),
        );
        let rows = self.clickhouse.rows(&sql).await?;
        let row = rows.first().context("ClickHouse returned no count")?;
        Ok((field(row, 0)?, field(row, 1)?))
    }
}

fn field<T: std::str::FromStr>(row: &[String], index: usize) -> Result<T> {
    row.get(index)
        .and_then(|text| text.parse().ok())
        .with_context(|| format!("unexpected row {row:?} from ClickHouse"))
}

/// Returns the number of rows in all signal tables, of every run, to detect whether rows still arrive.
pub(crate) async fn all_rows(clickhouse: &ClickHouse) -> Result<u64> {
    let counts = SIGNALS.map(|signal| format!("(SELECT count() FROM {signal})"));
    clickhouse
        .value(&format!("SELECT {}", counts.join(" + ")))
        .await
}

/// Size of a table's active parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TableSize {
    pub(crate) table: String,
    pub(crate) rows: u64,
    pub(crate) bytes_on_disk: u64,
    pub(crate) bytes_per_row: f64,
}

/// Returns rows and bytes on disk of every non-empty table, the largest first.
pub(crate) async fn sizes(clickhouse: &ClickHouse) -> Result<Vec<TableSize>> {
    let sql = "SELECT table, sum(rows), sum(bytes_on_disk) FROM system.parts \
               WHERE active AND database = 'unjank' GROUP BY table HAVING sum(rows) > 0 ORDER BY 3 DESC";
    let rows = clickhouse.rows(sql).await?;
    rows.iter()
        .map(|row| {
            let rows: u64 = field(row, 1)?;
            let bytes_on_disk: u64 = field(row, 2)?;
            Ok(TableSize {
                table: field(row, 0)?,
                rows,
                bytes_on_disk,
                bytes_per_row: bytes_on_disk as f64 / rows.max(1) as f64,
            })
        })
        .collect()
}

/// Size of a column in the active parts of its table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ColumnSize {
    pub(crate) column: String,
    pub(crate) bytes_per_row: f64,
}

/// Returns the columns of a table, the largest first.
pub(crate) async fn column_sizes(clickhouse: &ClickHouse, table: &str) -> Result<Vec<ColumnSize>> {
    let sql = format!(
        "SELECT column, sum(column_bytes_on_disk) / greatest(sum(rows), 1) AS bytes FROM system.parts_columns \
         WHERE active AND database = 'unjank' AND table = '{table}' GROUP BY column ORDER BY bytes DESC"
    );
    let rows = clickhouse.rows(&sql).await?;
    rows.iter()
        .map(|row| {
            Ok(ColumnSize {
                column: field(row, 0)?,
                bytes_per_row: field(row, 1)?,
            })
        })
        .collect()
}

/// Waits until no merge has run for two seconds, at most a minute, because the cost of a load includes its merges.
pub(crate) async fn merged(clickhouse: &ClickHouse) -> Result<()> {
    let begun = Instant::now();
    let mut quiet_since = begun;
    while quiet_since.elapsed() < Duration::from_secs(2)
        && begun.elapsed() < Duration::from_secs(60)
    {
        let running: u64 = clickhouse
            .value("SELECT count() FROM system.merges WHERE database = 'unjank'")
            .await?;
        if running > 0 {
            quiet_since = Instant::now();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Merges every table of the database into as few parts as possible.
pub(crate) async fn optimize(clickhouse: &ClickHouse) -> Result<()> {
    let sql =
        "SELECT name FROM system.tables WHERE database = 'unjank' AND engine LIKE '%MergeTree'";
    for row in clickhouse.rows(sql).await? {
        let table: String = field(&row, 0)?;
        clickhouse
            .rows(&format!("OPTIMIZE TABLE `{table}` FINAL"))
            .await?;
    }
    Ok(())
}

/// Signals whose roll-ups count the events.
pub(crate) const ROLLED_UP: [Signal; 6] = [
    Signal::Spans,
    Signal::FrameWindows,
    Signal::Janks,
    Signal::PageLoads,
    Signal::Metrics,
    Signal::Recompositions,
];

/// Returns the SQL that counts the events of a roll-up. Rows without a project are written by the server itself.
pub(crate) fn rolled_up(signal: Signal, period: &str) -> String {
    format!("SELECT toUInt64(sum(samples)) FROM {signal}_{period} WHERE project != ''")
}

/// Returns the roll-ups whose count differs from their raw table, with both counts. A difference means that rows were lost or
/// stored twice on one side.
pub(crate) async fn rollups_that_differ(clickhouse: &ClickHouse) -> Result<Vec<String>> {
    let mut differing = Vec::new();
    for table in ROLLED_UP {
        let raw: u64 = clickhouse
            .value(&format!("SELECT count() FROM {table}"))
            .await?;
        for rollup in ["hourly", "daily"] {
            let rolled: u64 = clickhouse.value(&rolled_up(table, rollup)).await?;
            if rolled != raw {
                differing.push(format!("{table} has {raw} rows, {table}_{rollup} {rolled}"));
            }
        }
    }
    Ok(differing)
}
