//! A server's connection to the model of ClickHouse.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;

use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::control::SimulatedClaims;
use super::disk::SimulatedDisk;
use super::host::Host;
use super::rows::{self, Row};
use super::store::{AtWork, FoldWork, Store};
use crate::store::clickhouse::Failure;
use crate::store::drain::destination::{Destination, Insert, StoredBatch, StoredBatches};
use crate::store::drain::tally::month_of;
use crate::store::range_number::Number;
use crate::store::raw_tables::{Day, Month, RawTable};
use crate::store::roll_ups::fold::{Reach, RollUp, Step};

/// Never responds once the process has ended.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) store: Store,
    pub(super) disk: SimulatedDisk,
    pub(super) host: Arc<Host>,
}

/// Returns the log, the month and the number if the row is a mark of `outcomes` or of a roll-up.
fn mark(row: &Row) -> Option<(&str, Month, Number)> {
    let (log, month) = match row.get("month") {
        Some(month) => (row["log"].text(), month.number() as Month),
        None => {
            let hour = row.get("hour")?;
            (row["signal"].text(), month_of(hour.number() as u32))
        }
    };
    let number = Number::from_value(row["source"].number());
    (row["project"].text().is_empty() && !is_alone(row)).then_some((log, month, number))
}

/// Whether a mark of `outcomes` is for a single range.
fn is_alone(row: &Row) -> bool {
    row.get("reason")
        .is_some_and(|reason| !reason.text().is_empty())
}

impl Connection {
    /// Runs a read-only query.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(Store, u64) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (store, starts) = self.open().await?;
        let asked = store.clone();
        let answer = store
            .work(async move {
                asked.check(starts)?;
                work(asked, starts)
            })
            .await;
        // A lost response has no side effect here, because the query only reads.
        self.alive(answer).await
    }

    async fn open(&self) -> Result<(Store, u64), Failure> {
        if self.disk.has_ended() {
            return pending().await;
        }
        self.reach()?;
        let starts = self.store.tables().starts;
        Ok((self.store.clone(), starts))
    }

    async fn alive<T>(&self, answer: Result<T, Failure>) -> Result<T, Failure> {
        if self.disk.has_ended() {
            return pending().await;
        }
        self.reach()?;
        answer
    }

    fn reach(&self) -> Result<(), Failure> {
        if self.host.store_is_away() {
            return Err(Failure::Later("ClickHouse cannot be reached".to_owned()));
        }
        Ok(())
    }
}

impl Destination for Connection {
    type Claims = SimulatedClaims;

    async fn stored_batches(&self, project: &str, ids: &[Uuid]) -> Result<StoredBatches, Failure> {
        let (project, ids) = (project.to_owned(), ids.to_vec());
        self.ask(move |store, _| {
            let batch_id = |row: &Row| Uuid::from_u128(row["batch_id"].number());
            let found = |table: &str| {
                let mut rows = store.rows(table);
                rows.retain(|row| row["project"].text() == project && ids.contains(&batch_id(row)));
                rows
            };
            let whole = found("batches").into_iter().map(|row| StoredBatch {
                batch_id: batch_id(&row),
                number: rows::number_of(&row),
                received_at: UnixTime::from_micros(row["received_at"].number() as i64),
            });
            Ok(StoredBatches {
                whole: whole.collect(),
                cut: found("split_batches").iter().map(batch_id).collect(),
            })
        })
        .await
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), Failure> {
        let (store, starts) = self.open().await?;
        let Insert {
            table,
            block,
            token,
            number,
            only,
        } = insert;
        let mut rows = rows::read(block);
        if let Some((raw, periods)) = only {
            rows.retain(|row| periods.contains(&rows::period_of(raw, row)));
        }
        let at_work = AtWork::begin(store.clone(), number);
        let table = table.to_owned();
        let answer = store
            .work(async move {
                let store = at_work.store.clone();
                store.wait_if_late().await;
                let done = store.insert(starts, table, token, rows).await;
                drop(at_work);
                done
            })
            .await;
        let view_fails = store.chance.happens(store.tables().failing);
        self.alive(match answer {
            Ok(()) if view_fails => Err(Failure::Content("a view fails".to_owned())),
            answer => answer,
        })
        .await
    }

    async fn periods_of(
        &self,
        table: &RawTable,
        numbers: &[Number],
    ) -> Result<BTreeSet<Day>, Failure> {
        let (table, numbers) = (*table, numbers.to_vec());
        self.ask(move |store, _| {
            let rows = store.rows(table.name).into_iter();
            let found = rows.filter(|row| numbers.contains(&rows::number_of(row)));
            Ok(found.map(|row| rows::period_of(&table, &row)).collect())
        })
        .await
    }

    async fn has_records_of(
        &self,
        table: &RawTable,
        range: Number,
        others: &[Number],
    ) -> Result<bool, Failure> {
        let (table, others) = (table.name, others.to_vec());
        self.ask(move |store, _| {
            let mut numbers = store
                .rows(table)
                .into_iter()
                .map(|row| rows::number_of(&row));
            Ok(numbers.any(|number| {
                number > range && number.range() == range || others.contains(&number)
            }))
        })
        .await
    }

    async fn marks(&self, table: &str, log_id: Uuid) -> Result<BTreeMap<Month, Number>, Failure> {
        let (table, log_id) = (table.to_owned(), log_id.to_string());
        self.ask(move |store, _| {
            let mut marks = BTreeMap::new();
            let rows = store.rows(&table);
            let of_log = rows
                .iter()
                .filter_map(mark)
                .filter(|(log, ..)| *log == log_id);
            for (_, month, number) in of_log {
                let mark = marks.entry(month).or_insert(number);
                *mark = number.max(*mark);
            }
            Ok(marks)
        })
        .await
    }

    async fn ranges_with_own_marks(
        &self,
        log_id: Uuid,
    ) -> Result<BTreeSet<(Month, Number)>, Failure> {
        let log_id = log_id.to_string();
        self.ask(move |store, _| {
            let rows = store.rows("outcomes").into_iter();
            let alone = rows.filter(|row| {
                row["project"].text().is_empty() && row["signal"].text() == log_id && is_alone(row)
            });
            let number = |row: &Row| Number::from_value(row["source"].number());
            let month = |row: &Row| month_of(row["hour"].number() as u32);
            Ok(alone.map(|row| (month(&row), number(&row))).collect())
        })
        .await
    }

    async fn roll_ups(&self) -> Result<Vec<RollUp>, Failure> {
        self.ask(|_, _| {
            Ok(vec![
                RollUp::of_model("spans_by_hour", "spans", &["spans_hourly", "spans_daily"]),
                RollUp::of_model("traffic_by_day", "traffic", &["traffic_daily"]),
            ])
        })
        .await
    }

    async fn folds_after(
        &self,
        table: &RawTable,
        log_id: Uuid,
        after: Number,
    ) -> Result<BTreeSet<Number>, Failure> {
        let (table, log) = (table.name, Number::log_bits(log_id));
        self.ask(move |store, _| {
            let numbers = store
                .rows(table)
                .into_iter()
                .map(|row| rows::number_of(&row));
            let of_log = numbers.filter(|number| number.log() == log && *number > after);
            Ok(of_log.map(Number::fold).collect())
        })
        .await
    }

    async fn months_of(&self, table: &RawTable, fold: Number) -> Result<BTreeSet<Month>, Failure> {
        let table = *table;
        self.ask(move |store, _| {
            let rows = store.rows(table.name).into_iter();
            let of_fold = rows.filter(|row| rows::number_of(row).fold() == fold);
            let month = |row: Row| month_of((row[table.time].number() as i64 / 1_000_000) as u32);
            Ok(of_fold.map(month).collect())
        })
        .await
    }

    async fn roll_up(&self, step: &Step<'_>) -> Result<(), Failure> {
        let (store, starts) = self.open().await?;
        let (first, next) = (&step.roll_up.target, &step.roll_up.next);
        let mut targets = Vec::new();
        if step.reach != Reach::Second {
            targets.push(first.table.clone());
        }
        if step.reach != Reach::First {
            targets.extend(next.iter().map(|next| next.table.clone()));
        }
        let work = FoldWork {
            table: step.roll_up.table.clone(),
            targets,
            months: step.months.clone(),
            fold: step.fold,
            log_id: step.log_id,
            token: step.token.clone(),
        };
        let at_work = AtWork::begin(store.clone(), step.fold);
        let answer = store
            .work(async move {
                let store = at_work.store.clone();
                store.wait_if_late().await;
                let done = store.roll_up(starts, work).await;
                drop(at_work);
                done
            })
            .await;
        self.alive(answer).await
    }

    async fn has_running_queries(&self, number: Number) -> Result<bool, Failure> {
        self.ask(move |store, _| {
            Ok(store
                .tables()
                .at_work
                .get(&number)
                .is_some_and(|at| *at > 0))
        })
        .await
    }

    /// The model kills no query: the caller waits until all of them have ended.
    async fn kill_queries(&self, log_id: Uuid) -> Result<bool, Failure> {
        let log = Number::log_bits(log_id);
        self.ask(move |store, _| {
            let tables = store.tables();
            let mut at_work = tables.at_work.iter();
            Ok(at_work.any(|(number, attempts)| number.log() == log && *attempts > 0))
        })
        .await
    }

    async fn roll_up_old(&self, _: u64, _: Uuid) -> Result<(), Failure> {
        Ok(())
    }
}
