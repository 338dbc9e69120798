//! Compares the acknowledged events with raw rows, roll-ups and the server's books, by counts.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use unjank_protocol::Signal;

use crate::clickhouse::ClickHouse;
use crate::fingerprint::SIGNALS;
use crate::ledger::Ledger;
use crate::store::{ROLLED_UP, rolled_up};
use crate::verify::TableCheck;

/// How many events of one signal ClickHouse contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) raw: u64,
    /// Sum of the hourly roll-up. `None` if the roll-ups of the signal do not count events.
    pub(super) hourly: Option<u64>,
    pub(super) daily: Option<u64>,
    /// Events with the outcome `stored` in the books.
    pub(super) booked: u64,
    /// Events with the outcome `dead_letter` in the books.
    pub(super) dead: u64,
}

impl Count {
    fn is(&self, events: u64) -> bool {
        let rolled = [self.hourly, self.daily];
        self.raw == events
            && self.booked == events
            && self.dead == 0
            && rolled.into_iter().flatten().all(|count| count == events)
    }

    /// Returns whether roll-ups and books agree with the raw rows.
    fn agrees(&self) -> bool {
        let alive = Self { dead: 0, ..*self };
        alive.is(self.raw)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(BTreeMap<Signal, Count>);

/// Maximum number of tables in a description; a few are enough to show the error.
const MOST_PARTS: usize = 3;

impl Counts {
    pub(super) async fn read(clickhouse: &ClickHouse) -> Result<Self> {
        let mut counts = Self::default();
        for row in clickhouse.rows(&counts_sql()).await? {
            let [table, column, count] = &row[..] else {
                anyhow::bail!("unexpected row {row:?} from ClickHouse");
            };
            let signal = SIGNALS.into_iter().find(|signal| signal.as_str() == table);
            let signal = signal.with_context(|| format!("unknown signal {table}"))?;
            let counted: i64 = count.parse().context("a count is not a number")?;
            let counted = counted.max(0).unsigned_abs();
            let count = counts.0.entry(signal).or_default();
            match column.as_str() {
                "raw" => count.raw = counted,
                "hourly" => count.hourly = Some(counted),
                "daily" => count.daily = Some(counted),
                "stored" => count.booked = counted,
                _ => count.dead = counted,
            }
        }
        Ok(counts)
    }

    pub(super) fn count(&self, signal: Signal) -> Count {
        self.0.get(&signal).copied().unwrap_or_default()
    }

    /// Returns whether every acknowledged event is counted exactly once everywhere.
    pub(super) fn balance(&self, ledger: &Ledger) -> bool {
        let balanced = |signal: &Signal| self.count(*signal).is(ledger.certain_rows(*signal));
        ledger.is_certain() && SIGNALS.iter().all(balanced)
    }

    /// Like [`Counts::balance`], but events in the dead-letter folder need not be stored.
    pub(super) fn balance_with_dead_letters(&self, ledger: &Ledger) -> bool {
        let balanced = |signal: &Signal| {
            let count = self.count(*signal);
            count.agrees() && count.raw + count.dead == ledger.certain_rows(*signal)
        };
        ledger.is_certain() && SIGNALS.iter().all(balanced)
    }

    /// Returns the number of events in the dead-letter folder.
    pub(super) fn dead(&self) -> u64 {
        self.0.values().map(|count| count.dead).sum()
    }

    /// Describes the first tables whose counts differ, and the errors that the row-by-row comparison found.
    pub(super) fn differences(&self, ledger: &Ledger, checks: &[TableCheck]) -> String {
        let mut parts = Vec::new();
        for signal in SIGNALS {
            let (count, events) = (self.count(signal), ledger.certain_rows(signal));
            let check = checks.iter().find(|check| check.table == signal.as_str());
            if !count.is(events) || check.is_some_and(|check| !check.holds()) {
                parts.push(describe(signal, events, count, check));
            }
        }
        let others = checks
            .iter()
            .filter(|check| !check.holds() && is_no_signal(check));
        parts.extend(others.map(|check| format!("{}: {}", check.table, faulty_rows(check))));
        if parts.is_empty() {
            parts.push("the counts are right now, but were not stable".to_owned());
        }
        let more = parts.len().saturating_sub(MOST_PARTS);
        parts.truncate(MOST_PARTS);
        if more > 0 {
            parts.push(format!("{more} more tables"));
        }
        parts.join("; ")
    }
}

fn is_no_signal(check: &TableCheck) -> bool {
    !SIGNALS.iter().any(|signal| signal.as_str() == check.table)
}

fn describe(signal: Signal, events: u64, count: Count, check: Option<&TableCheck>) -> String {
    let mut text = format!("{signal}: {events} acknowledged, {} raw", count.raw);
    if let Some(check) = check.filter(|check| !check.holds()) {
        text = format!("{text} ({})", faulty_rows(check));
    }
    for (rolled, period) in [(count.hourly, "hourly"), (count.daily, "daily")] {
        if let Some(rolled) = rolled {
            text = format!("{text}, {rolled} {period}");
        }
    }
    text = format!("{text}, {} booked", count.booked);
    if count.dead > 0 {
        text = format!("{text}, {} dead letters", count.dead);
    }
    text
}

fn faulty_rows(check: &TableCheck) -> String {
    let kinds = [
        (check.lost, "lost"),
        (check.doubled, "doubled"),
        (check.unexpected, "unexpected"),
    ];
    let found = kinds.into_iter().filter(|(rows, _)| *rows > 0);
    let found: Vec<String> = found.map(|(rows, kind)| format!("{rows} {kind}")).collect();
    found.join(", ")
}

/// Returns a single statement for all counts, so that they are from about the same time.
fn counts_sql() -> String {
    let mut selects = Vec::new();
    for signal in SIGNALS {
        selects.push(format!(
            "SELECT '{signal}', 'raw', toInt64((SELECT count() FROM {signal}))"
        ));
        for outcome in ["stored", "dead_letter"] {
            selects.push(format!(
                "SELECT '{signal}', '{outcome}', toInt64((SELECT sum(count) FROM outcomes \
                 WHERE signal = '{signal}' AND outcome = '{outcome}'))"
            ));
        }
    }
    for signal in ROLLED_UP {
        for period in ["hourly", "daily"] {
            let count = rolled_up(signal, period);
            selects.push(format!("SELECT '{signal}', '{period}', toInt64(({count}))"));
        }
    }
    selects.join(" UNION ALL ")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::delivery::Fate;
    use crate::parcel::Manifest;
    use crate::post::Acceptance;

    fn ledger(fate: &Fate) -> Ledger {
        let mut ledger = Ledger::default();
        let manifest = Manifest {
            session: Uuid::nil(),
            fingerprints: vec![(Signal::Spans, vec![1, 2, 3])],
            invalid: Vec::new(),
        };
        ledger.record(Uuid::nil(), manifest, fate);
        ledger
    }

    fn acknowledged() -> Ledger {
        ledger(&Fate::Acknowledged(Acceptance {
            accepted: 3,
            ..Acceptance::default()
        }))
    }

    fn counts(raw: u64, hourly: u64, daily: u64, booked: u64, dead: u64) -> Counts {
        let count = Count {
            raw,
            hourly: Some(hourly),
            daily: Some(daily),
            booked,
            dead,
        };
        Counts(BTreeMap::from([(Signal::Spans, count)]))
    }

    #[test]
    fn every_count_must_match_the_acknowledged_events() {
        let ledger = acknowledged();
        assert!(counts(3, 3, 3, 3, 0).balance(&ledger));
        for wrong in [
            counts(4, 3, 3, 3, 0),
            counts(3, 2, 3, 3, 0),
            counts(3, 3, 6, 3, 0),
            counts(3, 3, 3, 4, 0),
            counts(3, 3, 3, 3, 1),
        ] {
            assert!(!wrong.balance(&ledger), "{wrong:?}");
        }
    }

    #[test]
    fn only_dead_letters_make_up_for_missing_rows() {
        let ledger = acknowledged();
        assert!(counts(2, 2, 2, 2, 1).balance_with_dead_letters(&ledger));
        assert!(!counts(3, 2, 2, 2, 1).balance_with_dead_letters(&ledger));
        assert!(!counts(2, 2, 2, 2, 0).balance_with_dead_letters(&ledger));
        assert!(!counts(2, 3, 2, 2, 1).balance_with_dead_letters(&ledger));
    }

    #[test]
    fn unanswered_batches_never_balance() {
        let ledger = ledger(&Fate::Unknown("timeout".to_owned()));
        assert!(!counts(0, 0, 0, 0, 0).balance(&ledger));
    }

    #[test]
    fn a_difference_names_the_table_and_every_count() {
        let check = TableCheck {
            table: "spans".to_owned(),
            doubled: 1,
            ..TableCheck::default()
        };
        assert_eq!(
            counts(4, 4, 3, 3, 0).differences(&acknowledged(), &[check]),
            "spans: 3 acknowledged, 4 raw (1 doubled), 4 hourly, 3 daily, 3 booked"
        );
    }
}
