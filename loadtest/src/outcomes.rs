//! Checks the server's own books: each received event must have exactly one outcome.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use unjank_protocol::Signal;

use crate::clickhouse::ClickHouse;
use crate::fingerprint::SIGNALS;
use crate::ledger::Ledger;
use crate::tally::Tally;

/// Events by signal and outcome.
pub(crate) type Books = BTreeMap<(String, String), u64>;

/// Reads the server's current books.
pub(crate) async fn read(clickhouse: &ClickHouse) -> Result<Books> {
    // The table also counts whole requests (signal `batch`); only events are compared.
    let signals = SIGNALS.map(|signal| format!("'{signal}'")).join(", ");
    let sql = format!(
        "SELECT signal, outcome, sum(count) FROM outcomes WHERE signal IN ({signals}) GROUP BY signal, outcome"
    );
    let rows = clickhouse.rows(&sql).await?;
    let mut books = Books::new();
    for row in rows {
        if let [signal, outcome, count] = &row[..] {
            let count: i64 = count.parse()?;
            let count = count.max(0).unsigned_abs();
            books.insert((signal.clone(), outcome.clone()), count);
        }
    }
    Ok(books)
}

/// How much the devices know about events received twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Every attempt was answered.
    Counted,
    /// Some attempts were not answered, so the server may have received more than the devices know.
    AtLeast,
    /// The server was killed, so counts that it held in memory are lost.
    Unknown,
}

impl Repeats {
    /// Returns whether the devices know how often the server received each batch: if every attempt was answered.
    pub(crate) fn known(tally: &Tally) -> Self {
        let answered = |status: &String| status.starts_with(|first: char| first.is_ascii_digit());
        if tally.counts.statuses.keys().all(answered) {
            Self::Counted
        } else {
            Self::AtLeast
        }
    }
}

/// The books of one signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct OutcomeCheck {
    pub(crate) signal: String,
    pub(crate) stored: u64,
    pub(crate) rejected: u64,
    pub(crate) duplicate: u64,
    /// Names and stacks of stored events that became `(other)`, because the project has too many distinct ones. The events are also
    /// counted as stored.
    pub(crate) limited: u64,
    /// All other outcomes, such as `dead_letter`.
    pub(crate) other: u64,
    pub(crate) expected_stored: u64,
    pub(crate) expected_rejected: u64,
    pub(crate) expected_duplicate: u64,
    pub(crate) balanced: bool,
}

/// Compares the books with the ledger. Retries for a while, as the server writes counts late.
pub(crate) async fn compare(
    ledger: &Ledger,
    repeated: &BTreeMap<Signal, u64>,
    repeats: Repeats,
    clickhouse: &ClickHouse,
) -> Result<Vec<OutcomeCheck>> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let begun = Instant::now();
    loop {
        let books = read(clickhouse).await?;
        let checks = balance(ledger, repeated, repeats, &books);
        let balanced = checks.iter().all(|check| check.balanced);
        if balanced || begun.elapsed() > PATIENCE {
            return Ok(checks);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn balance(
    ledger: &Ledger,
    repeated: &BTreeMap<Signal, u64>,
    repeats: Repeats,
    books: &Books,
) -> Vec<OutcomeCheck> {
    let checks = SIGNALS.map(|signal| {
        let mut check = OutcomeCheck {
            signal: signal.as_str().to_owned(),
            expected_stored: ledger.certain_rows(signal),
            expected_rejected: ledger.rejected(signal),
            expected_duplicate: repeated.get(&signal).copied().unwrap_or_default(),
            ..OutcomeCheck::default()
        };
        let own = books.iter().filter(|((one, _), _)| *one == check.signal);
        let own: Vec<(&str, u64)> = own
            .map(|((_, outcome), n)| (outcome.as_str(), *n))
            .collect();
        for (outcome, count) in own {
            match outcome {
                "stored" => check.stored += count,
                "rejected" => check.rejected += count,
                "duplicate" => check.duplicate += count,
                "limited" => check.limited += count,
                _ => check.other += count,
            }
        }
        let repeats_hold = match repeats {
            Repeats::Counted => check.duplicate == check.expected_duplicate,
            Repeats::AtLeast => check.duplicate >= check.expected_duplicate,
            Repeats::Unknown => true,
        };
        let exact = check.stored == check.expected_stored
            && check.rejected == check.expected_rejected
            && check.other == 0;
        // Unanswered batches may or may not have been counted.
        let at_least = !ledger.is_certain() && check.stored >= check.expected_stored;
        check.balanced = repeats_hold && (exact || at_least);
        check
    });
    checks.into()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::delivery::Fate;
    use crate::parcel::Manifest;
    use crate::post::Acceptance;

    fn check(stored: u64, duplicate: u64, repeats: Repeats) -> bool {
        check_with(&[("stored", stored), ("duplicate", duplicate)], repeats)
    }

    fn check_with(outcomes: &[(&str, u64)], repeats: Repeats) -> bool {
        let mut ledger = Ledger::default();
        let manifest = Manifest {
            session: Uuid::nil(),
            fingerprints: vec![(Signal::Metrics, vec![1, 2, 3])],
            invalid: Vec::new(),
        };
        let fate = Fate::Acknowledged(Acceptance {
            accepted: 3,
            ..Acceptance::default()
        });
        ledger.record(Uuid::nil(), manifest, &fate);
        let names = outcomes
            .iter()
            .map(|(outcome, count)| (("metrics".to_owned(), (*outcome).to_owned()), *count));
        let books = names.collect();
        let repeated = BTreeMap::from([(Signal::Metrics, 3)]);
        balance(&ledger, &repeated, repeats, &books)
            .iter()
            .all(|check| check.balanced)
    }

    #[test]
    fn books_balance_only_if_they_agree_with_the_ledger() {
        assert!(check(3, 3, Repeats::Counted));
        assert!(!check(2, 3, Repeats::Counted));
        assert!(!check(4, 3, Repeats::Counted));
        assert!(!check(3, 6, Repeats::Counted));
        assert!(check(3, 6, Repeats::AtLeast));
        assert!(!check(3, 0, Repeats::AtLeast));
        assert!(check(3, 0, Repeats::Unknown));
    }

    #[test]
    fn events_of_a_name_above_the_bound_are_explained_and_lost_events_are_not() {
        let books = |stored, limited| {
            let outcomes = [("stored", stored), ("duplicate", 3), ("limited", limited)];
            check_with(&outcomes, Repeats::Counted)
        };
        assert!(books(3, 2));
        assert!(!books(1, 2));
        let refused = [("stored", 3), ("duplicate", 3), ("dead_letter", 2)];
        assert!(!check_with(&refused, Repeats::Counted));
    }
}
