//! How long tables keep their rows. Expired and deleted rows cannot be compared or rebuilt.

use std::collections::BTreeMap;

use unjank_protocol::Limits;

use super::page::{Book, Page, Side};
use super::{DAY, HOUR, Period, ceil};
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::raw_tables::RAW;

/// How long each table keeps its rows, and which rows were dropped earlier.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    days: BTreeMap<String, i64>,
    /// Rows before these times (seconds since the epoch) expired under a shorter TTL than the current one.
    dropped: BTreeMap<String, i64>,
    /// Rows of single projects that were dropped, by table: the project, and a time at the start of a day.
    dropped_of_projects: BTreeMap<String, Vec<(String, i64)>>,
}

/// Rows that were dropped from a table before its TTL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    of_all: Option<i64>,
    pub(crate) of_projects: Vec<(String, i64)>,
}

impl Kept {
    /// Returns the time from which a table still has all its rows; `None` if it keeps them forever.
    pub(crate) fn since(&self, table: &str, now: i64) -> Option<i64> {
        let days = self.days.get(table);
        let kept = days.map(|days| now - days * DAY);
        Some(kept.max(self.dropped.get(table).copied())? + HOUR)
    }

    /// Returns the rows of a table that were dropped before its TTL.
    pub(crate) fn gone(&self, table: &str) -> Gone {
        Gone {
            of_all: self.dropped.get(table).copied(),
            of_projects: self.dropped_of_projects(table).to_vec(),
        }
    }

    /// Returns the projects whose rows in the table may be gone, and the time before which they are.
    pub(super) fn dropped_of_projects(&self, table: &str) -> &[(String, i64)] {
        self.dropped_of_projects
            .get(table)
            .map_or(&[], |dropped| dropped)
    }

    /// Whether an entry of a page can be compared.
    pub(super) fn has(&self, page: &Page, (project, at): &(String, i64)) -> bool {
        let older = if page.book.is_of_arrivals() {
            oldest_arrival()
        } else {
            0
        };
        let mut tables = vec![page.source.table, page.copy.table];
        if page.book == Book::Batches {
            // A batch counts events whose rows may be gone.
            tables.extend(RAW.iter().map(|raw| raw.name));
        }
        let mut dropped = tables
            .into_iter()
            .flat_map(|table| self.dropped_of_projects(table));
        !dropped.any(|(of, before)| of == project && *at < before + older)
    }

    /// Returns the part of the period that can be compared. `now` is in seconds since the epoch.
    #[must_use]
    pub fn covered(&self, page: &Page, period: Period, now: i64) -> Period {
        // The raw rows of an arrival may have happened long before it.
        let older = if page.book == Book::Arrivals {
            oldest_arrival()
        } else {
            0
        };
        let since = |side: &Side| Some(self.since(side.table, now)? + older);
        let since = since(&page.source).max(since(&page.copy));
        let from = since.map_or(period.from, |since| period.from.max(since));
        Period { from, ..period }.whole(page.book)
    }
}

/// Returns how long before its arrival an event may have happened, in seconds. Days get a day and a half more than times.
pub(super) fn oldest_arrival() -> i64 {
    Limits::default().age_us / 1_000_000 + 3 * DAY
}

impl ClickHouse {
    /// Reads how long each table currently keeps its rows.
    pub async fn kept(&self) -> Result<Kept, Failure> {
        let sql = "SELECT name, toInt64OrZero(extract(engine_full, 'toIntervalDay[^0-9]([0-9]+)')) FROM system.tables \
                   WHERE database = {database:String} AND position(engine_full, ' TTL ') > 0";
        let query = self.client()?.query_raw(sql);
        let tables = query
            .param("database", self.database())
            .fetch_all::<(String, i64)>()
            .await?;
        let days = tables.into_iter().filter(|(_, days)| *days > 0).collect();
        let sql = format!(
            "SELECT toString(target), toString(project), max(toInt64(toUnixTimestamp(before))) FROM `{}`.dropped_rows GROUP BY target, project",
            self.database()
        );
        let rows = self.client()?.query_raw(&sql);
        let (mut dropped, mut of_projects) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for (target, project, before) in rows.fetch_all::<(String, String, i64)>().await? {
            if project.is_empty() {
                dropped.insert(target, before);
            } else {
                let of_target = of_projects.entry(target).or_default();
                of_target.push((project, ceil(before, DAY)));
            }
        }
        Ok(Kept {
            days,
            dropped,
            dropped_of_projects: of_projects,
        })
    }
}
