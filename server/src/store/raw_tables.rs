//! The tables whose rows carry the number of their range, and the periods by which ClickHouse partitions them.
//!
//! An INSERT of one block makes one part for each period, all or nothing. So a period of a table has all of a range's rows or none.

use std::collections::BTreeMap;

use crate::records::columns::{Kind, PLAIN, SAME};
use crate::records::native::{BadFrame, Frame};

/// A table with one row per event or batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawTable {
    pub(super) name: &'static str,
    /// The column with the time of a row.
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

/// A year and a month, such as 202611.
pub(super) type Month = u32;

/// The first day of a period, in days since the epoch.
pub(super) type Day = i32;

/// Blocks with fewer rows are not divided: each INSERT costs as much as some thousand rows.
const WORTH_DIVIDING: usize = 10_000;

const MICROS_A_DAY: i64 = 86_400_000_000;
const MICROS_AN_HOUR: i64 = MICROS_A_DAY / 24;

impl RawTable {
    const fn weekly(name: &'static str, time: &'static str) -> Self {
        Self {
            name,
            time,
            period: Period::Week,
        }
    }

    pub(super) fn named(name: &str) -> Option<&'static Self> {
        RAW.iter().find(|table| table.name == name)
    }

    /// The period of a row, in SQL.
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

    /// Returns the hour and the session of a frame's first row, which are a part of the order of most tables. The session is as ClickHouse
    /// compares UUIDs. `None` for a table with another order.
    pub(super) fn hour_and_session(&self, frame: &Frame<'_>) -> Option<(i64, u128)> {
        let [time, session] = frame.columns_named([self.time, "session_id"]).ok()?;
        let ((kind, mut time), (_, mut session)) = time.zip(session)?;
        if kind != Kind::Micros || self.time == "received_at" {
            return None;
        }
        // The first byte says whether all rows have the same value.
        time.u8().ok()?;
        session.u8().ok()?;
        let micros = i64::from_le_bytes(time.array().ok()?);
        let session = u128::from_le_bytes(session.array().ok()?);
        Some((micros.div_euclid(MICROS_AN_HOUR), session))
    }

    /// Divides frames into two blocks without a common period: the largest block, and the rest. A block of one period costs ClickHouse half
    /// as much as a block that it has to divide itself.
    pub(super) fn blocks<'f>(&self, frames: &[Frame<'f>]) -> Result<Vec<Vec<Frame<'f>>>, BadFrame> {
        let rows: usize = frames.iter().map(|frame| frame.rows).sum();
        if rows < WORTH_DIVIDING {
            return Ok(Vec::from([frames.to_vec()]));
        }
        let mut frames_of: BTreeMap<(Day, Day), Vec<usize>> = BTreeMap::new();
        for (index, frame) in frames.iter().enumerate() {
            let periods = self.periods(&[*frame])?;
            let ends = periods.first_key_value().zip(periods.last_key_value());
            if let Some(((first, _), (last, _))) = ends {
                frames_of.entry((*first, *last)).or_default().push(index);
            }
        }
        let mut blocks: Vec<(Day, Vec<usize>)> = Vec::new();
        for ((first, last), indexes) in frames_of {
            match blocks.last_mut() {
                Some((end, block)) if first <= *end => {
                    *end = last.max(*end);
                    block.extend(indexes);
                }
                _ => blocks.push((last, indexes)),
            }
        }
        let rows = |block: &[usize]| -> usize {
            let rows = block.iter().filter_map(|index| frames.get(*index));
            rows.map(|frame| frame.rows).sum()
        };
        blocks.sort_by_key(|(_, block)| std::cmp::Reverse(rows(block)));
        let mut blocks = blocks.into_iter().map(|(_, block)| block);
        let largest = blocks.next().unwrap_or_default();
        let rest = blocks.flatten().collect();
        Ok([largest, rest]
            .into_iter()
            .map(|mut block: Vec<usize>| {
                block.sort_unstable();
                let frames = block.iter().filter_map(|index| frames.get(*index).copied());
                frames.collect()
            })
            .filter(|block: &Vec<_>| !block.is_empty())
            .collect())
    }

    /// Counts the rows of the frames by period.
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

/// Counts the rows of a frame by day.
fn days(frame: &Frame<'_>, time: &str) -> Result<BTreeMap<Day, usize>, BadFrame> {
    let (kind, mut body) = frame.column(time)?.ok_or(BadFrame("no column of times"))?;
    let form = body.u8()?;
    let values = match form {
        SAME => 1,
        PLAIN => frame.rows,
        _ => return Err(BadFrame("a column of times of another form")),
    };
    let mut days = BTreeMap::new();
    let mut run = (0, 0);
    for _ in 0..values {
        let day = match kind {
            Kind::Micros => i64::from_le_bytes(body.array()?).div_euclid(MICROS_A_DAY),
            Kind::Date => i64::from(u16::from_le_bytes(body.array()?)),
            _ => return Err(BadFrame("a column of times of another kind")),
        };
        // Neighbouring rows usually have the same day.
        if day != run.0 {
            add(&mut days, run)?;
            run = (day, 0);
        }
        run.1 += frame.rows / values.max(1);
    }
    add(&mut days, run)?;
    Ok(days)
}

fn add(days: &mut BTreeMap<Day, usize>, (day, rows): (i64, usize)) -> Result<(), BadFrame> {
    if rows > 0 {
        let day = Day::try_from(day).map_err(|_| BadFrame("a time out of bounds"))?;
        *days.entry(day).or_default() += rows;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::FrameBuilder;

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
        let spans = RawTable::named("spans").unwrap().periods(&frames).unwrap();
        assert_eq!(
            spans,
            BTreeMap::from([(20_766, 1), (20_773, 2), (20_780, 1)])
        );
        let batches = RawTable::named("batches")
            .unwrap()
            .periods(&frames)
            .unwrap();
        assert_eq!(batches, BTreeMap::from([(1, 4)]));
        // The test's frames have no session.
        let spans = RawTable::named("spans").unwrap();
        assert_eq!(spans.hour_and_session(&frames[0]), None);
    }

    #[test]
    fn a_large_block_is_divided_so_that_no_period_is_in_two_blocks() {
        let many = |day: i64| frame("spans", &vec![day; WORTH_DIVIDING / 2]);
        let bytes = [
            many(20_773),
            frame("spans", &[20_766]),
            many(20_774),
            frame("spans", &[20_760, 20_780]),
            frame("spans", &[20_751]),
        ];
        let frames: Vec<_> = bytes
            .iter()
            .map(|bytes| Frame::read(bytes).unwrap())
            .collect();
        let spans = RawTable::named("spans").unwrap();
        let rows = |frames: &[Frame<'_>]| {
            let blocks = spans.blocks(frames).unwrap().into_iter();
            let rows = blocks.map(|block| block.iter().map(|frame| frame.rows).collect());
            rows.collect::<Vec<Vec<usize>>>()
        };
        let half = WORTH_DIVIDING / 2;
        // The fourth frame is of the weeks of the first three.
        assert_eq!(rows(&frames), [vec![half, 1, half, 2], vec![1]]);
        let apart = [frames[0], frames[1], frames[2], frames[4]];
        assert_eq!(rows(&apart), [vec![half, half], vec![1, 1]]);
        // A small block stays whole.
        assert_eq!(rows(&[frames[1], frames[4]]), [vec![1, 1]]);
    }
}
