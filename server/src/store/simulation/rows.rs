//! Rows in the model of ClickHouse, and how to read them from the blocks that the writer sends.

use std::collections::BTreeMap;

use crate::records::native::{Block, Cursor};
use crate::store::range_number::Number;
use crate::store::raw_tables::{Day, RawTable};

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
