//! The tables whose rows carry the number of their range, and the periods that ClickHouse keeps apart in them.
//!
//! An INSERT of one block makes one part for each period, all or nothing. So a period of a table has all of a range's rows or none.

use std::collections::BTreeMap;

use super::columns::{Kind, PLAIN, SAME};
use super::native::{BadFrame, Frame};

/// A table of one row an event, or a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawTable {
    pub(super) name: &'static str,
    /// When its rows happened.
    pub(super) time: &'static str,
    period: Period,
}

/// `PARTITION BY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Period {
    Day,
    Week,
}

pub(super) const RAW: [RawTable; 10] = [
    RawTable::weekly("spans", "start"),
    RawTable::weekly("frame_windows", "start"),
    RawTable::weekly("janks", "start"),
    RawTable::weekly("page_loads", "start"),
    RawTable::weekly("app_starts", "start"),
    RawTable::weekly("recompositions", "start"),
    RawTable::weekly("metrics", "time"),
    RawTable::weekly("sdk_health", "received_at"),
    RawTable::weekly("traffic", "day"),
    RawTable {
        name: "batches",
        time: "received_at",
        period: Period::Day,
    },
];

/// The first day of a period, in days since the epoch.
pub(super) type Day = i32;

const MICROS_A_DAY: i64 = 86_400_000_000;

impl RawTable {
    const fn weekly(name: &'static str, time: &'static str) -> Self {
        Self {
            name,
            time,
            period: Period::Week,
        }
    }

    pub(super) fn of(name: &str) -> Option<&'static Self> {
        RAW.iter().find(|table| table.name == name)
    }

    /// The period of a row, as SQL says it.
    pub(super) fn period_sql(&self) -> String {
        let time = self.time;
        match self.period {
            Period::Day => format!("toInt32(toDate({time}))"),
            Period::Week => format!("toInt32(toMonday({time}))"),
        }
    }

    /// The period of a day.
    pub(super) fn period(&self, day: Day) -> Day {
        match self.period {
            Period::Day => day,
            // The epoch began on a Thursday.
            Period::Week => day - (day + 3).rem_euclid(7),
        }
    }

    /// How many rows the frames have of each period.
    pub(super) fn periods(&self, frames: &[Frame<'_>]) -> Result<BTreeMap<Day, usize>, BadFrame> {
        let mut rows = BTreeMap::new();
        for frame in frames {
            for (day, count) in days(frame, self.time)? {
                *rows.entry(self.period(day)).or_default() += count;
            }
        }
        Ok(rows)
    }
}

/// How many rows of a frame have their time in a day.
fn days(frame: &Frame<'_>, time: &str) -> Result<BTreeMap<Day, usize>, BadFrame> {
    let (kind, mut body) = frame.column(time)?.ok_or(BadFrame("no column of times"))?;
    let form = body.u8()?;
    let values = match form {
        SAME => 1,
        PLAIN => frame.rows,
        _ => return Err(BadFrame("a column of times of another form")),
    };
    let mut days = BTreeMap::new();
    for _ in 0..values {
        let day = match kind {
            Kind::Micros => i64::from_le_bytes(body.array()?).div_euclid(MICROS_A_DAY),
            Kind::Date => i64::from(u16::from_le_bytes(body.array()?)),
            _ => return Err(BadFrame("a column of times of another kind")),
        };
        let day = Day::try_from(day).map_err(|_| BadFrame("a time out of bounds"))?;
        *days.entry(day).or_default() += frame.rows / values.max(1);
    }
    Ok(days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::FrameBuilder;

    fn frame(table: &str, days: &[i64]) -> Vec<u8> {
        let mut frame = FrameBuilder::new(table, days.len());
        frame.same_text(Kind::Sym, "project", "shop");
        let micros = days
            .iter()
            .map(|day| (day * MICROS_A_DAY + 1).to_le_bytes());
        frame.fixed(Kind::Micros, "start", micros);
        frame.same(Kind::Micros, "received_at", MICROS_A_DAY.to_le_bytes());
        let mut bytes = Vec::new();
        frame.finish(&mut bytes);
        bytes
    }

    #[test]
    fn rows_are_counted_by_the_period_that_clickhouse_puts_them_in() {
        // 2026-11-16 is a Monday, 20,773 days after the epoch.
        let bytes = frame("spans", &[20_772, 20_773, 20_779, 20_780]);
        let frames = [Frame::read(&bytes).unwrap()];
        let spans = RawTable::of("spans").unwrap().periods(&frames).unwrap();
        assert_eq!(
            spans,
            BTreeMap::from([(20_766, 1), (20_773, 2), (20_780, 1)])
        );
        let batches = RawTable::of("batches").unwrap().periods(&frames).unwrap();
        assert_eq!(batches, BTreeMap::from([(1, 4)]));
    }
}
