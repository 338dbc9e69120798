//! Rebuilds the hours of roll-ups that differ from raw rows.
//!
//! Raw rows are a valid source only if they are complete. If they differ from the counts taken on arrival, nothing is rebuilt and
//! an operator must investigate. An hour is rebuilt at most once an hour. Only one of several servers rebuilds at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::{Auditor, DAY, HOUR, Memory, hour, last_closed};
use crate::store::{Book, Difference, Failure, Kept, LIFE, PAGES, Page, Period, Rebuilder};

/// Minimum time between rebuilds of the same hour.
const PAUSE: i64 = HOUR;
/// Maximum number of differences that a round repairs.
const MOST: usize = 200;
/// Almost all raw rows of an hour arrive within this time.
const ARRIVED: i64 = 2 * DAY;

/// Time of the last rebuild, by signal and start.
pub(super) type Tried = BTreeMap<(&'static str, i64), i64>;

impl Auditor {
    /// Rebuilds the differences that can be rebuilt, and compares again.
    pub(super) async fn repair(
        &self,
        memory: &mut Memory,
        kept: &Kept,
        now: i64,
    ) -> Result<(), Failure> {
        let due = due(memory, now);
        let mut sound = Vec::new();
        for one in due {
            if self.has_all_raw_rows(memory, &one, kept, now).await? {
                sound.push(one);
            }
        }
        if sound.is_empty() {
            return Ok(());
        }
        let rebuilder = Rebuilder::begin(&self.clickhouse, now, LIFE).await?;
        for one in &sound {
            memory.tried.insert((one.page.signal, one.at), now);
        }
        let rebuilt = self.rebuild(&rebuilder, &sound).await;
        let ended = rebuilder.end().await;
        rebuilt?;
        ended?;
        let known: Vec<Difference> = memory.suspects.union(&memory.real).cloned().collect();
        let found = self.clickhouse.recheck(&known, now).await?;
        self.report(memory, found.into_iter().collect());
        Ok(())
    }

    /// Whether the raw rows behind a difference match the counts taken on arrival, as far as these can still be compared.
    async fn has_all_raw_rows(
        &self,
        memory: &Memory,
        one: &Difference,
        kept: &Kept,
        now: i64,
    ) -> Result<bool, Failure> {
        let Some(page) = arrivals(&one.page) else {
            return Ok(false);
        };
        let mut known = memory.real.iter().chain(&memory.suspects);
        if known.any(|other| other.page == *page) {
            return Ok(false);
        }
        let end = one.at + one.page.book.unit();
        let period = Period {
            from: one.at,
            to: (end + ARRIVED).min(last_closed(now)),
        };
        let compared = kept.covered(page, period, now);
        if compared != period {
            return Ok(false);
        }
        let compared = self.clickhouse.compare_page(page, period, None, now);
        Ok(compared.await?.differences.is_empty())
    }

    async fn rebuild(&self, rebuilder: &Rebuilder, sound: &[Difference]) -> Result<(), Failure> {
        let periods: Vec<(&str, Period)> = sound
            .iter()
            .map(|one| (one.page.copy_table(), period(one)))
            .collect();
        for part in rebuilder.plan_repair(&periods) {
            rebuilder.rebuild(&part, &|_, _| ()).await?;
        }
        // Several projects may differ in the same hour.
        let mut rebuilt: BTreeSet<(&str, i64)> = BTreeSet::new();
        for one in sound {
            tracing::warn!(
                project = one.project,
                signal = one.page.signal,
                books = one.page.book.as_str(),
                hour = %hour(one.at),
                expected = one.expected,
                found = one.found,
                events = one.events(),
                "rebuilt a roll-up that differed from the raw rows"
            );
            if rebuilt.insert((one.page.signal, one.at)) {
                let hours = (one.page.book.unit() / HOUR).unsigned_abs();
                let metric = &self.metrics.rebuilt_hours;
                metric.with_label_values(&[one.page.signal]).inc_by(hours);
            }
        }
        Ok(())
    }
}

/// Returns the differences of roll-ups that were not rebuilt recently.
fn due(memory: &mut Memory, now: i64) -> Vec<Difference> {
    memory.tried.retain(|_, tried| *tried > now - PAUSE);
    let of_roll_up = |one: &&Difference| !one.page.book.is_of_arrivals();
    let fresh = |one: &&Difference| !memory.tried.contains_key(&(one.page.signal, one.at));
    let due = memory.real.iter().filter(of_roll_up).filter(fresh);
    due.take(MOST).cloned().collect()
}

fn period(one: &Difference) -> Period {
    Period {
        from: one.at,
        to: one.at + one.page.book.unit(),
    }
}

/// Returns the page that compares the raw rows of a roll-up with the counts taken on arrival.
fn arrivals(page: &Page) -> Option<&'static Page> {
    let hourly = PAGES
        .iter()
        .find(|one| one.book == Book::Hours && one.signal == page.signal);
    // Without an hourly roll-up, the daily one is made from raw rows.
    let raw = hourly.unwrap_or(page).source_table();
    PAGES
        .iter()
        .find(|one| one.book.is_of_arrivals() && one.source_table() == raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_roll_up_has_a_page_that_verifies_its_raw_rows() {
        for page in PAGES.iter().filter(|page| !page.book.is_of_arrivals()) {
            let raw = arrivals(page).unwrap_or_else(|| panic!("{}", page.signal));
            let expected = match page.signal {
                "sdk_drops" => "sdk_health",
                "usage" => "batches",
                "traffic_bytes" => "traffic",
                signal => signal,
            };
            assert_eq!(raw.signal, expected);
        }
    }

    #[test]
    fn only_roll_ups_are_rebuilt_and_each_at_most_once_an_hour() {
        let at = |page: &Page| Difference {
            page: *page,
            project: "shop".to_owned(),
            at: 0,
            expected: 7,
            found: 1,
        };
        let mut memory = Memory::default();
        memory.real.extend(PAGES.iter().map(at));
        let first = due(&mut memory, 10 * HOUR);
        assert_eq!(first.len(), 22);
        for one in &first {
            memory.tried.insert((one.page.signal, one.at), 10 * HOUR);
        }
        assert_eq!(due(&mut memory, 11 * HOUR - 1), []);
        assert_eq!(due(&mut memory, 11 * HOUR).len(), 22);
    }
}
