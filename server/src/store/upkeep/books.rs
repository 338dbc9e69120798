//! The books check that all acknowledged events are stored, and that roll-ups match the raw rows.
//!
//! A page is compared in two steps. The first step counts both sides and is enough if they are equal. The second step accounts for
//! rows that the server has not rolled up yet. A row is rolled up if its number is not above the mark of its log (see `roll_ups::fold`). The
//! copy must hold at least these rows, and at most all rows. A difference outside these bounds is real, even while servers write.
//!
//! Cost: the first step reads project and time of the rows, which the primary key finds (`project`, hour, `received_at`): 36
//! million rows took 2.2 to 2.7 s on two busy threads. The second step also reads `range_id`, takes twice as long, and runs only
//! for days with a difference. At 100,000 events a second (360 million rows an hour), an hour costs some 45 s in all, and as much
//! again a day later: less than a thirtieth of the time, on two threads. An hour with late events costs half of that. Of a roll-up,
//! a statement reads the rows of a month at most, in four columns.

mod page;
mod retained_rows;

use std::collections::{BTreeMap, BTreeSet};

use clickhouse::Row;
use serde::Deserialize;

pub use self::page::{Book, PAGES, Page};
pub(crate) use self::retained_rows::Gone;
pub use self::retained_rows::Kept;

use self::page::Side;
use self::retained_rows::oldest_arrival;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::range_number::Number;
use crate::store::raw_tables::{RAW, RawTable};
use crate::store::roll_ups::marks::Rolled;

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

/// Longest wait of a batch in a log. Rows that waited longer are not searched.
const LONGEST_WAIT: i64 = 8 * DAY;

/// Rows with an older number are expected in their roll-up regardless of the marks: the server that should have rolled them up is
/// gone.
pub(super) const ADOPT_AFTER: i64 = 6 * HOUR;

/// Statements of the books yield to queries of users.
const SETTINGS: [(&str, &str); 3] = [
    ("max_threads", "2"),
    ("priority", "10"),
    ("max_execution_time", "300"),
];

/// In seconds since the epoch; the end is not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub from: i64,
    pub to: i64,
}

impl Period {
    /// Returns the whole units of a book within the period.
    fn whole(self, book: Book) -> Self {
        let unit = book.unit();
        Self {
            from: ceil(self.from, unit),
            to: self.to - self.to.rem_euclid(unit),
        }
    }

    fn is_empty(self) -> bool {
        self.from >= self.to
    }
}

fn ceil(time: i64, unit: i64) -> i64 {
    time + (-time).rem_euclid(unit)
}

/// An hour or day in which two sides do not match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Difference {
    pub page: Page,
    pub project: String,
    /// Start of the hour or day, in seconds since the epoch.
    pub at: i64,
    /// The number of events that should be stored.
    pub expected: i64,
    pub found: i64,
}

impl Difference {
    #[must_use]
    pub fn events(&self) -> u64 {
        self.expected.abs_diff(self.found)
    }
}

/// The result of comparing a page.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    pub differences: Vec<Difference>,
    /// Events on the side that is written first.
    pub events: u64,
}

#[derive(Row, Deserialize)]
struct Entry {
    p: String,
    at: i64,
    total: i64,
    /// The part of the total that the copy must hold.
    certain: i64,
}

type Entries = BTreeMap<(String, i64), Entry>;

/// A count of one side.
struct Question<'q> {
    page: &'q Page,
    side: &'q Side,
    period: Period,
    /// An SQL condition on rows that the copy must hold.
    certain: &'q str,
    only: Option<&'q BTreeSet<(String, i64)>>,
}

impl ClickHouse {
    /// Compares a page. Each difference was real when it was found, but may be resolved a moment later.
    pub async fn compare_page(
        &self,
        page: &Page,
        period: Period,
        project: Option<&str>,
        now: i64,
    ) -> Result<Compared, Failure> {
        let period = period.whole(page.book);
        if period.is_empty() {
            return Ok(Compared::default());
        }
        let question = |side| Question {
            page,
            side,
            period,
            certain: "",
            only: None,
        };
        let source = self.count(&question(&page.source), project).await?;
        let copy = self.count(&question(&page.copy), project).await?;
        let keys: BTreeSet<&(String, i64)> = source.keys().chain(copy.keys()).collect();
        let mut doubtful: Vec<(String, i64)> = keys
            .into_iter()
            .filter(|key| total(&source, key) != total(&copy, key))
            .cloned()
            .collect();
        if !doubtful.is_empty() {
            let kept = self.kept().await?;
            doubtful.retain(|key| kept.has(page, key));
        }
        let events = source
            .values()
            .map(|entry| entry.total.unsigned_abs())
            .sum();
        Ok(Compared {
            differences: self.settle(page, doubtful, now).await?,
            events,
        })
    }

    /// Returns the given differences that still exist.
    pub async fn recheck(
        &self,
        differences: &[Difference],
        now: i64,
    ) -> Result<Vec<Difference>, Failure> {
        let mut pages: BTreeMap<&Page, Vec<(String, i64)>> = BTreeMap::new();
        for one in differences {
            let doubtful = pages.entry(&one.page).or_default();
            doubtful.push((one.project.clone(), one.at));
        }
        let mut found = Vec::new();
        for (page, doubtful) in pages {
            found.extend(self.settle(page, doubtful, now).await?);
        }
        Ok(found)
    }

    /// The second step, one day at a time.
    async fn settle(
        &self,
        page: &Page,
        doubtful: Vec<(String, i64)>,
        now: i64,
    ) -> Result<Vec<Difference>, Failure> {
        let mut days: BTreeMap<i64, BTreeSet<(String, i64)>> = BTreeMap::new();
        for (project, at) in doubtful {
            days.entry(at.div_euclid(DAY))
                .or_default()
                .insert((project, at));
        }
        let mut found = Vec::new();
        for (day, keys) in days {
            found.extend(self.settle_day(page, day, &keys, now).await?);
        }
        Ok(found)
    }

    async fn settle_day(
        &self,
        page: &Page,
        day: i64,
        keys: &BTreeSet<(String, i64)>,
        now: i64,
    ) -> Result<Vec<Difference>, Failure> {
        // The marks must be read first: the copy then has at least the rows up to these marks.
        let certain = self.certain_rows(page, day * DAY, now).await?;
        let question = |side| Question {
            page,
            side,
            period: Period {
                from: day * DAY,
                to: (day + 1) * DAY,
            },
            certain: &certain,
            only: Some(keys),
        };
        let source = self.count(&question(&page.source), None).await?;
        let copy = self.count(&question(&page.copy), None).await?;
        let later = if keys
            .iter()
            .any(|key| total(&copy, key) > total(&source, key))
        {
            self.count(&question(&page.source), None).await?
        } else {
            Entries::new()
        };
        let found = keys.iter().filter_map(|key| {
            let least = source.get(key).map_or(0, |entry| entry.certain);
            let most = total(&later, key).max(total(&source, key));
            let copied = total(&copy, key);
            let sound = copied.clamp(least.min(most), most);
            (sound != copied).then(|| page.difference(key, sound, copied))
        });
        Ok(found.collect())
    }

    /// Returns a condition on the rows that the copy must hold, from the copy's marks for the month. An empty condition selects all
    /// rows.
    async fn certain_rows(&self, page: &Page, at: i64, now: i64) -> Result<String, Failure> {
        if RawTable::named(page.source.table).is_none() {
            return Ok(String::new());
        }
        let month = month_of(at);
        // By the 32 bits of the log that are part of a number.
        let mut marks: BTreeMap<u32, Number> = BTreeMap::new();
        for mark in self.all_marks(page.copy.table, Some(month)).await? {
            let last = if page.book.is_of_arrivals() {
                mark.number.last_counted()
            } else {
                mark.number.last_of_fold()
            };
            let known = marks.entry(mark.bits).or_default();
            *known = last.max(*known);
        }
        let rolled_up = Rolled(marks).sql();
        let stuck = (now - ADOPT_AFTER) * 1_000;
        let certain = format!("({rolled_up} OR {} < {stuck})", Number::MILLIS_SQL);
        Ok(if page.book.is_of_arrivals() {
            // Rows without a number may have been inserted by hand, and were not counted on arrival.
            format!("(range_id != 0 AND {certain})")
        } else {
            certain
        })
    }

    async fn count(
        &self,
        question: &Question<'_>,
        project: Option<&str>,
    ) -> Result<Entries, Failure> {
        let sql = question.sql(self.database(), project.is_some());
        let mut query = SETTINGS
            .into_iter()
            .fold(self.client()?.query_raw(&sql), |query, (name, value)| {
                query.with_setting(name, value)
            });
        if let Some(project) = project {
            query = query.param("project", project);
        }
        if let Some(only) = question.only {
            let projects: BTreeSet<&str> = only.iter().map(|(project, _)| &**project).collect();
            query = query.param("projects", projects.into_iter().collect::<Vec<_>>());
        }
        let entries = query.fetch_all::<Entry>().await?.into_iter();
        Ok(entries
            .map(|entry| ((entry.p.clone(), entry.at), entry))
            .filter(|(key, _)| question.only.is_none_or(|only| only.contains(key)))
            .collect())
    }

    /// Returns the hours before the period whose events were stored in the period.
    pub async fn touched_hours(&self, period: Period) -> Result<BTreeSet<i64>, Failure> {
        let mut hours = BTreeSet::new();
        for table in RAW.iter().filter(|table| table.time != "received_at") {
            hours.extend(self.touched(table.name, table.time, period).await?);
        }
        Ok(hours)
    }

    /// Returns the hours before the period in which batches arrived that were stored in the period, because they waited in a log.
    pub async fn touched_arrivals(&self, period: Period) -> Result<BTreeSet<i64>, Failure> {
        self.touched("batches", "received_at", period).await
    }

    /// The number of a row shows when it was stored. Rows without a number were inserted by hand or by an older server.
    async fn touched(
        &self,
        table: &str,
        time: &str,
        period: Period,
    ) -> Result<BTreeSet<i64>, Failure> {
        let sql = format!(
            "SELECT DISTINCT {} FROM `{}`.`{table}` WHERE project != '' AND {time} >= {} AND {time} < {} \
             AND (range_id >= {} AND range_id < {} OR range_id = 0 AND received_at >= {} AND received_at < {})",
            start_of(time, HOUR),
            self.database(),
            bound(time, period.from - oldest_arrival() - LONGEST_WAIT),
            bound(time, period.from),
            Number::first_at(period.from).sql(),
            Number::first_at(period.to).sql(),
            bound("received_at", period.from),
            bound("received_at", period.to),
        );
        let found = self.client()?.query_raw(&sql).fetch_all::<i64>().await?;
        Ok(found.into_iter().collect())
    }
}

impl Page {
    /// For arrivals, the counts are expected and the rows are found.
    fn difference(&self, (project, at): &(String, i64), source: i64, copy: i64) -> Difference {
        let (expected, found) = if self.book == Book::Arrivals {
            (copy, source)
        } else {
            (source, copy)
        };
        Difference {
            page: *self,
            project: project.clone(),
            at: *at,
            expected,
            found,
        }
    }
}

impl Question<'_> {
    fn sql(&self, database: &str, of_project: bool) -> String {
        let Side {
            table,
            time,
            sum,
            only,
        } = *self.side;
        let (unit, certain) = (self.page.book.unit(), self.certain);
        let is_source = *self.side == self.page.source;
        let sums = match (sum, is_source && !certain.is_empty()) {
            ("1", false) => "toInt64(count()) AS total, total AS certain".to_owned(),
            ("1", true) => {
                format!("toInt64(count()) AS total, toInt64(countIf({certain})) AS certain")
            }
            (_, false) => format!("toInt64(sum({sum})) AS total, total AS certain"),
            (_, true) => {
                format!("toInt64(sum({sum})) AS total, toInt64(sumIf({sum}, {certain})) AS certain")
            }
        };
        let mut conditions = vec![
            "project != ''".to_owned(),
            format!("{time} >= {}", bound(time, self.period.from)),
            format!("{time} < {}", bound(time, self.period.to)),
        ];
        if of_project {
            conditions.push("project = {project:String}".to_owned());
        }
        conditions.extend(only.sql());
        if let Some(only) = self.only {
            let times: BTreeSet<String> = only.iter().map(|(_, at)| at.to_string()).collect();
            let times: Vec<String> = times.into_iter().collect();
            conditions.push("project IN {projects:Array(String)}".to_owned());
            conditions.push(format!(
                "{} IN ({})",
                start_of(time, unit),
                times.join(", ")
            ));
        }
        if let Some(raw) = RawTable::named(table).filter(|raw| raw.time != time) {
            conditions.push(happened(raw, self.period));
        }
        format!(
            "SELECT toString(project) AS p, {} AS at, {sums} FROM `{database}`.`{table}` WHERE {} GROUP BY p, at",
            start_of(time, unit),
            conditions.join(" AND "),
        )
    }
}

/// Returns a condition on when events that arrived in a period may have happened. It excludes other partitions.
fn happened(table: &RawTable, period: Period) -> String {
    format!(
        "{0} >= {1} AND {0} < {2}",
        table.time,
        bound(table.time, period.from - oldest_arrival()),
        bound(table.time, period.to + 3 * DAY),
    )
}

fn total(entries: &Entries, key: &(String, i64)) -> i64 {
    entries.get(key).map_or(0, |entry| entry.total)
}

/// Returns the start of a row's hour or day, in seconds since the epoch.
pub(super) fn start_of(time: &str, unit: i64) -> String {
    if unit == DAY || time == "day" {
        format!("toInt64(toUInt32(toDate({time}))) * {DAY}")
    } else {
        format!("toInt64(toUnixTimestamp(toStartOfHour({time})))")
    }
}

pub(crate) fn bound(time: &str, seconds: i64) -> String {
    if time == "day" {
        format!("toDate({})", seconds.div_euclid(DAY))
    } else {
        format!("toDateTime({}, 'UTC')", seconds.max(0))
    }
}

pub(crate) fn month_of(at: i64) -> u32 {
    let time =
        time::OffsetDateTime::from_unix_timestamp(at).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    time.year().unsigned_abs() * 100 + u32::from(u8::from(time.month()))
}
