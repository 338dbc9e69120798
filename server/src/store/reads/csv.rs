//! Raw rows as CSV (RFC 4180), streamed from ClickHouse.

use clickhouse::Row;
use clickhouse::query::BytesCursor;
use serde::Deserialize;

use super::define::Dimension;
use super::reading::Reading;
use super::statement::Rest;
use crate::spreadsheet::FORMULA;
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
        let cell = |column: &Column| {
            let dimension = reading.subject.dimension(&column.name);
            match dimension.filter(Dimension::is_of_function) {
                Some(dimension) => text_cell(
                    &dimension.readable(&dimension.raw_value(), self.database()),
                    &column.name,
                ),
                None => cell(column),
            }
        };
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

/// Returns the expression for a cell. Lists and maps become JSON.
fn cell(column: &Column) -> String {
    let name = &column.name;
    match column.kind.as_str() {
        "String" | "LowCardinality(String)" => text_cell(&format!("toString(s.`{name}`)"), name),
        kind if kind.starts_with("Array") || kind.starts_with("Map") => {
            format!("toJSONString(s.`{name}`) AS `{name}`")
        }
        _ => format!("s.`{name}` AS `{name}`"),
    }
}

/// Returns the expression for a text. A formula gets a leading apostrophe, so that a spreadsheet shows it as text.
fn text_cell(text: &str, name: &str) -> String {
    let formula = FORMULA.replace('\\', r"\\");
    format!(r"replaceRegexpOne({text}, '{formula}', '\'\\1') AS `{name}`")
}
