//! The form in which a source map is searched: the places of the script in order, each with its original place and function.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::words::{TextWriter, Texts, WORD, Words};

/// The last byte is the version of the table.
const MAGIC: [u8; 8] = *b"uj-js\0\0\x01";
/// After the magic: the number of rows, and of the bytes of the texts.
const HEADER_BYTES: usize = MAGIC.len() + 2 * WORD;
/// Line and column in the script, file, line in the file, function.
const PLACE: usize = 5;

/// Stands for a file that is not there.
const NO_TEXT: u32 = u32::MAX;
const UNKNOWN: u32 = u32::MAX;
const ANONYMOUS: u32 = u32::MAX - 1;

/// Texts of functions begin with this if the name is the one in the script.
pub(super) const WRITTEN: char = '\0';

/// The function around a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function<'n> {
    Named(&'n str),
    /// The name in the script, for which the map has no other one. Minifiers change it, so a name from the device counts more.
    Written(&'n str),
    /// A function without a name.
    Anonymous,
    /// Nothing tells the function, or the place is outside of all functions.
    Unknown,
}

impl<'n> Function<'n> {
    pub(super) fn of_text(text: &'n str) -> Self {
        match text.strip_prefix(WRITTEN) {
            Some(name) => Self::Written(name),
            None => Self::Named(text),
        }
    }
}

/// A place in the source. Lines count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Original<'d> {
    pub(super) file: &'d str,
    pub(super) line: u32,
    pub(super) function: Function<'d>,
}

/// Places under construction, in the order of the script.
#[derive(Default)]
pub(super) struct PlaceWriter {
    rows: Vec<[u32; PLACE]>,
    texts: TextWriter<'static>,
}

impl PlaceWriter {
    /// Adds a place of the script, lines and columns from 0. `None`: from here on, the script has no original.
    pub(super) fn add(&mut self, (line, column): (u32, u32), original: Option<&Original<'_>>) {
        let [file, original_line, function] = match original {
            None => [NO_TEXT, u32::MAX, UNKNOWN],
            Some(original) => [
                self.text(original.file),
                original.line,
                match original.function {
                    Function::Named(name) => self.text(name),
                    Function::Written(name) => self.text(&format!("{WRITTEN}{name}")),
                    Function::Anonymous => ANONYMOUS,
                    Function::Unknown => UNKNOWN,
                },
            ],
        };
        let row = [line, column, file, original_line, function];
        if let Some([last_line, last_column, last @ ..]) = self.rows.last() {
            let is_repeated = *last == [file, original_line, function];
            // A place is valid until the next one, and until the end of its line.
            if *last_line == line && (is_repeated || *last_column == column) {
                return;
            }
        }
        self.rows.push(row);
    }

    fn text(&mut self, text: &str) -> u32 {
        self.texts.add(Cow::Owned(text.to_owned()))
    }

    pub(super) fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        let is_in_order =
            |rows: &[[u32; PLACE]]| rows.is_sorted_by_key(|[line, column, ..]| (*line, *column));
        if !is_in_order(&self.rows) {
            self.rows.sort_by_key(|[line, column, ..]| (*line, *column));
        }
        let texts = self.texts.into_bytes();
        let mut out = io::BufWriter::new(out);
        out.write_all(&MAGIC)?;
        for size in [self.rows.len(), texts.len()] {
            let size = u32::try_from(size).map_err(|_too_large| {
                io::Error::new(io::ErrorKind::FileTooLarge, "the source map is too large")
            })?;
            out.write_all(&size.to_le_bytes())?;
        }
        for word in self.rows.iter().flatten() {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&texts)?;
        out.flush()
    }
}

/// A file that [`PlaceWriter`] has written.
#[derive(Clone, Copy)]
pub(crate) struct Places<'d> {
    rows: Words<'d>,
    texts: Texts<'d>,
}

impl<'d> Places<'d> {
    /// Returns the places, or `None` if this is no file of them. Reads the header only.
    pub(crate) fn read(data: &'d [u8]) -> Option<Self> {
        let sizes = data.get(..HEADER_BYTES)?.strip_prefix(&MAGIC)?;
        let (sizes, _) = sizes.as_chunks::<WORD>();
        let [rows, texts] = *sizes.first_chunk::<2>()?;
        let bytes = (u32::from_le_bytes(rows) as usize).checked_mul(PLACE * WORD)?;
        let (rows, rest) = data.get(HEADER_BYTES..)?.split_at_checked(bytes)?;
        (u32::from_le_bytes(texts) as usize == rest.len()).then_some(Self {
            rows: Words::new(rows),
            texts: Texts::new(rest),
        })
    }

    /// Returns the original of a place in the script, line and column from 0.
    pub(super) fn find(&self, line: u32, column: u32) -> Option<Original<'d>> {
        let (mut from, mut to) = (0, self.rows.rows(PLACE));
        while from < to {
            let middle = from + (to - from) / 2;
            let [row_line, row_column, ..] = self.rows.row::<PLACE>(middle)?;
            match (row_line, row_column) <= (line, column) {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        let [row_line, _, file, original_line, function] = self.rows.row(from.checked_sub(1)?)?;
        if row_line != line || file == NO_TEXT {
            return None;
        }
        Some(Original {
            file: self.texts.text(file),
            line: original_line,
            function: match function {
                UNKNOWN => Function::Unknown,
                ANONYMOUS => Function::Anonymous,
                name => Function::of_text(self.texts.text(name)),
            },
        })
    }
}
