//! How long rows are kept. ClickHouse drops older rows, part by part, when it merges.

use clickhouse::Row;
use serde::Deserialize;
use unjank_foundation::clock::UnixTime;

use super::mutations::OLD_ROWS;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::raw_tables::RawTable;
use crate::store::roll_ups::RollUpTable;

/// In days; 0 keeps rows forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub raw_days: u64,
    pub hourly_days: u64,
    pub daily_days: u64,
}

/// Tables that are not partitioned by time: a part holds rows of all ages.
pub const OF_STACKS: [&str; 5] = [
    "stacks",
    "stack_classes",
    "stacks_symbolicated",
    "former_groups",
    "function_names",
];
/// A stack in use is stored again every week, and events may arrive a week late.
const STACKS_LONGER: u64 = 14;

#[derive(Row, Deserialize)]
struct Table {
    name: String,
    definition: String,
}

impl Retention {
    /// Returns a retention longer than that of any row that refers to a stack.
    fn stack_days(self) -> u64 {
        let all = [self.raw_days, self.hourly_days, self.daily_days];
        if all.contains(&0) {
            return 0;
        }
        all.iter().max().map_or(0, |days| days + STACKS_LONGER)
    }

    /// Returns the retention of a table in days and its time column, if its rows expire.
    pub(crate) fn for_table(self, table: &str) -> Option<(u64, &'static str)> {
        if let Some(raw) = RawTable::named(table) {
            // `batches` is kept for as long as a retry may arrive, see `keep_batches`.
            return (raw.name != "batches").then_some((self.raw_days, raw.time));
        }
        if let Some(rolled_up) = RollUpTable::named(table) {
            let days = match rolled_up.time {
                "hour" => self.hourly_days,
                _ => self.daily_days,
            };
            return Some((days, rolled_up.time));
        }
        match table {
            "outcomes" => Some((self.daily_days, "hour")),
            "stacks" => Some((self.stack_days(), "received_at")),
            "stack_classes" => Some((self.stack_days(), "classified_at")),
            "stacks_symbolicated" | "function_names" => {
                Some((self.stack_days(), "symbolicated_at"))
            }
            "former_groups" => Some((self.stack_days(), "left_at")),
            _ => None,
        }
    }
}

impl ClickHouse {
    /// Sets for how many days after arrival batches are kept.
    pub async fn keep_batches(&self, days: u32) -> Result<(), Failure> {
        for table in ["batches", "split_batches"] {
            let sql = format!(
                "ALTER TABLE `{}`.{table} MODIFY TTL toDateTime(received_at) + toIntervalDay({days})",
                self.database()
            );
            let alter = self.client()?.query_raw(&sql);
            let alter = alter.with_setting("materialize_ttl_after_modify", "0");
            alter.execute().await?;
        }
        Ok(())
    }

    /// Deletes rows older than `days` from one of ClickHouse's own logs, such as `query_log`.
    pub(crate) async fn forget_log(&self, table: &str, days: u32) -> Result<(), Failure> {
        let expired = format!("event_time < now() - toIntervalDay({days})");
        self.start_deletion(("system", table), &expired, OLD_ROWS)
            .await
    }

    /// Records which rows may be gone before the retention of a table is extended, because they stay gone.
    async fn note_dropped(&self, table: &Table, days: u64, now: UnixTime) -> Result<(), Failure> {
        let kept = table.definition.split("toIntervalDay(").nth(1);
        let kept = kept.and_then(|rest| rest.split(')').next()?.parse::<u64>().ok());
        let Some(kept) = kept.filter(|kept| days == 0 || days > *kept) else {
            return Ok(());
        };
        let sql = format!(
            "INSERT INTO `{}`.dropped_rows (target, before) SELECT {{target:String}}, toDateTime({}) - toIntervalDay({kept})",
            self.database(),
            now.as_secs()
        );
        let insert = self.client()?.query_raw(&sql);
        let insert = insert.param("target", &table.name);
        Ok(insert.execute().await?)
    }

    /// Sets the retention of every table from `now` on. Returns the tables whose retention changed.
    pub async fn keep(&self, retention: Retention, now: UnixTime) -> Result<Vec<String>, Failure> {
        let client = self.client()?;
        let sql = "SELECT name, engine_full AS definition FROM system.tables \
                   WHERE database = {database:String} AND endsWith(engine, 'MergeTree') ORDER BY name";
        let query = client.query(sql).param("database", self.database());
        let mut changed = Vec::new();
        for table in query.fetch_all::<Table>().await? {
            let Some((days, column)) = retention.for_table(&table.name) else {
                continue;
            };
            let expression = format!("toDateTime({column}) + toIntervalDay({days})");
            let change = match (days, table.definition.contains(" TTL ")) {
                (0, false) => continue,
                (0, true) => "REMOVE TTL".to_owned(),
                _ if table.definition.contains(&format!(" TTL {expression} ")) => continue,
                _ => format!("MODIFY TTL {expression}"),
            };
            let is_of_stacks = OF_STACKS.contains(&table.name.as_str());
            if !is_of_stacks {
                self.note_dropped(&table, days, now).await?;
            }
            // Old parts are dropped at their next merge: rewriting all of them now would cost more than their disk space. A part is
            // dropped when all its rows have expired, so no part is rewritten: each week or month has its own parts.
            let sql = format!(
                "ALTER TABLE `{}`.`{}` ({change}), (MODIFY SETTING ttl_only_drop_parts = {})",
                self.database(),
                table.name,
                u8::from(!is_of_stacks)
            );
            let alter = client
                .query_raw(&sql)
                .with_setting("materialize_ttl_after_modify", "0");
            alter.execute().await?;
            changed.push(table.name);
        }
        Ok(changed)
    }
}
