//! Raw rows as CSV (RFC 4180), streamed from ClickHouse.

use clickhouse::Row;
use clickhouse::query::BytesCursor;
use serde::Deserialize;

use super::statement::{Reading, Rest};
use crate::store::clickhouse::{ClickHouse, Failure};

/// Longer than for queries on screens, because a file may be large.
const MAX_SECONDS: &str = "600";

#[derive(Row, Deserialize)]
struct Column {
    name: String,
    kind: String,
}

impl ClickHouse {
    /// Streams the rows of a reading with all columns, ordered by time. The reading must be of raw rows of one table.
    pub async fn csv(&self, reading: &Reading, limit: u64) -> Result<BytesCursor, Failure> {
        let table = reading.subject.raw.split(' ').next().unwrap_or_default();
        let sql = "SELECT name, type AS kind FROM system.columns \
                   WHERE database = {database:String} AND table = {table:String} ORDER BY position";
        let query = self
            .question(sql)?
            .param("database", self.database())
            .param("table", table);
        let (columns, _): (Vec<Column>, _) = self.collect(query).await?;
        let columns: Vec<String> = columns.iter().map(cell).collect();
        let order = reading.subject.time.column();
        let rest = Rest {
            condition: "1",
            order: &format!("s.{order}"),
            limit,
        };
        let statement = reading.events(self.database(), &columns.join(", "), rest);
        let query = self.question(&statement.sql)?;
        Ok(statement
            .with_parameters(query)
            .with_setting("max_execution_time", MAX_SECONDS)
            .with_setting("wait_end_of_query", "0")
            .fetch_bytes("CSVWithNames")?)
    }
}

/// Returns the expression for a cell. Text that a spreadsheet would run as a formula gets a leading apostrophe. Lists and maps
/// become JSON.
fn cell(column: &Column) -> String {
    let name = &column.name;
    match column.kind.as_str() {
        "String" | "LowCardinality(String)" => format!(
            "if(match(toString(s.`{name}`), '^[=+@\\\\-\\t\\r]'), concat('\\'', toString(s.`{name}`)), toString(s.`{name}`)) AS `{name}`"
        ),
        kind if kind.starts_with("Array") || kind.starts_with("Map") => {
            format!("toJSONString(s.`{name}`) AS `{name}`")
        }
        _ => format!("s.`{name}` AS `{name}`"),
    }
}
