//! Joins the frames of one table into one block of ClickHouse's Native format.
//!
//! Fixed-width values and strings are copied whole. Dictionaries are merged and their indexes renumbered. List offsets are accumulated. An INSERT
//! sends one block, from which ClickHouse makes one part per partition, all or nothing.

use hashbrown::HashMap;

use super::columns::{
    EMPTY, Kind, LISTS, Layout, PLAIN, SAME, SYMBOLS, put_indexes, put_string, put_varint,
};

/// A frame that cannot be decoded: damage that the log's checksums missed, or a bug.
#[derive(Debug, thiserror::Error)]
#[error("cannot decode a frame of the ingest log: {0}")]
pub struct BadFrame(pub(crate) &'static str);

/// One frame, split but not decoded.
#[derive(Clone, Copy)]
pub struct Frame<'f> {
    bytes: &'f [u8],
    schema: &'f [u8],
    pub table: &'f str,
    pub rows: usize,
    data: &'f [u8],
}

impl<'f> Frame<'f> {
    /// Reads a frame that fills `bytes`.
    pub fn read(bytes: &'f [u8]) -> Result<Self, BadFrame> {
        let mut cursor = Cursor(bytes);
        let schema = cursor.sized()?;
        let rows = cursor.len()?;
        let table = Cursor(schema).name()?;
        Ok(Self {
            bytes,
            schema,
            table,
            rows,
            data: cursor.0,
        })
    }

    /// Returns the frame as it is in the log.
    pub fn bytes(&self) -> &'f [u8] {
        self.bytes
    }

    /// Returns the table and columns. Frames with equal keys can be joined.
    pub fn key(&self) -> &'f [u8] {
        self.schema
    }

    /// Returns the kind of a column, and its values as in the log.
    pub(crate) fn column(&self, name: &str) -> Result<Option<(Kind, Cursor<'f>)>, BadFrame> {
        let [column] = self.columns_named([name])?;
        Ok(column)
    }

    /// Returns the kinds of some columns, and their values as in the log.
    pub(crate) fn columns_named<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Option<(Kind, Cursor<'f>)>; N], BadFrame> {
        let mut found = [None; N];
        let mut rest = Cursor(self.data);
        let mut columns = self.columns()?;
        while found.iter().any(Option::is_none)
            && let Some(column) = columns.next()
        {
            let (kind, one) = column?;
            let values = rest.sized()?;
            let mut wanted = names.iter().zip(&mut found);
            if let Some((_, column)) = wanted.find(|(name, _)| **name == one) {
                *column = Some((kind, Cursor(values)));
            }
        }
        Ok(found)
    }

    /// Returns the kinds and names of the columns.
    pub fn columns(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Kind, &'f str), BadFrame>> + use<'f>, BadFrame> {
        let mut cursor = Cursor(self.schema);
        cursor.name()?;
        let count = cursor.u16()?;
        Ok((0..count).map(move |_| {
            let kind = Kind::from_code(cursor.u8()?).ok_or(BadFrame("unknown kind of column"))?;
            Ok((kind, cursor.name()?))
        }))
    }
}

/// The frames of one table and column list, ready to be written a column at a time.
pub(crate) struct Block<'f> {
    columns: Vec<(Kind, &'f str)>,
    parts: Vec<Part<'f>>,
    rows: usize,
    next: usize,
    /// An additional column with the same number in each row.
    number: Option<(&'static str, Kind, Vec<u8>)>,
}

struct Part<'f> {
    rows: usize,
    rest: Cursor<'f>,
}

impl<'f> Block<'f> {
    /// Joins frames, which must all have the same key.
    pub(crate) fn join(frames: &[Frame<'f>]) -> Result<Self, BadFrame> {
        let first = frames.first().ok_or(BadFrame("no frames"))?;
        let parts: Vec<_> = frames
            .iter()
            .map(|frame| Part {
                rows: frame.rows,
                rest: Cursor(frame.data),
            })
            .collect();
        let rows = parts.iter().map(|part| part.rows).sum();
        Ok(Self {
            columns: first.columns()?.collect::<Result<_, _>>()?,
            parts,
            rows,
            next: 0,
            number: None,
        })
    }

    /// Adds a column with the same number in each row.
    pub(crate) fn numbered(mut self, column: &'static str, number: u128) -> Self {
        self.number = Some((column, Kind::U128, number.to_le_bytes().to_vec()));
        self
    }

    /// Like [`Self::numbered`], for a number of 64 bits.
    pub(crate) fn numbered_u64(mut self, column: &'static str, number: u64) -> Self {
        self.number = Some((column, Kind::U64, number.to_le_bytes().to_vec()));
        self
    }

    /// Returns the columns for the INSERT statement: `a, b, c`.
    pub(crate) fn column_list(&self) -> String {
        let names: Vec<String> = self
            .all_columns()
            .map(|(_, name)| format!("`{name}`"))
            .collect();
        names.join(", ")
    }

    /// Returns the columns for the table function `input`: `a UInt8, b String`.
    pub(crate) fn structure(&self) -> String {
        let columns: Vec<String> = self
            .all_columns()
            .map(|(kind, name)| format!("`{name}` {}", kind.sql_type()))
            .collect();
        columns.join(", ")
    }

    fn all_columns(&self) -> impl Iterator<Item = (Kind, &str)> {
        let number = self.number.as_ref().map(|(name, kind, _)| (*kind, *name));
        self.columns.iter().copied().chain(number)
    }

    /// Returns the next piece of the block, or `None` after the last column.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, BadFrame> {
        let mut out = Vec::with_capacity(64 + self.rows * 8);
        if self.next == 0 {
            let columns = self.columns.len() + usize::from(self.number.is_some());
            put_varint(&mut out, columns as u64);
            put_varint(&mut out, self.rows as u64);
        }
        let Some((kind, name)) = self.columns.get(self.next).copied() else {
            return Ok(self.number.take().map(|(name, kind, number)| {
                put_head(&mut out, kind, name);
                out.extend_from_slice(&number.repeat(self.rows));
                out
            }));
        };
        self.next += 1;
        put_head(&mut out, kind, name);
        let mut pieces = Vec::with_capacity(self.parts.len());
        for part in &mut self.parts {
            pieces.push((part.rows, Cursor(part.rest.sized()?)));
        }
        put_prefix(&mut out, kind.layout());
        put_column(&mut out, kind.layout(), pieces)?;
        Ok(Some(out))
    }
}

fn put_head(out: &mut Vec<u8>, kind: Kind, name: &str) {
    put_string(out, name.as_bytes());
    put_string(out, kind.sql_type().as_bytes());
}

type Piece<'f> = (usize, Cursor<'f>);

/// ClickHouse expects the version of every dictionary before the first value of the column.
fn put_prefix(out: &mut Vec<u8>, layout: Layout) {
    const SHARED_DICTIONARIES_WITH_ADDITIONAL_KEYS: u64 = 1;
    match layout {
        Layout::Sym => {
            out.extend_from_slice(&SHARED_DICTIONARIES_WITH_ADDITIONAL_KEYS.to_le_bytes());
        }
        Layout::List(inner) => inner.iter().for_each(|layout| put_prefix(out, *layout)),
        Layout::Fixed(_) | Layout::OrNull(_) | Layout::Str => {}
    }
}

fn put_column(out: &mut Vec<u8>, layout: Layout, pieces: Vec<Piece<'_>>) -> Result<(), BadFrame> {
    match layout {
        Layout::Fixed(width) => pieces
            .into_iter()
            .try_for_each(|piece| put_fixed(out, width, piece)),
        Layout::OrNull(width) => put_optional(out, width, &pieces),
        Layout::Str => pieces
            .into_iter()
            .try_for_each(|piece| put_strings(out, piece)),
        Layout::Sym => put_symbols(out, pieces),
        Layout::List(inner) => put_lists(out, inner, pieces),
    }
}

fn put_fixed(out: &mut Vec<u8>, width: usize, (rows, mut body): Piece<'_>) -> Result<(), BadFrame> {
    match body.u8()? {
        SAME => {
            let value = body.take(width)?;
            for _ in 0..rows {
                out.extend_from_slice(value);
            }
        }
        PLAIN => out.extend_from_slice(body.take(width * rows)?),
        _ => return Err(BadFrame("unknown encoding of a fixed column")),
    }
    Ok(())
}

/// Appends the null markers of all rows, then all values.
fn put_optional(out: &mut Vec<u8>, width: usize, pieces: &[Piece<'_>]) -> Result<(), BadFrame> {
    for skip_marks in [false, true] {
        for (rows, body) in pieces {
            let mut body = *body;
            if body.u8()? != PLAIN {
                return Err(BadFrame("unknown encoding of an optional column"));
            }
            let marks = body.take(*rows)?;
            out.extend_from_slice(if skip_marks {
                body.take(width * rows)?
            } else {
                marks
            });
        }
    }
    Ok(())
}

fn put_strings(out: &mut Vec<u8>, (rows, mut body): Piece<'_>) -> Result<(), BadFrame> {
    match body.u8()? {
        SAME => {
            for _ in 0..rows {
                out.extend_from_slice(body.0);
            }
        }
        PLAIN => out.extend_from_slice(body.0),
        _ => return Err(BadFrame("unknown encoding of a string column")),
    }
    Ok(())
}

fn put_symbols<'f>(out: &mut Vec<u8>, pieces: Vec<Piece<'f>>) -> Result<(), BadFrame> {
    let total: usize = pieces.iter().map(|(rows, _)| rows).sum();
    if total == 0 {
        return Ok(());
    }
    let mut merged = Merged {
        numbers: HashMap::new(),
        keys: Vec::new(),
    };
    let mut indexes: Vec<u32> = Vec::with_capacity(total);
    for (rows, mut body) in pieces {
        match body.u8()? {
            SAME => {
                let number = merged.number(body.string()?);
                indexes.extend(std::iter::repeat_n(number, rows));
            }
            SYMBOLS => merged.renumber(&mut indexes, rows, body)?,
            _ => return Err(BadFrame("unknown encoding of a symbol column")),
        }
    }
    merged.put(out, &indexes);
    Ok(())
}

/// The dictionary of a block.
struct Merged<'f> {
    numbers: HashMap<&'f [u8], u32>,
    keys: Vec<&'f [u8]>,
}

impl<'f> Merged<'f> {
    fn number(&mut self, key: &'f [u8]) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            (self.keys.len() - 1) as u32
        })
    }

    fn renumber(
        &mut self,
        indexes: &mut Vec<u32>,
        rows: usize,
        mut body: Cursor<'f>,
    ) -> Result<(), BadFrame> {
        const OUTSIDE: BadFrame = BadFrame("an index outside its dictionary");
        let count = body.len()?;
        let mut new_number = Vec::with_capacity(count);
        for _ in 0..count {
            let number = self.number(body.string()?);
            new_number.push(number);
        }
        let width = usize::from(body.u8()?);
        let bytes = body.take(width * rows)?;
        let at = |index: usize| new_number.get(index).copied().ok_or(OUTSIDE);
        match width {
            1 => bytes
                .iter()
                .try_for_each(|byte| at(usize::from(*byte)).map(|number| indexes.push(number))),
            2 => bytes.as_chunks::<2>().0.iter().try_for_each(|pair| {
                at(usize::from(u16::from_le_bytes(*pair))).map(|number| indexes.push(number))
            }),
            4 => bytes.as_chunks::<4>().0.iter().try_for_each(|four| {
                at(u32::from_le_bytes(*four) as usize).map(|number| indexes.push(number))
            }),
            _ => Err(BadFrame("an index of unknown width")),
        }
    }

    /// Appends the column as ClickHouse expects it: flags and index width, dictionary, number of rows, indexes.
    fn put(&self, out: &mut Vec<u8>, indexes: &[u32]) {
        const HAS_ADDITIONAL_KEYS: u64 = 1 << 9;
        let flags_at = out.len();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&(self.keys.len() as u64).to_le_bytes());
        for key in &self.keys {
            put_string(out, key);
        }
        out.extend_from_slice(&(indexes.len() as u64).to_le_bytes());
        let width_at = out.len();
        put_indexes(out, indexes, self.keys.len());
        // The flags contain the index type: the power of two that is the width.
        let power = out.remove(width_at).trailing_zeros();
        out[flags_at..flags_at + 8]
            .copy_from_slice(&(HAS_ADDITIONAL_KEYS | u64::from(power)).to_le_bytes());
    }
}

fn put_lists(out: &mut Vec<u8>, inner: &[Layout], pieces: Vec<Piece<'_>>) -> Result<(), BadFrame> {
    let mut offset = 0_u64;
    let mut filled = Vec::with_capacity(pieces.len());
    for (rows, mut body) in pieces {
        match body.u8()? {
            EMPTY => (0..rows).for_each(|_| out.extend_from_slice(&offset.to_le_bytes())),
            LISTS => {
                let before = offset;
                for _ in 0..rows {
                    offset += body.len()? as u64;
                    out.extend_from_slice(&offset.to_le_bytes());
                }
                filled.push(((offset - before) as usize, body));
            }
            _ => return Err(BadFrame("unknown encoding of a list column")),
        }
    }
    for layout in inner {
        let mut pieces = Vec::with_capacity(filled.len());
        for (values, body) in &mut filled {
            pieces.push((*values, Cursor(body.sized()?)));
        }
        put_column(out, *layout, pieces)?;
    }
    Ok(())
}

/// Reads forward through bytes. Every read fails if the bytes end too soon.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'f>(pub(crate) &'f [u8]);

impl<'f> Cursor<'f> {
    pub(crate) fn take(&mut self, len: usize) -> Result<&'f [u8], BadFrame> {
        let (head, tail) = self
            .0
            .split_at_checked(len)
            .ok_or(BadFrame("unexpected end"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadFrame> {
        let (head, tail) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(BadFrame("unexpected end"))?;
        self.0 = tail;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, BadFrame> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, BadFrame> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn len(&mut self) -> Result<usize, BadFrame> {
        self.array().map(u32::from_le_bytes).map(|len| len as usize)
    }

    pub(crate) fn sized(&mut self) -> Result<&'f [u8], BadFrame> {
        let len = self.len()?;
        self.take(len)
    }

    /// Reads a name: one byte of length, then the text.
    pub(crate) fn name(&mut self) -> Result<&'f str, BadFrame> {
        let len = usize::from(self.u8()?);
        std::str::from_utf8(self.take(len)?).map_err(|_| BadFrame("a name is not valid UTF-8"))
    }

    /// Reads a string: a varint length, then the bytes.
    pub(crate) fn string(&mut self) -> Result<&'f [u8], BadFrame> {
        let mut len = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.u8()?;
            len |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return self.take(len as usize);
            }
        }
        Err(BadFrame("a length has too many bytes"))
    }
}
