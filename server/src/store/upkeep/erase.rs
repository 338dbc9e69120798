//! Erases rows of installs and user ids, or of a whole project.
//!
//! The rows of a table are counted, moved from stored to erased in `outcomes`, and deleted by a mutation that carries a mark in its
//! text. A server that takes over therefore sees that the mutation has begun, and counts no row twice. [`crate::store::Rebuilder`] then
//! rebuilds the roll-ups from the remaining rows.

use std::collections::BTreeMap;

use clickhouse::Row;
use serde::Deserialize;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::books::start_of;
use super::mutations::{LONG_QUERY, of_erasure};
use super::retention::OF_STACKS;
use super::sql_text::text;
use crate::records::columns::{Kind, SAME, uuid_bytes};
use crate::records::native::{BadFrame, Frame};
use crate::records::record::Outcome;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::range_number::Number;
use crate::store::raw_tables::{RAW, RawTable};

/// The subjects whose rows are erased, in one project.
#[derive(Clone, Debug)]
pub struct ErasureScope {
    pub project: String,
    pub installs: Vec<Subject<Uuid>>,
    pub users: Vec<Subject<String>>,
    /// Logs that have drained their rows. Rows of other logs may still be in flight.
    pub logs: Vec<Uuid>,
    /// Rows of other logs that were sent before this time have arrived.
    pub settled: UnixTime,
}

/// An install or a user id. Rows that arrived after `until` are kept.
#[derive(Clone, Debug)]
pub struct Subject<Id> {
    pub id: Id,
    pub until: UnixTime,
}

/// Rows of one subject that arrived in one hour.
#[derive(Row, Deserialize, Clone, Debug)]
pub struct Found {
    /// Counted from 1: installs first, then users.
    pub subject: u64,
    /// The hour of arrival, in seconds since the epoch.
    arrived: i64,
    pub rows: u64,
    /// The rows that were counted as stored on arrival.
    counted: u64,
}

/// Tables that hold rows of installs.
pub fn tables_of_installs() -> impl Iterator<Item = &'static str> {
    // `batches` is last: a batch must stay known while any of its rows exist.
    RAW.iter().map(|table| table.name)
}

/// Maximum number of stacks per statement.
const STACKS_AT_ONCE: usize = 5_000;
/// Maximum number of stacks that a pass checks. Others expire.
const MOST_STACKS: usize = 100_000;
/// Statements of an erasure yield to queries of users.
const SETTINGS: [(&str, &str); 3] = [("max_threads", "2"), ("priority", "10"), LONG_QUERY];

/// The ids of subjects as SQL expressions, and their `until` times.
struct Listed {
    ids: Vec<String>,
    times: Vec<String>,
}

impl Listed {
    fn new<Id>(subjects: &[Subject<Id>], sql: impl Fn(&Id) -> String) -> Self {
        Self {
            ids: subjects.iter().map(|one| sql(&one.id)).collect(),
            times: subjects
                .iter()
                .map(|one| one.until.as_micros().to_string())
                .collect(),
        }
    }

    /// Returns the position of a row's subject in the list, from 1.
    fn place(&self, column: &str) -> String {
        format!("indexOf([{}], {column})", self.ids.join(", "))
    }

    fn condition(&self, column: &str) -> String {
        if self.ids.is_empty() {
            return "1 = 0".to_owned();
        }
        format!(
            "({column} IN ({}) AND received_at <= fromUnixTimestamp64Micro(arrayElement([{}], {})))",
            self.ids.join(", "),
            self.times.join(", "),
            self.place(column)
        )
    }
}

impl ErasureScope {
    fn installs(&self) -> Listed {
        Listed::new(&self.installs, |id| format!("toUUID('{id}')"))
    }

    fn users(&self) -> Listed {
        Listed::new(&self.users, |id| text(id))
    }

    /// Returns an SQL condition on the rows to erase.
    fn sql(&self) -> String {
        let logs = self.logs.iter().map(|log| Number::log_bits(*log));
        let logs: Vec<String> = logs.map(Number::sql_of_log).collect();
        format!(
            "project = {} AND ({} OR {}) AND (range_id = 0 OR {} IN ({}) OR {} < {})",
            text(&self.project),
            self.installs().condition("install_id"),
            self.users().condition("user_id"),
            Number::LOG_SQL,
            logs.join(", "),
            Number::MILLIS_SQL,
            (self.settled.as_micros() / 1_000).max(0)
        )
    }

    /// Returns an SQL expression for the subject of a row.
    fn subject_sql(&self) -> String {
        let (installs, users) = (self.installs(), self.users());
        let of_user = match self.users.is_empty() {
            true => "0".to_owned(),
            false => format!("{} + {}", self.installs.len(), users.place("user_id")),
        };
        if self.installs.is_empty() {
            return format!("toUInt64({of_user})");
        }
        format!(
            "toUInt64(if({}, {}, {of_user}))",
            installs.condition("install_id"),
            installs.place("install_id")
        )
    }

    /// Whether to erase the rows of a record. All rows of a record have the same install and user.
    pub(crate) fn has(&self, frame: &Frame<'_>, received_at: UnixTime) -> Result<bool, BadFrame> {
        let (Some((Kind::Uuid, mut install)), Some((Kind::Str, mut user))) =
            (frame.column("install_id")?, frame.column("user_id")?)
        else {
            return Ok(false);
        };
        if (install.u8()?, user.u8()?) != (SAME, SAME) {
            return Err(BadFrame("rows of several installs"));
        }
        let (install, user) = (install.array::<16>()?, user.string()?);
        let mut installs = self.installs.iter();
        let mut users = self.users.iter();
        Ok(
            installs.any(|one| uuid_bytes(one.id.as_u128()) == install && received_at <= one.until)
                || users.any(|one| one.id.as_bytes() == user && received_at <= one.until),
        )
    }
}

/// A condition on the time at which a row was made.
fn stored_until(column: &str, until: UnixTime) -> String {
    let micros = until.as_micros();
    format!(" AND {column} <= fromUnixTimestamp64Micro({micros}, 'UTC')")
}

impl ClickHouse {
    /// Counts the rows of a table that are to be erased.
    pub async fn rows_to_erase(
        &self,
        table: &str,
        whose: &ErasureScope,
    ) -> Result<Vec<Found>, Failure> {
        let sql = format!(
            "SELECT {} AS subject, {} AS arrived, count() AS rows, countIf(range_id != 0) AS counted \
             FROM `{}`.`{table}` WHERE {} GROUP BY subject, arrived",
            whose.subject_sql(),
            start_of("received_at", HOUR),
            self.database(),
            whose.sql()
        );
        self.read_rows(&sql).await
    }

    /// Returns the hours (for `traffic`, the days) in which these rows happened, in seconds since the epoch.
    pub async fn hours_to_erase(
        &self,
        table: &str,
        whose: &ErasureScope,
    ) -> Result<Vec<i64>, Failure> {
        let Some(raw) = RawTable::named(table) else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SELECT DISTINCT {} AS happened FROM `{}`.`{table}` WHERE {} ORDER BY happened",
            start_of(raw.time, HOUR),
            self.database(),
            whose.sql()
        );
        self.read_rows(&sql).await
    }

    /// Returns the stacks of the janks that are to be erased.
    pub async fn stacks_to_erase(&self, whose: &ErasureScope) -> Result<Vec<u64>, Failure> {
        let sql = format!(
            "SELECT DISTINCT arrayJoin(arrayPushBack(`samples.stack_hash`, stack_hash)) AS stack \
             FROM `{}`.janks WHERE {} HAVING stack != 0 LIMIT {MOST_STACKS}",
            self.database(),
            whose.sql()
        );
        self.read_rows(&sql).await
    }

    /// Counts the rows as erased and starts the mutation that deletes them.
    pub async fn erase_rows(
        &self,
        table: &str,
        whose: &ErasureScope,
        found: &[Found],
        mark: Uuid,
    ) -> Result<(), Failure> {
        if table == "batches" {
            // Devices may still retry these batches. A retry then counts as a duplicate.
            let keep = format!(
                "INSERT INTO `{0}`.split_batches (project, batch_id, received_at) \
                 SELECT project, batch_id, received_at FROM `{0}`.batches WHERE {1}",
                self.database(),
                whose.sql()
            );
            self.run(&keep).await?;
        } else {
            self.recount(table, &whose.project, found, mark).await?;
        }
        self.start_deletion((self.database(), table), &whose.sql(), &of_erasure(mark))
            .await
    }

    /// Moves counts from stored to erased. ClickHouse ignores a second INSERT with the same token.
    async fn recount(
        &self,
        table: &str,
        project: &str,
        found: &[Found],
        mark: Uuid,
    ) -> Result<(), Failure> {
        let mut hours: BTreeMap<i64, u64> = BTreeMap::new();
        for one in found {
            *hours.entry(one.arrived).or_default() += one.counted;
        }
        let mut values = Vec::new();
        for (hour, rows) in hours.into_iter().filter(|(_, rows)| *rows > 0) {
            for (outcome, sign) in [(Outcome::Stored, "-"), (Outcome::Erased, "")] {
                values.push(format!(
                    "(toDateTime({hour}, 'UTC'), {}, '{table}', '{}', '', {sign}{rows})",
                    text(project),
                    outcome.as_str()
                ));
            }
        }
        if values.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "INSERT INTO `{}`.outcomes (hour, project, signal, outcome, reason, count) \
             SETTINGS async_insert = 0, insert_deduplicate = 1, insert_deduplication_token = 'erasure {mark} {table}' \
             VALUES {}",
            self.database(),
            values.join(", ")
        );
        self.run(&sql).await
    }

    /// Deletes the stacks that no event of the project uses any longer. Returns their number. Stacks that were stored after `until` stay: an
    /// event brought them that may not be stored yet.
    pub async fn erase_stacks(
        &self,
        project: &str,
        (stacks, until): (&[u64], UnixTime),
        mark: Uuid,
    ) -> Result<u64, Failure> {
        let mut erased = 0;
        for some in stacks.chunks(STACKS_AT_ONCE) {
            let unused = self.unused_stacks(project, some).await?;
            if unused.is_empty() {
                continue;
            }
            erased += unused.len() as u64;
            for table in OF_STACKS {
                let until = match table {
                    "stacks" => stored_until("received_at", until),
                    "stack_classes" => stored_until("classified_at", until),
                    _ => String::new(),
                };
                let condition = format!(
                    "project = {} AND stack_hash IN ({}){until}",
                    text(project),
                    list(&unused)
                );
                self.start_deletion((self.database(), table), &condition, &of_erasure(mark))
                    .await?;
            }
        }
        Ok(erased)
    }

    async fn unused_stacks(&self, project: &str, stacks: &[u64]) -> Result<Vec<u64>, Failure> {
        let (database, project, stacks) = (self.database(), text(project), list(stacks));
        let sql = format!(
            "SELECT arrayJoin([{stacks}]) AS stack WHERE stack NOT IN \
             (SELECT arrayJoin(arrayPushBack(`samples.stack_hash`, stack_hash)) FROM `{database}`.janks WHERE project = {project}) \
             AND stack NOT IN (SELECT stack_hash FROM `{database}`.janks_daily WHERE project = {project}) \
             AND stack NOT IN (SELECT stack_hash FROM `{database}`.function_names WHERE project = {project})"
        );
        self.read_rows(&sql).await
    }

    /// Returns the tables with rows of projects.
    pub async fn tables_of_projects(&self) -> Result<Vec<String>, Failure> {
        let sql = format!(
            "SELECT table FROM system.columns WHERE database = '{0}' AND name = 'project' AND table IN \
             (SELECT name FROM system.tables WHERE database = '{0}' AND endsWith(engine, 'MergeTree') AND position(name, '_rebuild_') = 0) ORDER BY table",
            self.database()
        );
        self.read_rows(&sql).await
    }

    /// Returns the number of rows that a project has in a table.
    pub async fn rows_of_project(&self, table: &str, project: &str) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT count() FROM `{}`.`{table}` WHERE project = {}",
            self.database(),
            text(project)
        );
        Ok(self.read_rows::<u64>(&sql).await?.into_iter().sum())
    }

    /// Starts the mutation that deletes all rows of a project.
    pub async fn erase_project(
        &self,
        table: &str,
        project: &str,
        mark: Uuid,
    ) -> Result<(), Failure> {
        let rows = format!("project = {}", text(project));
        self.start_deletion((self.database(), table), &rows, &of_erasure(mark))
            .await
    }

    async fn read_rows<T>(&self, sql: &str) -> Result<Vec<T>, Failure>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead,
    {
        let query = SETTINGS
            .into_iter()
            .fold(self.client()?.query_raw(sql), |query, (name, value)| {
                query.with_setting(name, value)
            });
        Ok(query.fetch_all::<T>().await?)
    }

    async fn run(&self, sql: &str) -> Result<(), Failure> {
        let (name, value) = LONG_QUERY;
        let query = self.client()?.query_raw(sql).with_setting(name, value);
        Ok(query.execute().await?)
    }
}

const HOUR: i64 = 3_600;

fn list(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_cannot_inject_sql() {
        let user = Subject {
            id: "x') OR ('1' = '1".to_owned(),
            until: UnixTime::from_micros(7),
        };
        let whose = ErasureScope {
            project: "shop".to_owned(),
            installs: Vec::new(),
            users: vec![user],
            logs: vec![Uuid::nil()],
            settled: UnixTime::default(),
        };
        let sql = whose.sql();
        assert!(!sql.contains("'1'"), "{sql}");
        assert!(sql.contains("user_id IN (unhex('782729204f5220"), "{sql}");
    }
}
