//! Rolls up rows, many at a time.
//!
//! A group of a roll-up costs as much as several events, and the events of one INSERT fall into nearly as many groups as there are events. So under
//! load, a fold collects the rows of several ranges. When the fold is full or old enough, the SELECTs of [`super::definitions`] run over its rows. A
//! fold with few rows is rolled up at once, so that the events of a single device are visible soon.
//!
//! Each block of a roll-up has a *mark* for each month: a row without a project, with the log's id as its app and the fold's number in `source`.
//! Merges keep the largest number. The folds of a log are rolled up in order, so a month contains a fold if the month's mark is not smaller.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

use super::RollUpTable;
use super::definitions::DEFINITIONS;
use super::holds::unless_held;
use super::marks::MarkColumns;
use crate::store::clickhouse::{ClickHouse, EXACTLY_ONCE, Failure, ONE_BLOCK};
use crate::store::query_ids::query_id;
use crate::store::range_number::Number;
use crate::store::raw_tables::Month;

/// A fold with fewer rows is rolled up as soon as its range is stored: waiting would gain little.
const WORTH_WAITING: u64 = 50_000;
/// A fold with fewer than [`MANY`] rows is rolled up at this age.
const OLD: Duration = Duration::from_secs(20);
/// Under load a fold waits longer. Three times the rows have hardly more groups, and until a merge, queries read every group of every fold.
const OLD_UNDER_LOAD: Duration = Duration::from_secs(60);
const MANY: u64 = 1_000_000;
/// A fold is also rolled up if no range has joined it for this long. Ranges wait less than this for more records.
pub(crate) const QUIET: Duration = Duration::from_secs(2);

/// Returns the age at which a fold with this many rows is rolled up. The roll-ups lag behind the raw rows by this time.
pub(crate) fn longest_wait(rows: u64) -> Duration {
    if rows < MANY { OLD } else { OLD_UNDER_LOAD }
}

pub(crate) fn is_worth_waiting(rows: u64) -> bool {
    rows >= WORTH_WAITING
}

/// The grouping spills to disk above this size instead of failing.
const EXTERNAL_BYTES: &str = "1000000000";

/// How rows of a raw table become rows of a roll-up.
#[derive(Clone, Debug)]
pub(crate) struct RollUp {
    pub(crate) name: String,
    /// The raw table.
    pub(crate) table: String,
    pub(crate) target: Target,
    /// The SELECT before and after the condition on raw rows.
    select: (String, String),
    /// The daily roll-up that a view fills from the hourly one.
    pub(crate) next: Option<Target>,
}

#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) table: String,
    /// Name and type.
    columns: Vec<(String, String)>,
}

/// Which tables get the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The roll-up and, through its view, the next one.
    Both,
    /// Only the roll-up, because the next one already has the rows.
    First,
    /// Only the next roll-up, because the first one already has the rows.
    Second,
}

/// One INSERT of a fold into its roll-ups.
#[derive(Debug)]
pub(crate) struct Step<'s> {
    pub(crate) fold: Number,
    pub(crate) log_id: Uuid,
    pub(crate) roll_up: &'s RollUp,
    pub(crate) reach: Reach,
    pub(crate) months: &'s BTreeSet<Month>,
    pub(crate) token: String,
}

/// The `source` of rows that the daily views ignore.
const FIRST_ALONE: u8 = 1;

#[cfg(test)]
impl RollUp {
    /// Creates a roll-up for the model of ClickHouse, without SQL.
    pub(crate) fn of_model(name: &str, table: &str, targets: &[&str]) -> Self {
        let mut targets = targets.iter().map(|table| Target {
            table: (*table).to_owned(),
            columns: Vec::new(),
        });
        Self {
            name: name.to_owned(),
            table: table.to_owned(),
            target: targets.next().unwrap(),
            select: Default::default(),
            next: targets.next(),
        }
    }
}

impl Target {
    fn names(&self) -> String {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        names.join(", ")
    }

    /// Returns the time column of the roll-up.
    pub(crate) fn time(&self) -> &'static str {
        if self.columns.iter().any(|(name, _)| name == "hour") {
            "hour"
        } else {
            "day"
        }
    }

    /// Turns hourly rows into daily rows.
    fn by_day(&self, rows: &str) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(name, _)| match name.as_str() {
                "day" => "toDate(hour) AS day".to_owned(),
                name => format!("`{name}`"),
            })
            .collect();
        format!("SELECT {} FROM ({rows})", columns.join(", "))
    }

    /// Inserts rows, without a mark, into a table with the columns of the roll-up.
    pub(crate) fn fill(&self, table: &str, rows: &str) -> String {
        let (names, mark) = (self.names(), self.mark_column());
        format!("INSERT INTO {table} ({names}, {mark}) SELECT {names}, toUInt128(0) FROM ({rows})")
    }

    /// Inserts a mark into a table with the columns of the roll-up.
    pub(crate) fn fill_mark(&self, table: &str, month: Month, mark: (&str, Number)) -> String {
        format!(
            "INSERT INTO {table} ({}, {}) SELECT {}, {} FROM (SELECT {} AS month)",
            self.names(),
            self.mark_column(),
            self.mark(mark.0),
            mark.1.fold().sql(),
            first_day(month)
        )
    }

    fn mark_column(&self) -> &'static str {
        MarkColumns::for_table(&self.table).number
    }

    fn mark(&self, log: &str) -> String {
        let mark: Vec<String> = self
            .columns
            .iter()
            .map(|column| mark_of(column, log))
            .collect();
        mark.join(", ")
    }

    /// Inserts `rows` and a mark for each month. The INSERT fails if a month is held.
    fn insert(&self, rows: &str, source: u8, step: &Step<'_>, database: &str) -> String {
        let (table, names, time) = (&self.table, self.names(), self.time());
        let months: Vec<String> = step.months.iter().map(ToString::to_string).collect();
        let firsts: Vec<String> = step.months.iter().map(|month| first_day(*month)).collect();
        format!(
            "INSERT INTO `{database}`.`{table}` ({names}, {}) \
             SELECT {names}, toUInt128({source}) FROM ({rows}) WHERE {} AND toYYYYMM({time}) IN ({}) \
             UNION ALL SELECT {}, {} FROM (SELECT arrayJoin([{}]) AS month)",
            self.mark_column(),
            unless_held(database, &step.targets(), Some(step.months)),
            months.join(", "),
            self.mark(&step.log_id.to_string()),
            step.fold.sql(),
            firsts.join(", "),
        )
    }
}

/// Returns the value of a mark in a column.
fn mark_of((name, kind): &(String, String), log: &str) -> String {
    let kind = kind.replace('\\', "\\\\").replace('\'', "\\'");
    match name.as_str() {
        "app_id" => format!("toLowCardinality('{log}')"),
        "hour" | "day" => format!("CAST(month, '{kind}')"),
        _ => format!("defaultValueOfTypeName('{kind}')"),
    }
}

fn first_day(month: Month) -> String {
    format!("toDate('{:04}-{:02}-01')", month / 100, month % 100)
}

impl RollUp {
    /// Returns the hourly or daily rows of the raw rows that meet the condition.
    pub(crate) fn rows_of(&self, target: &Target, condition: &str) -> String {
        let (head, tail) = &self.select;
        let rows = format!("{head}{condition}{tail}");
        match &self.next {
            Some(next) if next.table == target.table => next.by_day(&rows),
            _ => rows,
        }
    }

    /// Returns the tables that get the rows, in order.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        std::iter::once(&self.target).chain(&self.next)
    }
}

impl Step<'_> {
    /// Returns the tables that get rows or marks from this step.
    fn targets(&self) -> Vec<&str> {
        let targets = self.roll_up.targets().map(|target| &*target.table);
        targets
            .skip(usize::from(self.reach == Reach::Second))
            .collect()
    }

    fn sql(&self, database: &str) -> String {
        let range = format!("range_id {}", self.fold.sql_of_fold());
        let target = match (self.reach, &self.roll_up.next) {
            (Reach::Second, Some(next)) => next,
            _ => &self.roll_up.target,
        };
        let source = match (self.reach, &self.roll_up.next) {
            (Reach::First, Some(_)) => FIRST_ALONE,
            _ => 0,
        };
        let rows = self.roll_up.rows_of(target, &range);
        target.insert(&rows, source, self, database)
    }
}

/// Lists the columns of the roll-ups, without the columns of marks.
const COLUMNS: &str = "SELECT table, name, type FROM system.columns WHERE database = {database:String} AND table IN {tables:Array(String)} \
     AND type NOT LIKE '%UInt128%' ORDER BY table, position";

impl ClickHouse {
    pub(crate) async fn read_roll_ups(&self) -> Result<Vec<RollUp>, Failure> {
        let tables: Vec<&str> = RollUpTable::all().map(|table| table.name).collect();
        let query = self
            .client()?
            .query_raw(COLUMNS)
            .param("database", self.database())
            .param("tables", &tables);
        let mut columns: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for (table, name, kind) in query.fetch_all::<(String, String, String)>().await? {
            columns.entry(table).or_default().push((name, kind));
        }
        let target = |table: &str| {
            let columns = columns.get(table).cloned().ok_or_else(|| {
                Failure::Later(format!(
                    "the table {table} is missing. Restart the server: it creates its tables when it starts"
                ))
            })?;
            Ok::<_, Failure>(Target {
                table: table.to_owned(),
                columns,
            })
        };
        let roll_ups = DEFINITIONS.iter().map(|one| {
            Ok(RollUp {
                name: one.name.to_owned(),
                table: one.table.to_owned(),
                target: target(one.target)?,
                select: one.select(self.database()),
                next: one.by_day.map(target).transpose()?,
            })
        });
        roll_ups.collect()
    }

    pub(crate) async fn run_step(&self, step: &Step<'_>) -> Result<(), Failure> {
        self.roll_up_query(
            &step.sql(self.database()),
            &step.token,
            &query_id(step.fold, &step.roll_up.name),
        )
        .await
    }

    async fn roll_up_query(&self, sql: &str, token: &str, query_id: &str) -> Result<(), Failure> {
        let query = EXACTLY_ONCE
            .into_iter()
            .chain(ONE_BLOCK)
            .fold(self.client()?.query_raw(sql), |query, (setting, value)| {
                query.with_setting(setting, value)
            });
        let query = query
            // A second thread would take a core from ingest.
            .with_setting("max_threads", "1")
            .with_setting("max_bytes_before_external_group_by", EXTERNAL_BYTES)
            .with_setting("insert_deduplication_token", token)
            .with_setting("query_id", query_id);
        Ok(query.execute().await?)
    }

    /// Rolls up the fold of an older server in the same way as that server: with tokens alone, and without marks.
    pub(crate) async fn roll_up_of_older(&self, fold: u64, log_id: Uuid) -> Result<(), Failure> {
        let numbered = |roll_up: &RollUp| roll_up.table != "batches";
        for roll_up in self.read_roll_ups().await?.into_iter().filter(numbered) {
            let condition = format!("range_id = 0 AND fold = {fold}");
            let rows = roll_up.rows_of(&roll_up.target, &condition);
            let (database, table, names) = (
                self.database(),
                &roll_up.target.table,
                roll_up.target.names(),
            );
            let targets: Vec<&str> = roll_up.targets().map(|target| &*target.table).collect();
            let free = unless_held(database, &targets, None);
            let sql = format!(
                "INSERT INTO `{database}`.`{table}` ({names}) SELECT {names} FROM ({rows}) WHERE {free}"
            );
            let name = &roll_up.name;
            let query_id = format!("unjank-fold-{fold}-{name}-{}", Uuid::new_v4());
            self.roll_up_query(&sql, &format!("{log_id}:fold:{fold}:{name}"), &query_id)
                .await?;
        }
        Ok(())
    }
}
