//! Mutations that delete rows: their start and their progress. ClickHouse keeps the text of each, so a mutation is found by what its text
//! contains: the mark of its purpose, and the project.

use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use super::sql_text::text;
use crate::store::clickhouse::{ClickHouse, Failure};

/// Marks the mutations that delete expired rows, or the oldest rows of a project that exceeds its disk quota.
pub(super) const OLD_ROWS: &str = "old rows";

/// A statement with 50 user ids is longer than ClickHouse allows by default.
pub(super) const LONG_QUERY: (&str, &str) = ("max_query_size", "4194304");

/// Returns the mark of the mutations of an erasure.
pub(super) fn of_erasure(mark: Uuid) -> String {
    format!("erasure {mark}")
}

/// The progress of a mutation.
#[derive(Row, Deserialize, Clone, Debug)]
pub struct Mutation {
    done: u8,
    parts: i64,
    error: String,
}

impl Mutation {
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done != 0
    }

    /// The number of parts that are not rewritten yet.
    #[must_use]
    pub fn parts(&self) -> i64 {
        self.parts
    }

    /// Why the last attempt failed.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        (!self.error.is_empty()).then_some(&*self.error)
    }
}

impl ClickHouse {
    /// Starts the mutation that deletes the rows of a table that meet a condition. The text of the mutation contains `mark`.
    pub(super) async fn start_deletion(
        &self,
        (database, table): (&str, &str),
        condition: &str,
        mark: &str,
    ) -> Result<(), Failure> {
        // By default, ClickHouse 26.7 returns only when the rows are deleted, which can take hours.
        let sql = format!(
            "ALTER TABLE `{database}`.`{table}` DELETE WHERE ({condition}) AND '{mark}' != '' SETTINGS mutations_sync = 0"
        );
        let (name, value) = LONG_QUERY;
        let query = self.client()?.query_raw(&sql).with_setting(name, value);
        Ok(query.execute().await?)
    }

    /// Returns the mutation of a table that carries the mark of an erasure.
    pub async fn mutation(&self, table: &str, mark: Uuid) -> Result<Option<Mutation>, Failure> {
        let condition = format!("table = '{table}' AND {}", contains(&of_erasure(mark)));
        self.mutations(&condition).await
    }

    /// Whether expired rows, or rows above a disk quota, are still being deleted: those of a project, or any. Fails if the deletion fails.
    pub async fn is_deleting_rows(&self, project: Option<&str>) -> Result<bool, Failure> {
        let mut condition = format!("NOT is_done AND {}", contains(OLD_ROWS));
        if let Some(project) = project {
            condition += &format!(" AND {}", contains(&text(project)));
        }
        let running = self.mutations(&condition).await?;
        match running.as_ref().and_then(Mutation::error) {
            Some(error) => Err(Failure::Later(error.to_owned())),
            None => Ok(running.is_some()),
        }
    }

    /// Returns the mutations that meet a condition, taken together.
    async fn mutations(&self, condition: &str) -> Result<Option<Mutation>, Failure> {
        // No alias may be the name of a column: the condition would then mean the alias.
        let sql = format!(
            "SELECT toUInt8(min(is_done)) AS done, toInt64(sum(parts_to_do)) AS parts, \
             toString(max(latest_fail_reason)) AS error FROM system.mutations \
             WHERE database = '{}' AND {condition} HAVING count() > 0",
            self.database()
        );
        let found = self.client()?.query_raw(&sql).fetch_all::<Mutation>();
        Ok(found.await?.into_iter().next())
    }
}

/// A condition on the text of a mutation. Texts are literals there as in the statement, so `unhex('73686f70')` does not find the project
/// `shop2`.
fn contains(part: &str) -> String {
    format!("position(command, {}) > 0", text(part))
}
