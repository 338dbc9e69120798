//! Reads texts of the last day, to try scrubbing rules on.

use clickhouse::Row;
use serde::Deserialize;
use unjank_foundation::clock::UnixTime;

use crate::store::clickhouse::{ClickHouse, Failure};

/// Maximum number of rows to read per table, and of distinct texts.
const ROWS: u32 = 100_000;
const TEXTS: u32 = 20_000;

/// A text and its number of events.
#[derive(Row, Deserialize, Clone, Debug)]
pub struct StoredText {
    /// The kind of text, such as `span` or `attribute`.
    pub place: String,
    /// The name of the attribute if the text is an attribute's value.
    pub attribute: String,
    pub text: String,
    pub events: u64,
}

/// Kind, attribute, text, table, and the table's time column.
const PLACES: [(&str, &str, &str, &str, &str); 8] = [
    ("span", "''", "toString(name)", "spans", "start"),
    ("page", "''", "toString(page)", "spans", "start"),
    (
        "span_event",
        "''",
        "toString(arrayJoin(`events.name`))",
        "spans",
        "start",
    ),
    (
        "attribute",
        "toString(pair.1)",
        "pair.2",
        "spans ARRAY JOIN CAST(attributes, 'Array(Tuple(String, String))') AS pair",
        "start",
    ),
    (
        "log_line",
        "''",
        "arrayJoin(`run_log.message`)",
        "janks",
        "start",
    ),
    (
        "request_path",
        "''",
        "toString(arrayJoin(`requests.path`))",
        "page_loads",
        "start",
    ),
    ("metric", "''", "toString(name)", "metrics", "time"),
    ("user_id", "''", "user_id", "spans", "start"),
];

impl ClickHouse {
    /// Returns the most frequent texts since a time.
    pub async fn recent_texts(
        &self,
        project: &str,
        since: UnixTime,
    ) -> Result<Vec<StoredText>, Failure> {
        let (database, since) = (self.database(), since.as_micros());
        let parts: Vec<String> = PLACES
            .iter()
            .map(|(place, attribute, text, table, time)| {
                let (table, join) = table.split_once(' ').unwrap_or((table, ""));
                format!(
                    "SELECT '{place}' AS place, {attribute} AS attribute, {text} AS text FROM \
                     (SELECT * FROM `{database}`.`{table}` WHERE project = {{project:String}} \
                      AND {time} >= fromUnixTimestamp64Micro({since}) LIMIT {ROWS}) {join}"
                )
            })
            .collect();
        let sql = format!(
            "SELECT place, attribute, text, count() AS events FROM ({}) WHERE text != '' \
             GROUP BY place, attribute, text ORDER BY events DESC, text LIMIT {TEXTS}",
            parts.join(" UNION ALL ")
        );
        let query = self.reader()?.query_raw(&sql).param("project", project);
        let query = query.with_setting("max_execution_time", "20");
        Ok(query.fetch_all().await?)
    }
}
