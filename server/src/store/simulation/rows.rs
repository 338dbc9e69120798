//! Rows in the model of ClickHouse, and how to read them from the blocks that the writer sends.

use std::collections::BTreeMap;

use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use crate::records::columns::{FrameBuilder, Kind, uuid_bytes};
use crate::records::native::{Block, Cursor};
use crate::records::record::{Count, Outcome, RecordBuilder};
use crate::store::number::Number;
use crate::store::raw::{Day, RawTable};

pub(super) const MICROS_A_DAY: i64 = 86_400_000_000;

/// One value of a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Number(u128),
    Text(String),
}

impl Value {
    pub(super) fn number(&self) -> u128 {
        match self {
            Self::Number(number) => *number,
            Self::Text(_) => 0,
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Number(_) => "",
            Self::Text(text) => text,
        }
    }
}

/// A row: values by column name.
pub(super) type Row = BTreeMap<String, Value>;

/// Reads a block of the Native format.
pub(super) fn read(mut block: Block<'_>) -> Vec<Row> {
    let mut bytes = Vec::new();
    while let Some(chunk) = block.next_chunk().unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    let mut cursor = Cursor(&bytes);
    let (columns, count) = (varint(&mut cursor), varint(&mut cursor));
    let mut rows = vec![Row::new(); count];
    for _ in 0..columns {
        let name = text(&mut cursor);
        let kind = text(&mut cursor);
        for (row, value) in rows.iter_mut().zip(column(&mut cursor, &kind, count)) {
            row.insert(name.clone(), value);
        }
    }
    assert!(cursor.0.is_empty(), "a block ends with its last column");
    rows
}

fn column(cursor: &mut Cursor<'_>, kind: &str, rows: usize) -> Vec<Value> {
    let width = match kind {
        "UInt64" | "Int64" | "DateTime64(6)" | "DateTime64(6, 'UTC')" => 8,
        "UInt128" | "UUID" => 16,
        "DateTime" | "DateTime('UTC')" => 4,
        _ if kind.starts_with("LowCardinality") => return symbols(cursor, rows),
        _ => panic!("unknown kind of column: {kind}"),
    };
    let values = cursor.take(width * rows).unwrap().chunks(width);
    let number = |bytes: &[u8]| {
        let mut all = [0; 16];
        all[..width].copy_from_slice(bytes);
        let value = u128::from_le_bytes(all);
        Value::Number(if kind == "UUID" {
            value.rotate_left(64)
        } else {
            value
        })
    };
    values.map(number).collect()
}

fn symbols(cursor: &mut Cursor<'_>, rows: usize) -> Vec<Value> {
    if rows == 0 {
        return Vec::new();
    }
    let word = |cursor: &mut Cursor<'_>| u64::from_le_bytes(cursor.array().unwrap());
    let (_version, flags, keys) = (word(cursor), word(cursor), word(cursor));
    let keys: Vec<String> = (0..keys).map(|_| text(cursor)).collect();
    assert_eq!(word(cursor), rows as u64);
    let width = 1 << (flags & 0xff);
    let indexes = cursor.take(width * rows).unwrap().chunks(width);
    let key = |index: &[u8]| {
        let mut all = [0; 8];
        all[..width].copy_from_slice(index);
        Value::Text(keys[u64::from_le_bytes(all) as usize].clone())
    };
    indexes.map(key).collect()
}

fn varint(cursor: &mut Cursor<'_>) -> usize {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = cursor.u8().unwrap();
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn text(cursor: &mut Cursor<'_>) -> String {
    String::from_utf8(cursor.string().unwrap().to_vec()).unwrap()
}

/// The period of a raw row.
pub(super) fn period_of(table: &RawTable, row: &Row) -> Day {
    let micros = row[table.time].number() as i64;
    table.period(micros.div_euclid(MICROS_A_DAY) as Day)
}

/// Returns the number in a raw row.
pub(super) fn number_of(row: &Row) -> Number {
    Number::from_value(row["range_id"].number())
}

/// An event of a device.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) table: &'static str,
    /// Microseconds since the epoch.
    pub(super) at: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) id: Uuid,
    pub(super) project: &'static str,
    pub(super) split_from: Vec<Uuid>,
    pub(super) events: Vec<Event>,
}

impl Batch {
    /// Encodes the record that the server writes to its log. A newer version has one more column.
    pub(super) fn record(&self, received_at: i64, is_newer: bool) -> Vec<u8> {
        let mut record = RecordBuilder::new(
            self.project,
            self.id,
            &self.split_from,
            UnixTime::from_micros(received_at),
        );
        let of = |table: &str| -> Vec<&Event> {
            let events = self.events.iter();
            events.filter(|event| event.table == table).collect()
        };
        let tables = super::store::EVENTS.map(|table| (table, of(table)));
        for (table, events) in tables.iter().filter(|(_, events)| !events.is_empty()) {
            record.count(Count {
                signal: table,
                outcome: Outcome::Stored,
                reason: "",
                events: events.len() as u32,
            });
        }
        // Some requests have the events of two sessions, in a frame each.
        let sessions = if self.id.as_u128().is_multiple_of(3) {
            2
        } else {
            1
        };
        for (table, events) in &tables {
            for events in events.chunks(events.len().div_ceil(sessions).max(1)) {
                record.frame(self.frame(table, events, is_newer));
            }
        }
        let mut frame = FrameBuilder::new("batches", 1);
        frame.same_text(Kind::Sym, "project", self.project);
        frame.same(Kind::Uuid, "batch_id", uuid_bytes(self.id.as_u128()));
        frame.same(Kind::Micros, "received_at", received_at.to_le_bytes());
        record.frame(frame);
        record.finish()
    }

    fn frame(&self, table: &'static str, events: &[&Event], is_newer: bool) -> FrameBuilder {
        let mut frame = FrameBuilder::new(table, events.len());
        frame.same_text(Kind::Sym, "project", self.project);
        let time = RawTable::named(table).unwrap().time;
        let times = events.iter().map(|event| event.at.to_le_bytes());
        frame.fixed(Kind::Micros, time, times);
        let ids = events.iter().map(|event| event.id.to_le_bytes());
        frame.fixed(Kind::U64, "id", ids);
        if is_newer {
            frame.same(Kind::U64, "added", 7_u64.to_le_bytes());
        }
        frame
    }

    /// Splits the batch into two halves. Each attempt gives the halves the same ids.
    pub(super) fn halves(&self) -> Option<[Self; 2]> {
        let middle = self.events.len() / 2;
        if middle == 0 {
            return None;
        }
        let mut split_from = self.split_from.clone();
        split_from.push(self.id);
        let half = |which: u128, events: &[Event]| Self {
            id: Uuid::from_u128(
                self.id
                    .as_u128()
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(which),
            ),
            project: self.project,
            split_from: split_from.clone(),
            events: events.to_vec(),
        };
        let (first, second) = self.events.split_at(middle);
        Some([half(1, first), half(2, second)])
    }
}
