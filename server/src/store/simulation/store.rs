//! A model of ClickHouse, including its known weaknesses.
//!
//! An INSERT makes one part for each period. Each part is atomic, but the INSERT is not. A part and its token become durable separately, in either
//! order. Tokens expire, and a power cut may lose them. Responses may be late or missing, or report an error after the rows were stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::chance::{Chance, History};
use super::rows::{self, Row, Value};
use crate::store::clickhouse::Failure;
use crate::store::drain::tally::month_of;
use crate::store::range_number::Number;
use crate::store::raw_tables::{Month, RawTable};

/// The tables of events.
pub(super) const EVENTS: [&str; 2] = ["spans", "traffic"];
/// How long a token is remembered. Only queries that are late run longer.
const MEMORY: Duration = Duration::from_secs(60);
/// How late an INSERT may be, in milliseconds. Only in worlds with several servers.
const LATEST: u64 = 200_000;
/// How long the writer waits for a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// Rows that are stored together: all or none.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) parts: BTreeMap<String, Vec<Part>>,
    tokens: BTreeMap<(String, i64, String), Instant>,
    /// Running attempts, by fold or range.
    pub(super) at_work: BTreeMap<Number, u32>,
    /// Counts restarts. Queries of an earlier start fail.
    pub(super) starts: u64,
    away_until: Option<Instant>,
    /// How many of a thousand queries fail, before or after they have taken effect.
    pub(super) failing: u64,
    slow: bool,
    /// Whether some INSERTs end long after their callers have given up.
    late: bool,
    /// Events whose id is divisible by this number are rejected.
    pub(super) poison: Option<u64>,
    /// A table that rejects all writes.
    pub(super) table_away: Option<&'static str>,
    pub(super) done: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Store {
    tables: Arc<Mutex<Tables>>,
    pub(super) chance: Chance,
    history: History,
}

impl Store {
    pub(super) fn new(chance: Chance, history: History) -> Self {
        Self {
            tables: Arc::default(),
            chance,
            history,
        }
    }

    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fail(&self, per_mille: u64) {
        self.tables().failing = per_mille;
    }

    pub(super) fn slow_down(&self, slow: bool) {
        self.tables().slow = slow;
    }

    pub(super) fn be_late(&self, late: bool) {
        self.tables().late = late;
    }

    /// Delays some INSERTs, up to the time after which other servers count their server as gone and beyond.
    pub(super) async fn wait_if_late(&self) {
        let late = self.tables().late;
        if late && self.chance.happens(200) {
            let wait = self.chance.millis(PATIENCE.as_millis() as u64, LATEST);
            self.history
                .say(|| format!("an INSERT takes {wait:?} before it begins"));
            sleep(wait).await;
        }
    }

    /// Kills ClickHouse, which restarts after `away`.
    pub(super) fn restart(&self, away: Duration) {
        let mut tables = self.tables();
        tables.starts += 1;
        tables.at_work.clear();
        tables.away_until = Some(Instant::now() + away);
    }

    /// Kills ClickHouse and loses the tokens of some tables. The real ClickHouse does not sync its tokens either.
    pub(super) fn cut_power(&self, away: Duration) {
        self.restart(away);
        let mut tables = self.tables();
        let names: BTreeSet<String> = tables.tokens.keys().map(|key| key.0.clone()).collect();
        for name in names {
            if self.chance.happens(700) {
                tables.tokens.retain(|(table, ..), _| *table != name);
            }
        }
    }

    /// Copies a table.
    pub(super) fn parts(&self, table: &str) -> Vec<Part> {
        let tables = self.tables();
        tables.parts.get(table).cloned().unwrap_or_default()
    }

    /// Replaces all tables, as in a ClickHouse that never had others.
    pub(super) fn replace(&self, parts: &BTreeMap<String, Vec<Part>>) {
        let mut tables = self.tables();
        tables.parts = parts.clone();
        tables.tokens.clear();
    }

    pub(super) fn rows(&self, table: &str) -> Vec<Row> {
        let tables = self.tables();
        let parts = tables.parts.get(table).into_iter().flatten();
        parts.flat_map(|part| part.rows.clone()).collect()
    }

    pub(super) fn check(&self, starts: u64) -> Result<(), Failure> {
        let tables = self.tables();
        let is_away = tables
            .away_until
            .is_some_and(|until| Instant::now() < until);
        if tables.starts != starts || is_away {
            return Err(Failure::Later("the connection was lost".to_owned()));
        }
        Ok(())
    }

    /// Runs a query, which continues even if its caller gives up.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let (failing, slow) = {
            let tables = self.tables();
            (tables.failing, tables.slow)
        };
        let wait = if slow && self.chance.happens(200) {
            self.chance.millis(1_000, 40_000)
        } else {
            self.chance.millis(1, 40)
        };
        let fails_before = self.chance.happens(failing);
        let fails_after = self.chance.happens(failing);
        let work = tokio::spawn(async move {
            sleep(wait).await;
            if fails_before {
                return Err(Failure::Later("too many parts".to_owned()));
            }
            work.await
        });
        let done = timeout(PATIENCE, work).await;
        let done = done.map_err(|_| Failure::Later("no answer in time".to_owned()))?;
        let done = done.map_err(|error| Failure::Later(error.to_string()))??;
        if fails_after {
            return Err(Failure::Later("the answer was lost".to_owned()));
        }
        Ok(done)
    }

    /// Adds a part unless its token is known.
    async fn commit(
        &self,
        starts: u64,
        table: &str,
        period: i64,
        token: &str,
        rows: Vec<Row>,
    ) -> Result<(), Failure> {
        self.check(starts)?;
        let key = (table.to_owned(), period, token.to_owned());
        {
            let mut tables = self.tables();
            if tables.table_away == Some(table) {
                return Err(Failure::Later(format!("{table} is missing")));
            }
            tables.tokens.retain(|_, at| at.elapsed() < MEMORY);
            if tables.tokens.contains_key(&key) {
                self.history
                    .say(|| format!("ClickHouse knows {token} of {table}"));
                *tables.done.entry("tokens known").or_default() += 1;
                return Ok(());
            }
        }
        let token_first = self.chance.happens(700);
        for is_token in [token_first, !token_first] {
            if is_token {
                self.tables().tokens.insert(key.clone(), Instant::now());
            } else {
                self.add_part(table, token, rows.clone());
            }
            if self.chance.happens(100) {
                sleep(self.chance.millis(1, 20)).await;
            }
            self.check(starts)?;
        }
        Ok(())
    }

    fn add_part(&self, table: &str, token: &str, rows: Vec<Row>) {
        self.history
            .say(|| format!("ClickHouse has {} rows of {table} by {token}", rows.len()));
        let mut tables = self.tables();
        tables
            .parts
            .entry(table.to_owned())
            .or_default()
            .push(Part { rows });
    }

    fn refuses(&self, rows: &[Row]) -> bool {
        let poison = self.tables().poison;
        poison.is_some_and(|every| {
            let ids = rows.iter().filter_map(|row| row.get("id"));
            ids.into_iter()
                .any(|id| id.number().is_multiple_of(u128::from(every)))
        })
    }

    pub(super) async fn insert(
        self,
        starts: u64,
        table: String,
        token: String,
        rows: Vec<Row>,
    ) -> Result<(), Failure> {
        self.check(starts)?;
        if self.refuses(&rows) {
            return Err(Failure::Content("a value out of bounds".to_owned()));
        }
        let mut periods: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
        for row in rows {
            let period = match RawTable::named(&table) {
                Some(raw) => i64::from(rows::period_of(raw, &row)),
                None => row
                    .get("hour")
                    .map_or(0, |hour| i64::from(month_of(hour.number() as u32))),
            };
            periods.entry(period).or_default().push(row);
        }
        for (period, rows) in periods {
            self.commit(starts, &table, period, &token, rows).await?;
        }
        Ok(())
    }

    pub(super) async fn roll_up(self, starts: u64, work: FoldWork) -> Result<(), Failure> {
        self.check(starts)?;
        let mut months: BTreeMap<Month, Vec<Row>> = BTreeMap::new();
        for month in &work.months {
            months.insert(*month, vec![rows_mark(work.log_id, work.fold, *month)]);
        }
        let raw = RawTable::named(&work.table).ok_or(Failure::Later("no table".to_owned()))?;
        let mut of_fold = self.rows(&work.table);
        of_fold.retain(|row| rows::number_of(row).fold() == work.fold);
        for row in of_fold {
            let at = row[raw.time].number() as i64;
            if let Some(rows) = months.get_mut(&month_of((at / 1_000_000) as u32)) {
                rows.push(rolled_row(&row, at));
            }
        }
        for target in work.targets {
            for (month, rows) in &months {
                let month = i64::from(*month);
                self.commit(starts, &target, month, &work.token, rows.clone())
                    .await?;
            }
        }
        Ok(())
    }
}

/// A running attempt.
pub(super) struct AtWork {
    pub(super) store: Store,
    number: Number,
    /// The start of ClickHouse it belongs to.
    starts: u64,
}

impl AtWork {
    pub(super) fn begin(store: Store, number: Number) -> Self {
        let mut tables = store.tables();
        let starts = tables.starts;
        *tables.at_work.entry(number).or_default() += 1;
        drop(tables);
        Self {
            store,
            number,
            starts,
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut tables = self.store.tables();
        // A restart has already ended the attempt.
        if tables.starts == self.starts
            && let Some(at_work) = tables.at_work.get_mut(&self.number)
        {
            *at_work = at_work.saturating_sub(1);
        }
    }
}

/// One INSERT of a fold into its roll-ups.
pub(super) struct FoldWork {
    pub(super) table: String,
    pub(super) targets: Vec<String>,
    pub(super) months: BTreeSet<Month>,
    pub(super) fold: Number,
    pub(super) log_id: Uuid,
    pub(super) token: String,
}

/// Returns a roll-up row. In this model, it contains one event.
fn rolled_row(raw: &Row, at: i64) -> Row {
    Row::from([
        ("project".to_owned(), raw["project"].clone()),
        ("at".to_owned(), Value::Number(at as u128)),
        ("id".to_owned(), raw["id"].clone()),
    ])
}

fn rows_mark(log_id: Uuid, fold: Number, month: Month) -> Row {
    Row::from([
        ("project".to_owned(), Value::Text(String::new())),
        ("log".to_owned(), Value::Text(log_id.to_string())),
        ("month".to_owned(), Value::Number(u128::from(month))),
        ("source".to_owned(), Value::Number(fold.value())),
    ])
}
