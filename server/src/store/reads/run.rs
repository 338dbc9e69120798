//! Runs readings on ClickHouse. A query that takes too long, or whose client disconnects, is cancelled.

use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;

use super::reading::{Reading, Sort};
use super::statement::Statement;
use crate::store::clickhouse::{ClickHouse, Failure};

/// A slower query is cancelled, because a client waits for it.
const MAX_SECONDS: u32 = 20;
const MAX_MEMORY: u64 = 2 << 30;

/// The amount of data that a query read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub rows: u64,
    pub bytes: u64,
}

/// A group of a table.
#[derive(Clone, Debug, PartialEq, Row, Deserialize)]
pub struct TableRow {
    pub keys: Vec<String>,
    /// The measures; NaN where nothing was measured.
    pub now: Vec<f64>,
    /// The same measures of the base; empty if the base lacks the group.
    pub base: Vec<f64>,
}

/// A group at one step of time.
#[derive(Clone, Debug, PartialEq, Row, Deserialize)]
pub struct Point {
    pub keys: Vec<String>,
    /// Start of the step, in seconds since the epoch.
    pub at: i64,
    pub measured: Vec<f64>,
}

/// A group's histogram.
#[derive(Clone, Debug, PartialEq, Row, Deserialize)]
pub struct Distribution {
    pub keys: Vec<String>,
    pub buckets: Vec<i32>,
    pub weights: Vec<f64>,
}

impl Statement {
    /// Adds the parameters to the query.
    pub(super) fn with_parameters(self, mut query: Query) -> Query {
        for (name, value) in self.numbers {
            query = query.param(&name, value);
        }
        for (name, value) in self.texts {
            query = query.param(&name, value);
        }
        for (name, values) in self.lists {
            query = query.param(&name, values);
        }
        query
    }
}

impl ClickHouse {
    /// Reads the groups of a reading.
    pub async fn read_table(
        &self,
        reading: &Reading,
        sort: Sort,
        limit: u64,
    ) -> Result<(Vec<TableRow>, Read), Failure> {
        self.read(reading.table(self.database(), sort, limit)).await
    }

    /// Reads the groups of a reading over time.
    pub async fn read_series(
        &self,
        reading: &Reading,
        step_s: u32,
        limit: u64,
    ) -> Result<(Vec<Point>, Read), Failure> {
        self.read(reading.series(self.database(), step_s, limit))
            .await
    }

    /// Reads the histogram of each group.
    pub async fn read_histogram(
        &self,
        reading: &Reading,
        aggregate: &str,
        limit: u64,
    ) -> Result<(Vec<Distribution>, Read), Failure> {
        self.read(reading.histogram(self.database(), aggregate, limit))
            .await
    }

    pub(super) async fn read<T>(&self, statement: Statement) -> Result<(Vec<T>, Read), Failure>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead,
    {
        let query = self.question(&statement.sql)?;
        self.collect(statement.with_parameters(query)).await
    }

    /// Creates a read-only query with limits.
    pub(crate) fn question(&self, sql: &str) -> Result<Query, Failure> {
        // `query_raw` leaves every `?` in the text: values are passed as server-side parameters.
        let query = self.reader()?.query_raw(sql);
        Ok(query
            .with_setting("readonly", "2")
            .with_setting("max_execution_time", MAX_SECONDS.to_string())
            .with_setting("max_memory_usage", MAX_MEMORY.to_string())
            .with_setting("cancel_http_readonly_queries_on_client_close", "1")
            .with_setting("wait_end_of_query", "1"))
    }

    /// Returns all rows of a query and the amount of data that it read.
    pub(crate) async fn collect<T>(&self, query: Query) -> Result<(Vec<T>, Read), Failure>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead,
    {
        let mut cursor = query.fetch::<T>()?;
        let mut rows = Vec::new();
        while let Some(row) = cursor.next().await? {
            rows.push(row);
        }
        let read = cursor.summary().map(|summary| Read {
            rows: summary.read_rows().unwrap_or_default(),
            bytes: summary.read_bytes().unwrap_or_default(),
        });
        Ok((rows, read.unwrap_or_default()))
    }
}
