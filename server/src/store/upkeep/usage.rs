//! The disk usage of a project's rows, and the deletion of expired rows.
//!
//! ClickHouse drops whole parts by a TTL, which is that of the project with the longest retention. Rows of the other projects are
//! deleted by mutations. A mutation rewrites parts, so it waits until a whole period has expired: a week of raw rows, or a month of
//! a roll-up.

use std::collections::BTreeMap;

use clickhouse::Row;
use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use super::books::bound;
use super::erase::text;
use super::rebuild::of_month;
use super::retention::Retention;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::raw::{RAW, RawTable};

const DAY: i64 = 86_400;
/// Marks the mutations that delete expired rows.
const MARK: &str = "old rows";

/// How long rows are kept.
#[derive(Clone, Debug)]
pub struct RetentionPlan {
    /// The retention of the installation.
    pub default: Retention,
    /// The effective retention of each project.
    pub projects: BTreeMap<String, Retention>,
}

impl RetentionPlan {
    /// Returns the longest retention of all projects.
    #[must_use]
    pub fn longest(&self) -> Retention {
        let longer = |one: u64, other: u64| match (one, other) {
            (0, _) | (_, 0) => 0,
            _ => one.max(other),
        };
        let all = self.projects.values();
        all.fold(self.default, |longest, one| Retention {
            raw_days: longer(longest.raw_days, one.raw_days),
            hourly_days: longer(longest.hourly_days, one.hourly_days),
            daily_days: longer(longest.daily_days, one.daily_days),
        })
    }

    /// Returns the projects with a shorter retention than the longest, and the time before which their rows expire.
    fn earlier(&self, table: &Table, now: i64) -> Vec<(String, i64)> {
        let longest = self
            .longest()
            .for_table(&table.name)
            .map_or(0, |(days, _)| days);
        let before = |retention: &Retention| {
            let (days, _) = retention.for_table(&table.name)?;
            (days != 0 && days != longest).then(|| table.period(now - days.cast_signed() * DAY))
        };
        let projects = self.projects.iter();
        projects
            .filter_map(|(project, own)| Some((project.clone(), before(own)?)))
            .collect()
    }
}

/// A table with rows of projects that expire.
struct Table {
    name: String,
    /// The column with the time of a row.
    time: &'static str,
}

impl Table {
    /// Returns the start of the period that contains a time: a week of raw rows, or a month of a roll-up.
    fn period(&self, at: i64) -> i64 {
        match RawTable::named(&self.name) {
            // The epoch began on a Thursday.
            Some(_) => at - (at + 3 * DAY).rem_euclid(7 * DAY),
            None => of_month(crate::store::upkeep::books::month_of(at)).from,
        }
    }

    fn older(&self, of: &str, before: i64) -> String {
        format!("{of} AND {0} < {1}", self.time, bound(self.time, before))
    }
}

/// Disk usage of a project's rows in one table.
#[derive(Row, Deserialize, Serialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct TableUse {
    pub table: String,
    pub rows: u64,
    pub bytes: u64,
}

#[derive(Row, Deserialize)]
struct DayUse {
    day: i64,
    bytes: u64,
}

impl ClickHouse {
    async fn tables_that_age(&self, retention: Retention) -> Result<Vec<Table>, Failure> {
        let names = self.tables_of_projects().await?.into_iter();
        Ok(names
            .filter_map(|name| {
                let (_, time) = retention.for_table(&name)?;
                (!name.starts_with("stack")).then_some(Table { name, time })
            })
            .collect())
    }

    /// Starts to delete the expired rows of projects with a shorter retention than others. Returns the affected tables.
    pub async fn drop_old_rows(
        &self,
        keeping: &RetentionPlan,
        now: i64,
    ) -> Result<Vec<String>, Failure> {
        let mut dropped = Vec::new();
        for table in self.tables_that_age(keeping.default).await? {
            let earlier = keeping.earlier(&table, now);
            // Most projects share the same time.
            let mut times: BTreeMap<i64, Vec<String>> = BTreeMap::new();
            for (project, before) in &earlier {
                times.entry(*before).or_default().push(text(project));
            }
            let older: Vec<String> = times
                .iter()
                .map(|(before, of)| {
                    let of = format!("project IN ({})", of.join(", "));
                    format!("({})", table.older(&of, *before))
                })
                .collect();
            let condition = older.join(" OR ");
            if !earlier.is_empty() && self.drop_rows(&table, &earlier, &condition).await? {
                dropped.push(table.name);
            }
        }
        Ok(dropped)
    }

    /// Deletes a project's events before a time, which must be the start of a day.
    pub async fn drop_events(&self, project: &str, before: i64) -> Result<(), Failure> {
        for raw in RAW.iter().filter(|raw| raw.name != "batches") {
            let table = Table {
                name: raw.name.to_owned(),
                time: raw.time,
            };
            let older = table.older(&format!("project = {}", text(project)), before);
            let dropped = [(project.to_owned(), before)];
            self.drop_rows(&table, &dropped, &older).await?;
        }
        Ok(())
    }

    /// Records the rows to drop, then starts to drop them. A rebuild reads the record, so that it does not mistake the remaining rows
    /// for all rows. Returns whether there were any rows.
    async fn drop_rows(
        &self,
        table: &Table,
        dropped: &[(String, i64)],
        condition: &str,
    ) -> Result<bool, Failure> {
        let (database, name) = (self.database(), &table.name);
        let client = self.client()?;
        let sql = format!("SELECT count() FROM `{database}`.`{name}` WHERE {condition}");
        if client.query_raw(&sql).fetch_one::<u64>().await? == 0 {
            return Ok(false);
        }
        let notes: Vec<String> = dropped
            .iter()
            .map(|(project, before)| {
                let project = text(project);
                format!("('{name}', {project}, toDateTime({before}, 'UTC'))")
            })
            .collect();
        let sql = format!(
            "INSERT INTO `{database}`.dropped_rows (target, project, before) VALUES {}",
            notes.join(", ")
        );
        client.query_raw(&sql).execute().await?;
        let sql = format!(
            "ALTER TABLE `{database}`.`{name}` DELETE WHERE ({condition}) AND '{MARK}' != ''"
        );
        client.query_raw(&sql).execute().await?;
        Ok(true)
    }

    /// Whether expired rows are still being deleted. Fails if the deletion fails.
    pub async fn is_deleting_rows(&self) -> Result<bool, Failure> {
        let sql = format!(
            "SELECT count(), toString(max(latest_fail_reason)) FROM system.mutations \
             WHERE database = '{}' AND NOT is_done AND position(command, '{MARK}') > 0",
            self.database()
        );
        let query = self.client()?.query_raw(&sql);
        let (running, error) = query.fetch_one::<(u64, String)>().await?;
        if error.is_empty() {
            Ok(running > 0)
        } else {
            Err(Failure::Later(error))
        }
    }

    /// Returns the average size of the project's events relative to those of all projects, by their wire size in the 30 days before
    /// `now`.
    async fn weight(&self, project: &str, now: UnixTime) -> Result<f64, Failure> {
        let sql = format!(
            "SELECT ifNotFinite((sumIf(wire_bytes, project = {0}) / sumIf(accepted, project = {0})) / (sum(wire_bytes) / sum(accepted)), 1.) \
             FROM `{1}`.usage_daily WHERE project != '' AND day >= toDate({2}) - 30",
            text(project),
            self.database(),
            now.as_secs()
        );
        Ok(self.reader()?.query_raw(&sql).fetch_one::<f64>().await?)
    }

    /// Returns the disk usage of a project by table, largest first. It is an estimate: the project's share of each table by number
    /// and size of rows.
    pub async fn usage(&self, project: &str, now: UnixTime) -> Result<Vec<TableUse>, Failure> {
        let (database, weight) = (self.database(), self.weight(project, now).await?);
        let tables = self.tables_of_projects().await?;
        let counts: Vec<String> = tables
            .iter()
            .map(|table| {
                format!(
                    "SELECT '{table}' AS table, count() AS rows FROM `{database}`.`{table}` WHERE project = {}",
                    text(project)
                )
            })
            .collect();
        let sql = format!(
            "SELECT table, rows, toUInt64(rows * {weight} * ifNull(row_bytes, 0)) AS bytes FROM ({}) AS counts LEFT JOIN \
             (SELECT table, sum(bytes_on_disk) / greatest(sum(rows), 1) AS row_bytes FROM system.parts \
              WHERE database = '{database}' AND active GROUP BY table) AS sizes USING (table) \
             WHERE rows > 0 ORDER BY bytes DESC, table",
            counts.join(" UNION ALL ")
        );
        let query = self.reader()?.query_raw(&sql);
        let query = query.with_setting("max_execution_time", "30");
        Ok(query.fetch_all().await?)
    }

    /// Returns the disk usage of a project's events by day: the start of the day in seconds since the epoch, and the bytes.
    pub async fn usage_by_day(
        &self,
        project: &str,
        now: UnixTime,
    ) -> Result<BTreeMap<i64, u64>, Failure> {
        let mut days: BTreeMap<i64, u64> = BTreeMap::new();
        let (database, weight) = (self.database(), self.weight(project, now).await?);
        for raw in RAW.iter().filter(|raw| raw.name != "batches") {
            let sql = format!(
                "SELECT toInt64(toUInt32(toDate({0}))) * {DAY} AS day, toUInt64(count() * {weight} * ifNull(\
                 (SELECT sum(bytes_on_disk) / greatest(sum(rows), 1) FROM system.parts \
                  WHERE database = '{database}' AND active AND table = '{1}'), 0)) AS bytes \
                 FROM `{database}`.`{1}` WHERE project = {2} GROUP BY day",
                raw.time,
                raw.name,
                text(project)
            );
            let found = self.client()?.query_raw(&sql).fetch_all::<DayUse>();
            for one in found.await? {
                *days.entry(one.day).or_default() += one.bytes;
            }
        }
        Ok(days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(raw_days: u64) -> Retention {
        Retention {
            raw_days,
            hourly_days: 90,
            daily_days: 400,
        }
    }

    #[test]
    fn projects_with_a_shorter_retention_expire_earlier() {
        let keeping = RetentionPlan {
            default: days(30),
            projects: [("long", 60), ("other", 30), ("short", 7)]
                .map(|(project, raw_days)| (project.to_owned(), days(raw_days)))
                .into(),
        };
        assert_eq!(keeping.longest(), days(60));
        let spans = Table {
            name: "spans".to_owned(),
            time: "start",
        };
        // 2026-11-20, a Friday: 20,777 days after the epoch. Weeks begin on Mondays.
        let earlier = keeping.earlier(&spans, 20_777 * DAY + 1);
        let day = |project: &str, day: i64| (project.to_owned(), day * DAY);
        assert_eq!(earlier, [day("other", 20_745), day("short", 20_766)]);
        let hourly = Table {
            name: "spans_hourly".to_owned(),
            time: "hour",
        };
        assert_eq!(keeping.earlier(&hourly, 20_777 * DAY), []);
        let for_ever = RetentionPlan {
            default: days(0),
            ..keeping
        };
        assert_eq!(for_ever.longest(), days(0));
        assert_eq!(for_ever.earlier(&spans, 20_777 * DAY).len(), 3);
    }
}
