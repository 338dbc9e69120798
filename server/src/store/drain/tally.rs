//! The outcomes of the events of a range: the rows of `outcomes`, counted once, when the outcomes are known.

use std::collections::{BTreeMap, BTreeSet};

use time::OffsetDateTime;
use unjank_foundation::clock::{HOUR, UnixTime};
use unjank_protocol::Signal;
use uuid::Uuid;

use super::dead_letter_header::DeadLetter;
use super::delivery::wait_for_end;
use super::destination::{Destination, Insert};
use crate::records::columns::{FrameBuilder, Kind};
use crate::records::native::{Block, Frame};
use crate::records::record::{Count, Outcome, Record};
use crate::store::clickhouse::Failure;
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::Number;
use crate::store::raw_tables::Month;

/// Counts of outcomes of a range, in a fixed order.
#[derive(Default)]
pub(super) struct Tally {
    counts: BTreeMap<TallyKey, i64>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TallyKey {
    hour: u32,
    project: String,
    signal: String,
    outcome: &'static str,
    reason: String,
}

/// Marks in `outcomes` the ranges whose counts it has.
pub(crate) struct Marks {
    log_id: Uuid,
    /// The range that is counted.
    number: Number,
    /// If empty, all ranges of the log up to `number` are counted. Otherwise only these ranges are.
    pub(crate) alone: BTreeSet<Number>,
}

/// The ranges of a log that are counted.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// All ranges up to this number.
    pub(crate) before: Number,
    /// Single ranges with greater numbers.
    pub(crate) alone: BTreeSet<Number>,
}

/// A row with a mark of a month. It has a count above 0, so that merges keep it.
struct Mark {
    key: TallyKey,
    number: Number,
}

impl Marks {
    pub(super) fn up_to(log_id: Uuid, number: Number) -> Self {
        Self {
            log_id,
            number,
            alone: BTreeSet::new(),
        }
    }

    /// The months that have the counts of the range.
    async fn months(&self, destination: &impl Destination) -> Result<BTreeSet<Month>, Failure> {
        let marks = destination.marks("outcomes", self.log_id).await?;
        let marks = marks.into_iter().filter(|(_, mark)| *mark >= self.number);
        // A recovery may have counted the range, and a restored older ledger lists it again.
        let alone = destination.ranges_with_own_marks(self.log_id).await?;
        let alone = alone.into_iter().filter(|(_, one)| *one == self.number);
        Ok(marks.chain(alone).map(|(month, _)| month).collect())
    }

    fn rows(&self, month: Month) -> impl Iterator<Item = Mark> {
        let is_last = self.alone.is_empty();
        let alone = self.alone.iter().copied();
        let numbers = alone.chain(is_last.then_some(self.number));
        numbers.map(move |number| Mark {
            key: TallyKey {
                hour: first_hour(month),
                project: String::new(),
                signal: self.log_id.to_string(),
                outcome: "",
                reason: if is_last {
                    String::new()
                } else {
                    number.to_string()
                },
            },
            number,
        })
    }
}

impl Counted {
    pub(crate) fn has(&self, number: Number) -> bool {
        let range = number.range();
        range <= self.before || self.alone.contains(&range)
    }
}

const TOKENS: u32 = 16;
const REFUSED: &str = "refused_by_store";

impl Tally {
    /// The counts as a frame of `outcomes`, unless there are none.
    pub(crate) fn frame(&self) -> Option<Vec<u8>> {
        (!self.counts.is_empty()).then(|| self.frame_of(&self.months(), &[]))
    }

    fn months(&self) -> BTreeSet<Month> {
        self.counts.keys().map(|key| month_of(key.hour)).collect()
    }

    /// The counts of some months, and marks.
    fn frame_of(&self, months: &BTreeSet<Month>, marks: &[Mark]) -> Vec<u8> {
        let counts = self
            .counts
            .iter()
            .filter(|(key, _)| months.contains(&month_of(key.hour)));
        let counts = counts.map(|(key, events)| (key, *events, Number::default()));
        let marks = marks.iter().map(|mark| (&mark.key, 1, mark.number));
        let rows: Vec<(&TallyKey, i64, Number)> = counts.chain(marks).collect();
        let rows = || rows.iter();
        let mut frame = FrameBuilder::new("outcomes", rows().len());
        frame.fixed(
            Kind::DateTime,
            "hour",
            rows().map(|(key, ..)| key.hour.to_le_bytes()),
        );
        frame.symbols("project", rows().map(|(key, ..)| key.project.as_str()));
        frame.symbols("signal", rows().map(|(key, ..)| key.signal.as_str()));
        frame.symbols("outcome", rows().map(|(key, ..)| key.outcome));
        frame.symbols("reason", rows().map(|(key, ..)| key.reason.as_str()));
        frame.fixed(
            Kind::I64,
            "count",
            rows().map(|(_, events, _)| events.to_le_bytes()),
        );
        frame.fixed(
            Kind::U128,
            "source",
            rows().map(|(.., number)| number.value().to_le_bytes()),
        );
        let mut bytes = Vec::new();
        frame.finish(&mut bytes);
        bytes
    }

    /// Adds the counts once, with marks.
    pub(crate) async fn deliver(
        &self,
        destination: &impl Destination,
        marks: &Marks,
        in_doubt: bool,
    ) -> Result<(), Failure> {
        let number = marks.number;
        let mut months = self.months();
        let in_doubt = in_doubt && !is_back(OldFault::TokensAreProof);
        for attempt in 0..TOKENS {
            if in_doubt {
                let counted = marks.months(destination).await?;
                months.retain(|month| !counted.contains(month));
            }
            if months.is_empty() {
                return Ok(());
            }
            let rows: Vec<Mark> = months.iter().flat_map(|month| marks.rows(*month)).collect();
            let bytes = self.frame_of(&months, &rows);
            let insert = Insert {
                table: "outcomes",
                block: Block::join(&[Frame::read(&bytes)?])?,
                token: format!("{number}:outcomes:{attempt}"),
                number: number.range(),
                only: None,
            };
            if in_doubt {
                wait_for_end(destination, number.range()).await?;
            }
            destination.insert(insert).await?;
            if !in_doubt {
                return Ok(());
            }
        }
        Err(Failure::Later(
            "ClickHouse confirmed the counts of outcomes 16 times, but they are not in the table"
                .to_owned(),
        ))
    }

    pub(super) fn add_record(&mut self, record: &Record<'_>, duplicate: bool) {
        for count in &record.outcomes {
            if duplicate && matches!(count.outcome, Outcome::Limited | Outcome::Scrubbed) {
                continue;
            }
            let count = if duplicate {
                Count {
                    outcome: Outcome::Duplicate,
                    reason: "batch",
                    ..*count
                }
            } else {
                *count
            };
            self.add(
                record.received_at,
                record.project,
                count,
                i64::from(count.events),
            );
        }
    }

    pub(super) fn move_to_dead_letter(&mut self, item: &DeadLetter) {
        // Only signals have outcomes; `stacks` and `batches` are not events.
        if Signal::from_name(&item.table) == Signal::Other {
            return;
        }
        self.shift(item, (Outcome::Stored, ""), (Outcome::DeadLetter, REFUSED));
    }

    pub(super) fn move_from_dead_letter(&mut self, item: &DeadLetter, to: Outcome, reason: &str) {
        self.shift(item, (Outcome::DeadLetter, REFUSED), (to, reason));
    }

    fn shift(&mut self, item: &DeadLetter, from: (Outcome, &str), to: (Outcome, &str)) {
        let rows = i64::try_from(item.rows).unwrap_or(i64::MAX);
        for ((outcome, reason), events) in [(from, -rows), (to, rows)] {
            let count = Count {
                signal: &item.table,
                outcome,
                reason,
                events: 0,
            };
            self.add(item.received_at, &item.project, count, events);
        }
    }

    fn add(&mut self, received_at: UnixTime, project: &str, count: Count<'_>, events: i64) {
        let key = TallyKey {
            hour: hour_of(received_at),
            project: project.to_owned(),
            signal: count.signal.to_owned(),
            outcome: count.outcome.as_str(),
            reason: count.reason.to_owned(),
        };
        *self.counts.entry(key).or_default() += events;
    }
}

/// The month of an hour, in seconds since the epoch.
pub(crate) fn month_of(hour: u32) -> Month {
    let time =
        OffsetDateTime::from_unix_timestamp(i64::from(hour)).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    time.year().unsigned_abs() * 100 + u32::from(u8::from(time.month()))
}

/// The first hour of a month, in seconds since the epoch.
fn first_hour(month: Month) -> u32 {
    let year = i32::try_from(month / 100).unwrap_or_default();
    let of_year = u8::try_from(month % 100)
        .ok()
        .and_then(|month| time::Month::try_from(month).ok());
    let first = of_year.and_then(|month| time::Date::from_calendar_date(year, month, 1).ok());
    let seconds = first.map_or(0, |first| first.midnight().assume_utc().unix_timestamp());
    u32::try_from(seconds).unwrap_or_default()
}

/// Returns the start of the hour that contains `time`, in seconds since the epoch (ClickHouse's `DateTime`).
fn hour_of(time: UnixTime) -> u32 {
    u32::try_from(time.floor(HOUR).as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_a_month_and_a_month_a_first_hour() {
        for (month, first) in [
            (197_001, 0),
            (202_611, 1_793_491_200),
            (202_612, 1_796_083_200),
        ] {
            assert_eq!(first_hour(month), first);
            assert_eq!(month_of(first), month);
            assert_eq!(month_of(first + 27 * 86_400), month);
        }
    }
}
