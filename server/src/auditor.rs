//! Compares the books in the background and remembers the differences.
//!
//! An hour is compared some minutes after it ends, and again a day later, when batches that waited in a log and late events have
//! been stored. Earlier hours that late events changed are also compared a day later, a few per round. Nothing is stored on disk:
//! after a start, the first round looks back one day. A difference counts once two rounds have found it unchanged. Each server runs
//! its own auditor. Roll-ups that differ from raw rows are rebuilt, see [`repair`].

mod repair;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::Clock;

use crate::metrics::BooksMetrics;
use crate::store::{Book, ClickHouse, Difference, Failure, Kept, PAGES, Page, Period};

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
/// How long after its end an hour is closed. Its last events may still be in flight until then.
pub const GRACE: i64 = 300;
/// How far back the first round looks.
const LOOK_BACK: i64 = DAY;
/// Delay until an hour is compared again.
const AGAIN: i64 = DAY;
/// Maximum number of hours that a round compares again.
const MOST_AGAIN: usize = 8;
/// Maximum number of differences to remember.
const MOST: usize = 10_000;
/// Maximum number of differences that a round logs one by one.
const MOST_LINES: usize = 20;

/// Returns the end of the last closed hour. Both times are in seconds since the epoch.
#[must_use]
pub fn last_closed(now: i64) -> i64 {
    floor(now - GRACE, HOUR)
}

fn floor(time: i64, unit: i64) -> i64 {
    time - time.rem_euclid(unit)
}

/// The result of the latest round.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// When the last round ended, in seconds since the epoch.
    pub checked_at: Option<i64>,
    /// Hours before this time have been compared. In seconds since the epoch.
    pub checked_to: Option<i64>,
    pub differences: Vec<Difference>,
}

/// Keeps the latest audit. The API, the metrics and the page Ingest health read it.
#[derive(Debug, Default)]
pub struct AuditBoard(Mutex<Audit>);

impl AuditBoard {
    #[must_use]
    pub fn latest(&self) -> Audit {
        let audit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        audit.clone()
    }

    fn set(&self, audit: Audit) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = audit;
    }
}

/// The background task.
pub struct Auditor {
    pub clickhouse: ClickHouse,
    pub board: Arc<AuditBoard>,
    pub metrics: BooksMetrics,
    pub clock: Clock,
    pub every: Duration,
    /// Whether to rebuild roll-ups that differ from raw rows.
    pub rebuilds: bool,
}

/// State between rounds.
#[derive(Default)]
struct Memory {
    /// Hours before this time have been compared.
    checked_to: Option<i64>,
    again: BTreeMap<i64, Again>,
    /// Differences that the last round found for the first time.
    suspects: BTreeSet<Difference>,
    /// Differences that two rounds have found.
    real: BTreeSet<Difference>,
    tried: repair::Tried,
}

/// When and how an hour is compared again.
#[derive(Clone, Copy)]
struct Again {
    due: i64,
    /// Whether to compare arrivals as well.
    arrivals: bool,
}

/// The work of one round.
struct Plan {
    now: i64,
    kept: Kept,
    new: Period,
    again: Vec<(i64, Again)>,
}

impl Plan {
    /// Returns the periods to compare for a page. Days are compared once they are over.
    fn periods(&self, page: &Page) -> Vec<Period> {
        let again = self.again.iter();
        let again = again.filter(|(_, again)| again.arrivals || !page.book.is_of_arrivals());
        let hours = again.map(|(hour, _)| (*hour, hour + HOUR));
        let all = hours.chain([(self.new.from, self.new.to)]);
        if page.book == Book::Days {
            let over = floor(self.new.to, DAY);
            joined(all.map(|(from, to)| (floor(from, DAY), (floor(to - 1, DAY) + DAY).min(over))))
        } else {
            joined(all)
        }
    }

    /// Returns the periods in which to look for arrivals.
    fn arrivals(&self) -> Vec<Period> {
        let again = self.again.iter().filter(|(_, again)| again.arrivals);
        let hours = again.map(|(hour, _)| (*hour, hour + HOUR));
        joined(hours.chain([(self.new.from, self.new.to)]))
    }
}

/// Joins adjacent and overlapping periods, so that one statement reads them.
fn joined(parts: impl Iterator<Item = (i64, i64)>) -> Vec<Period> {
    let parts: BTreeSet<(i64, i64)> = parts.filter(|(from, to)| from < to).collect();
    let mut periods: Vec<Period> = Vec::new();
    for (from, to) in parts {
        match periods.last_mut() {
            Some(last) if from <= last.to => last.to = last.to.max(to),
            _ => periods.push(Period { from, to }),
        }
    }
    periods
}

impl Auditor {
    /// Dropping the future at any point loses nothing.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.run_rounds() => {}
        }
    }

    async fn run_rounds(&self) {
        let mut memory = Memory::default();
        // Alerts query these gauges, so they must exist before the first round.
        self.report(&mut memory, BTreeSet::new());
        let mut every = interval_at(Instant::now() + self.every, self.every);
        every.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            every.tick().await;
            if let Err(failure) = self.round(&mut memory).await {
                tracing::warn!(%failure, "cannot compare the books; the next round retries");
            }
        }
    }

    async fn round(&self, memory: &mut Memory) -> Result<(), Failure> {
        let now = self.clock.now().as_secs();
        let to = last_closed(now);
        let plan = Plan {
            now,
            kept: self.clickhouse.kept().await?,
            new: Period {
                from: memory.checked_to.unwrap_or(to - LOOK_BACK).min(to),
                to,
            },
            again: memory.due(now),
        };
        let known: Vec<Difference> = memory.suspects.union(&memory.real).cloned().collect();
        let mut found: BTreeSet<Difference> = BTreeSet::new();
        found.extend(self.clickhouse.recheck(&known, now).await?);
        for page in PAGES.iter() {
            for period in plan.periods(page) {
                let period = plan.kept.covered(page, period, now);
                let compared = self.clickhouse.compare_page(page, period, None, now);
                found.extend(compared.await?.differences);
            }
        }
        let touched = self.touched(&plan).await?;
        memory.advance(&plan, &touched);
        self.report(memory, found);
        if self.rebuilds
            && let Err(failure) = self.repair(memory, &plan.kept, now).await
        {
            tracing::warn!(%failure, "cannot rebuild roll-ups that differ from raw rows; the next round retries");
        }
        let now = self.clock.now().as_secs();
        self.metrics.checked.set(now);
        self.board.set(Audit {
            checked_at: Some(now),
            checked_to: memory.checked_to,
            differences: memory.real.iter().cloned().collect(),
        });
        Ok(())
    }

    /// Returns the earlier hours of rows that were stored in the plan's periods, and whether to compare their arrivals as well.
    async fn touched(&self, plan: &Plan) -> Result<BTreeMap<i64, bool>, Failure> {
        let mut touched = BTreeMap::new();
        for period in plan.arrivals() {
            let hours = self.clickhouse.touched_hours(period).await?;
            for hour in hours {
                touched.entry(hour).or_insert(false);
            }
            let hours = self.clickhouse.touched_arrivals(period).await?;
            touched.extend(hours.into_iter().map(|hour| (hour, true)));
        }
        Ok(touched)
    }

    /// Classifies the differences of a round, logs new ones and updates the metrics.
    fn report(&self, memory: &mut Memory, found: BTreeSet<Difference>) {
        let news = memory.learn(found);
        for one in news.iter().take(MOST_LINES) {
            tracing::error!(
                project = one.project,
                signal = one.page.signal,
                books = one.page.book.as_str(),
                hour = %hour(one.at),
                expected = one.expected,
                found = one.found,
                events = one.events(),
                "the books differ: run `unjank rollups check`"
            );
        }
        if news.len() > MOST_LINES {
            tracing::error!(
                hours = news.len() - MOST_LINES,
                "the books differ in more hours"
            );
        }
        let mut events: BTreeMap<(&str, &str), u64> = PAGES
            .iter()
            .map(|page| ((page.signal, page.book.as_str()), 0))
            .collect();
        for one in &memory.real {
            *events
                .entry((one.page.signal, one.page.book.as_str()))
                .or_default() += one.events();
        }
        for ((signal, book), events) in events {
            let events = i64::try_from(events).unwrap_or(i64::MAX);
            let gauge = self
                .metrics
                .difference_events
                .with_label_values(&[signal, book]);
            gauge.set(events);
        }
    }
}

impl Memory {
    /// Returns the hours that are due for another comparison.
    fn due(&self, now: i64) -> Vec<(i64, Again)> {
        let due = self.again.iter().filter(|(_, again)| again.due <= now);
        due.map(|(hour, again)| (*hour, *again))
            .take(MOST_AGAIN)
            .collect()
    }

    /// Records the hours that a round has compared, and schedules the next comparisons.
    fn advance(&mut self, plan: &Plan, touched: &BTreeMap<i64, bool>) {
        self.checked_to = Some(plan.new.to);
        for (hour, _) in &plan.again {
            self.again.remove(hour);
        }
        let due = plan.now + AGAIN;
        let mut hour = plan.new.from;
        while hour < plan.new.to {
            let arrivals = true;
            self.again.insert(hour, Again { due, arrivals });
            hour += HOUR;
        }
        for (hour, arrivals) in touched {
            let again = self.again.entry(*hour).or_insert(Again {
                due,
                arrivals: false,
            });
            again.arrivals |= arrivals;
        }
    }

    /// Sorts differences into suspects and real ones. Returns the ones that have become real.
    fn learn(&mut self, found: BTreeSet<Difference>) -> Vec<Difference> {
        let was_real: BTreeSet<_> = self.real.iter().map(place).collect();
        let is_real =
            |one: &Difference| self.suspects.contains(one) || was_real.contains(&place(one));
        let (real, suspects): (BTreeSet<_>, BTreeSet<_>) =
            found.into_iter().take(MOST).partition(is_real);
        let news = real
            .iter()
            .filter(|one| !was_real.contains(&place(one)))
            .cloned()
            .collect();
        (self.real, self.suspects) = (real, suspects);
        news
    }
}

fn place(one: &Difference) -> (Page, String, i64) {
    (one.page, one.project.clone(), one.at)
}

/// Formats a time for logs and tables.
#[must_use]
pub fn hour(at: i64) -> String {
    unjank_protocol::Timestamp::from_micros(at.saturating_mul(1_000_000)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(at: i64, found: i64) -> Difference {
        Difference {
            page: PAGES[0],
            project: "shop".to_owned(),
            at,
            expected: 7,
            found,
        }
    }

    #[test]
    fn a_difference_counts_when_two_rounds_found_it_unchanged() {
        let mut memory = Memory::default();
        assert_eq!(memory.learn([difference(0, 1)].into()), []);
        assert_eq!(
            memory.learn([difference(0, 2)].into()),
            [],
            "the difference changed"
        );
        assert_eq!(memory.learn([difference(0, 2)].into()), [difference(0, 2)]);
        assert_eq!(
            memory.learn([difference(0, 3)].into()),
            [],
            "already reported"
        );
        assert_eq!(memory.real, [difference(0, 3)].into());
        assert_eq!(memory.learn(BTreeSet::new()), []);
        assert!(memory.real.is_empty() && memory.suspects.is_empty());
    }

    #[test]
    fn an_hour_is_compared_again_a_day_later() {
        let mut memory = Memory::default();
        let now = 100 * DAY + GRACE;
        let plan = Plan {
            now,
            kept: Kept::default(),
            new: Period {
                from: 100 * DAY - HOUR,
                to: 100 * DAY,
            },
            again: Vec::new(),
        };
        memory.advance(&plan, &BTreeMap::from([(90 * DAY, false)]));
        assert_eq!(memory.due(now + DAY - 1).len(), 0);
        let due = memory.due(now + DAY);
        let plan = Plan {
            now: now + DAY,
            again: due,
            new: Period {
                from: 100 * DAY,
                to: 101 * DAY,
            },
            ..plan
        };
        let periods = |book| {
            let page = PAGES.iter().find(|page| page.book == book).unwrap();
            let periods = plan.periods(page).into_iter();
            periods
                .map(|period| (period.from, period.to))
                .collect::<Vec<_>>()
        };
        let joined = (100 * DAY - HOUR, 101 * DAY);
        assert_eq!(periods(Book::Arrivals), [joined]);
        assert_eq!(periods(Book::Hours), [(90 * DAY, 90 * DAY + HOUR), joined]);
        assert_eq!(
            periods(Book::Days),
            [(90 * DAY, 91 * DAY), (99 * DAY, 101 * DAY)]
        );
    }
}
