//! Deletes the expired rows of projects that keep them for a shorter time than others.
//!
//! ClickHouse drops whole parts by a TTL, which is that of the project with the longest retention (`retention.rs`). Rows of the other
//! projects are deleted by mutations. A mutation rewrites parts, so it waits until a whole period has expired: a week of raw rows, or a
//! month of a roll-up.

use std::collections::BTreeMap;

use super::books::{bound, month_of};
use super::mutations::OLD_ROWS;
use super::rebuild::of_month;
use super::retention::Retention;
use super::sql_text::text;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::raw_tables::{RAW, RawTable};

const DAY: i64 = 86_400;
/// The maximum time for counting the rows to drop, in seconds.
const MAX_SECONDS: &str = "300";

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
            None => of_month(month_of(at)).from,
        }
    }

    fn older(&self, of: &str, before: i64) -> String {
        format!("{of} AND {0} < {1}", self.time, bound(self.time, before))
    }
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
        let count = client.query_raw(&sql);
        let count = count.with_setting("max_execution_time", MAX_SECONDS);
        if count.fetch_one::<u64>().await? == 0 {
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
        self.start_deletion((database, name.as_str()), condition, OLD_ROWS)
            .await?;
        Ok(true)
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
