//! Columnar frames: the rows of one table from one batch, in the form that the log stores and the writer joins.
//!
//! A frame contains its schema (table, column names, kinds), so the server can read a log of an older version. Columns are encoded as in ClickHouse's
//! Native format. Dictionary indexes and list offsets depend on the other frames of a block, so `native` renumbers them when it joins frames.
//! No code here parses an event.
//!
//! ```text
//! frame  = schema_len u32, schema, rows u32, column × n
//! schema = table name, n u16, (kind u8, column name) × n       names are u8 length + bytes
//! column = len u32, body
//! body   = 0, value                                            every row the same
//!        | 1, values                                           fixed width or strings, row after row;
//!                                                              where some may be missing, a byte a row before them
//!        | 2, dict_len u32, string × dict_len, width u8, index × rows        symbols
//!        | 3, count u32 × rows, inner body (len u32, body) × inner columns   lists and maps
//!        | 4                                                   lists and maps, all empty
//! ```
//! Integers are little-endian; a string is a varint length and its bytes.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The type of a column. The number is part of the log's format: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Bool = 1,
    U8 = 2,
    U16 = 3,
    U32 = 4,
    U64 = 5,
    U128 = 15,
    I32 = 6,
    I64 = 7,
    F64 = 8,
    Micros = 9,
    Date = 10,
    Uuid = 11,
    /// Seconds since the epoch.
    DateTime = 14,
    Str = 12,
    Sym = 13,
    U16List = 20,
    U32List = 21,
    U64List = 22,
    I32List = 23,
    MicrosList = 24,
    StrList = 25,
    SymList = 26,
    SymStrMap = 30,
    U32U32Map = 31,
    U32OrNull = 40,
}

/// How the values of a column are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Bytes per value.
    Fixed(usize),
    Str,
    Sym,
    /// Bytes per value. Before the values, a byte per row marks the missing ones.
    OrNull(usize),
    /// Rows with several values. A map is a list of two columns.
    List(&'static [Self]),
}

impl Kind {
    pub const ALL: [Self; 25] = [
        Self::Bool,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::U128,
        Self::I32,
        Self::I64,
        Self::F64,
        Self::Micros,
        Self::Date,
        Self::Uuid,
        Self::DateTime,
        Self::Str,
        Self::Sym,
        Self::U16List,
        Self::U32List,
        Self::U64List,
        Self::I32List,
        Self::MicrosList,
        Self::StrList,
        Self::SymList,
        Self::SymStrMap,
        Self::U32U32Map,
        Self::U32OrNull,
    ];

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }

    /// The type in the INSERT. The tables declare the same type, so ClickHouse converts nothing.
    pub const fn sql_type(self) -> &'static str {
        match self {
            Self::Bool => "Bool",
            Self::U8 => "UInt8",
            Self::U16 => "UInt16",
            Self::U32 => "UInt32",
            Self::U64 => "UInt64",
            Self::U128 => "UInt128",
            Self::I32 => "Int32",
            Self::I64 => "Int64",
            Self::F64 => "Float64",
            Self::Micros => "DateTime64(6, 'UTC')",
            Self::Date => "Date",
            Self::Uuid => "UUID",
            Self::DateTime => "DateTime('UTC')",
            Self::Str => "String",
            Self::Sym => "LowCardinality(String)",
            Self::U16List => "Array(UInt16)",
            Self::U32List => "Array(UInt32)",
            Self::U64List => "Array(UInt64)",
            Self::I32List => "Array(Int32)",
            Self::MicrosList => "Array(DateTime64(6, 'UTC'))",
            Self::StrList => "Array(String)",
            Self::SymList => "Array(LowCardinality(String))",
            Self::SymStrMap => "Map(LowCardinality(String), String)",
            Self::U32U32Map => "Map(UInt32, UInt32)",
            Self::U32OrNull => "Nullable(UInt32)",
        }
    }

    pub const fn layout(self) -> Layout {
        match self {
            Self::Bool | Self::U8 => Layout::Fixed(1),
            Self::U16 | Self::Date => Layout::Fixed(2),
            Self::U32 | Self::I32 | Self::DateTime => Layout::Fixed(4),
            Self::U64 | Self::I64 | Self::F64 | Self::Micros => Layout::Fixed(8),
            Self::Uuid | Self::U128 => Layout::Fixed(16),
            Self::Str => Layout::Str,
            Self::Sym => Layout::Sym,
            Self::U16List => Layout::List(&[Layout::Fixed(2)]),
            Self::U32List | Self::I32List => Layout::List(&[Layout::Fixed(4)]),
            Self::U64List | Self::MicrosList => Layout::List(&[Layout::Fixed(8)]),
            Self::StrList => Layout::List(&[Layout::Str]),
            Self::SymList => Layout::List(&[Layout::Sym]),
            Self::SymStrMap => Layout::List(&[Layout::Sym, Layout::Str]),
            Self::U32U32Map => Layout::List(&[Layout::Fixed(4), Layout::Fixed(4)]),
            Self::U32OrNull => Layout::OrNull(4),
        }
    }
}

pub(crate) const SAME: u8 = 0;
pub(crate) const PLAIN: u8 = 1;
pub(crate) const SYMBOLS: u8 = 2;
pub(crate) const LISTS: u8 = 3;
pub(crate) const EMPTY: u8 = 4;

/// ClickHouse stores a UUID as two little-endian halves, the high one first.
pub(crate) fn uuid_bytes(value: u128) -> [u8; 16] {
    value.rotate_left(64).to_le_bytes()
}

/// Appends a varint length and the bytes.
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Builds one frame, column by column. The order of the calls is the order of the table's column list.
pub struct FrameBuilder {
    schema: Vec<u8>,
    columns: u16,
    columns_at: usize,
    data: Vec<u8>,
    rows: usize,
    symbols: SymbolTable,
}

impl FrameBuilder {
    pub fn new(table: &str, rows: usize) -> Self {
        let mut schema = Vec::with_capacity(1024);
        put_name(&mut schema, table);
        let columns_at = schema.len();
        schema.extend_from_slice(&[0, 0]);
        Self {
            schema,
            columns: 0,
            columns_at,
            data: Vec::with_capacity(256 + rows * 128),
            rows,
            symbols: SymbolTable::default(),
        }
    }

    /// Finishes the frame and appends it to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.schema[self.columns_at..self.columns_at + 2]
            .copy_from_slice(&self.columns.to_le_bytes());
        put_len(out, self.schema.len());
        out.extend_from_slice(&self.schema);
        put_len(out, self.rows);
        out.extend_from_slice(&self.data);
    }

    /// Returns the names and kinds of the columns so far. Tests compare them with the migrations.
    pub fn schema(&self) -> &[u8] {
        &self.schema
    }

    pub fn same<const N: usize>(&mut self, kind: Kind, name: &str, value: [u8; N]) {
        debug_assert_eq!(kind.layout(), Layout::Fixed(N), "column {name}");
        self.column(kind, name, |data, _| {
            data.push(SAME);
            data.extend_from_slice(&value);
        });
    }

    pub fn same_text(&mut self, kind: Kind, name: &str, value: &str) {
        debug_assert!(
            matches!(kind.layout(), Layout::Str | Layout::Sym),
            "column {name}"
        );
        self.column(kind, name, |data, _| {
            data.push(SAME);
            put_string(data, value.as_bytes());
        });
    }

    pub fn fixed<const N: usize>(
        &mut self,
        kind: Kind,
        name: &str,
        values: impl Iterator<Item = [u8; N]>,
    ) {
        debug_assert_eq!(kind.layout(), Layout::Fixed(N), "column {name}");
        self.column(kind, name, |data, _| put_fixed(data, values));
    }

    pub fn optional_u32s(&mut self, name: &str, values: impl Iterator<Item = Option<u32>> + Clone) {
        self.column(Kind::U32OrNull, name, |data, _| {
            data.push(PLAIN);
            data.extend(values.clone().map(|value| u8::from(value.is_none())));
            data.extend(values.flat_map(|value| value.unwrap_or_default().to_le_bytes()));
        });
    }

    pub fn strings<'s>(&mut self, name: &str, values: impl Iterator<Item = &'s str>) {
        self.column(Kind::Str, name, |data, _| put_strings(data, values));
    }

    /// Adds a column with few distinct strings (ClickHouse: `LowCardinality`).
    pub fn symbols<'s>(&mut self, name: &str, values: impl Iterator<Item = &'s str>) {
        self.column(Kind::Sym, name, |data, symbols| symbols.put(data, values));
    }

    /// Adds a list or map: the number of values in each row, then the inner columns over all rows.
    pub fn lists(
        &mut self,
        kind: Kind,
        name: &str,
        counts: impl Iterator<Item = usize>,
        inner: impl FnOnce(&mut Inner<'_>),
    ) {
        debug_assert!(matches!(kind.layout(), Layout::List(_)), "column {name}");
        self.column(kind, name, |data, symbols| {
            let start = data.len();
            data.push(LISTS);
            let mut any = false;
            for count in counts {
                any |= count > 0;
                put_len(data, count);
            }
            if any {
                inner(&mut Inner { data, symbols });
            } else {
                data.truncate(start);
                data.push(EMPTY);
            }
        });
    }

    fn column(
        &mut self,
        kind: Kind,
        name: &str,
        body: impl FnOnce(&mut Vec<u8>, &mut SymbolTable),
    ) {
        self.schema.push(kind as u8);
        put_name(&mut self.schema, name);
        self.columns += 1;
        let data = &mut self.data;
        let symbols = &mut self.symbols;
        put_sized(data, |data| body(data, symbols));
    }
}

/// The inner columns of a list or map, in the order of its layout.
pub struct Inner<'d> {
    data: &'d mut Vec<u8>,
    symbols: &'d mut SymbolTable,
}

impl Inner<'_> {
    pub fn fixed<const N: usize>(&mut self, values: impl Iterator<Item = [u8; N]>) {
        put_sized(self.data, |data| put_fixed(data, values));
    }

    pub fn strings<'s>(&mut self, values: impl Iterator<Item = &'s str>) {
        put_sized(self.data, |data| put_strings(data, values));
    }

    pub fn symbols<'s>(&mut self, values: impl Iterator<Item = &'s str>) {
        let symbols = &mut *self.symbols;
        put_sized(self.data, |data| symbols.put(data, values));
    }
}

fn put_fixed<const N: usize>(data: &mut Vec<u8>, values: impl Iterator<Item = [u8; N]>) {
    data.push(PLAIN);
    for value in values {
        data.extend_from_slice(&value);
    }
}

fn put_strings<'s>(data: &mut Vec<u8>, values: impl Iterator<Item = &'s str>) {
    data.push(PLAIN);
    for value in values {
        put_string(data, value.as_bytes());
    }
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    debug_assert!(name.len() < 256, "a column or table name");
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    // A frame comes from one request, far below 4 GiB.
    out.extend_from_slice(&(len as u32).to_le_bytes());
}

fn put_sized(data: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = data.len();
    put_len(data, 0);
    body(data);
    let len = (data.len() - at - 4) as u32;
    data[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

/// Numbers the distinct strings of one column. Reused between columns to save allocations.
#[derive(Default)]
struct SymbolTable {
    hasher: DefaultHashBuilder,
    /// The index of a string in the dictionary, and the string's hash.
    table: HashTable<(u32, u64)>,
    indexes: Vec<u32>,
    /// For each string of the dictionary, the index of the string that followed it last. Events of one place in the code have the same names
    /// of attributes in the same order, so most strings are found without a hash.
    followers: Vec<u32>,
}

impl SymbolTable {
    fn put<'s>(&mut self, data: &mut Vec<u8>, values: impl Iterator<Item = &'s str>) {
        self.table.clear();
        self.indexes.clear();
        self.followers.clear();
        let start = data.len();
        data.push(SYMBOLS);
        put_len(data, 0);
        let mut dictionary: Vec<&'s str> = Vec::new();
        let mut last: Option<(&'s str, u32)> = None;
        for value in values {
            if let Some((text, index)) = last
                && text == value
            {
                self.indexes.push(index);
                continue;
            }
            let before = last.map(|(_, index)| index as usize);
            let guess = before.and_then(|before| self.followers.get(before).copied());
            let index = match guess {
                Some(index) if dictionary.get(index as usize) == Some(&value) => index,
                _ => self.index(value, &mut dictionary, data),
            };
            if let Some(follower) = before.and_then(|before| self.followers.get_mut(before)) {
                *follower = index;
            }
            last = Some((value, index));
            self.indexes.push(index);
        }
        if let [only] = dictionary.as_slice() {
            data.truncate(start);
            data.push(SAME);
            put_string(data, only.as_bytes());
            return;
        }
        data[start + 1..start + 5].copy_from_slice(&(dictionary.len() as u32).to_le_bytes());
        put_indexes(data, &self.indexes, dictionary.len());
    }

    /// Returns the index of a string, which is added to the dictionary if it is new.
    fn index<'s>(
        &mut self,
        value: &'s str,
        dictionary: &mut Vec<&'s str>,
        data: &mut Vec<u8>,
    ) -> u32 {
        let hash = self.hasher.hash_one(value);
        let found = self
            .table
            .find(hash, |(at, _)| dictionary[*at as usize] == value);
        if let Some((index, _)) = found {
            return *index;
        }
        let index = dictionary.len() as u32;
        dictionary.push(value);
        self.followers.push(0);
        put_string(data, value.as_bytes());
        self.table
            .insert_unique(hash, (index, hash), |(_, hash)| *hash);
        index
    }
}

/// Appends the width of an index and the indexes, in the fewest bytes that can number `count` symbols.
pub(crate) fn put_indexes(data: &mut Vec<u8>, indexes: &[u32], count: usize) {
    if count <= 1 << 8 {
        data.push(1);
        data.extend(indexes.iter().map(|index| *index as u8));
    } else if count <= 1 << 16 {
        data.push(2);
        data.extend(
            indexes
                .iter()
                .flat_map(|index| (*index as u16).to_le_bytes()),
        );
    } else {
        data.push(4);
        data.extend(indexes.iter().flat_map(|index| index.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_one_index_whatever_comes_before_it() {
        let values = ["k", "v", "k", "v", "v", "w", "k", "w", "v", "k", "v"];
        let mut frame = FrameBuilder::new("spans", values.len());
        frame.symbols("name", values.into_iter());
        let mut bytes = Vec::new();
        frame.finish(&mut bytes);
        let expected = b"\x03\0\0\0\x01k\x01v\x01w\x01\0\x01\0\x01\x01\x02\0\x02\x01\0\x01";
        assert!(bytes.ends_with(expected), "{bytes:?}");
    }
}
