//! The form in which a mapping is searched: tables of numbers, sorted by obfuscated name, and the texts that they refer to.
//!
//! All reads are checked, so that a damaged file leads to missing answers, never to a panic.

use std::cmp::Ordering;
use std::io::{self, Write};
use std::ops::Range;

use crate::words::{Texts, WORD, Words};

/// The last byte is the version of the tables.
const MAGIC: [u8; 8] = *b"uj-r8\0\0\x01";
/// After the magic: the number of words of each table, and the number of bytes of the texts.
const HEADER_BYTES: usize = MAGIC.len() + 6 * WORD;

/// Stands for a text that is not there.
const NO_TEXT: u32 = u32::MAX;

/// The numbers of a row. `from` and `to` of a list are indexes of rows, or of words.
pub(super) const CLASS: usize = 4;
pub(super) const FILE: usize = 2;
pub(super) const METHOD: usize = 3;
pub(super) const RANGE: usize = 10;

/// The tables under construction, and after that as they are written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Obfuscated name, original name, methods from and to.
    pub(super) classes: Vec<u32>,
    /// Original name of a class, its source file.
    pub(super) files: Vec<u32>,
    /// Obfuscated name, ranges from and to.
    pub(super) methods: Vec<u32>,
    /// See [`LineRange`].
    pub(super) ranges: Vec<u32>,
    /// Notes: the kind, the number of words that follow, the words.
    pub(super) notes: Vec<u32>,
    /// The length of each text, then its bytes.
    pub(super) texts: Vec<u8>,
}

impl Written {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let tables = [
            &self.classes,
            &self.files,
            &self.methods,
            &self.ranges,
            &self.notes,
        ];
        let mut out = io::BufWriter::new(out);
        out.write_all(&MAGIC)?;
        let sizes = tables.map(Vec::len).into_iter().chain([self.texts.len()]);
        for size in sizes {
            let size = u32::try_from(size).map_err(|_too_large| {
                io::Error::new(io::ErrorKind::FileTooLarge, "the mapping is too large")
            })?;
            out.write_all(&size.to_le_bytes())?;
        }
        for word in tables.into_iter().flatten() {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&self.texts)?;
        out.flush()
    }
}

/// How lines of an obfuscated method follow from lines of an original one. A line of the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineRange {
    pub(super) obfuscated: Option<Lines>,
    pub(super) original: Option<Lines>,
    /// The text of the class, if the method is from another one.
    pub(super) class: Option<u32>,
    /// The text of the method's name.
    pub(super) function: u32,
    /// Equal for methods of one class, name and parameters.
    pub(super) signature: u32,
    /// R8 made up the method: nobody wrote it.
    pub(super) is_synthesized: bool,
    /// R8 moved parts of several methods into this one.
    pub(super) is_outline: bool,
    /// Words of notes, from and to.
    pub(super) notes: (u32, u32),
}

/// Lines from and to, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Lines {
    pub(super) fn contain(self, line: u32) -> bool {
        (self.from..=self.to).contains(&line)
    }

    pub(super) fn count(self) -> u64 {
        u64::from(self.to).saturating_sub(u64::from(self.from)) + 1
    }
}

const HAS_OBFUSCATED: u32 = 1;
const HAS_ORIGINAL: u32 = 2;
const SYNTHESIZED: u32 = 4;
const OUTLINE: u32 = 8;

impl LineRange {
    pub(super) fn words(&self) -> [u32; RANGE] {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(self.obfuscated.is_some(), HAS_OBFUSCATED)
            | flag(self.original.is_some(), HAS_ORIGINAL)
            | flag(self.is_synthesized, SYNTHESIZED)
            | flag(self.is_outline, OUTLINE);
        let lines = |lines: Option<Lines>| lines.map_or((0, 0), |lines| (lines.from, lines.to));
        let (obfuscated, original) = (lines(self.obfuscated), lines(self.original));
        [
            flags,
            obfuscated.0,
            obfuscated.1,
            original.0,
            original.1,
            self.class.unwrap_or(NO_TEXT),
            self.function,
            self.signature,
            self.notes.0,
            self.notes.1,
        ]
    }

    fn from_words(words: [u32; RANGE]) -> Self {
        let [
            flags,
            from,
            to,
            original_from,
            original_to,
            class,
            function,
            signature,
            notes,
            notes_to,
        ] = words;
        let is = |flag| flags & flag != 0;
        let lines = |from, to| Lines { from, to };
        Self {
            obfuscated: is(HAS_OBFUSCATED).then_some(lines(from, to)),
            original: is(HAS_ORIGINAL).then_some(lines(original_from, original_to)),
            class: (class != NO_TEXT).then_some(class),
            function,
            signature,
            is_synthesized: is(SYNTHESIZED),
            is_outline: is(OUTLINE),
            notes: (notes, notes_to),
        }
    }
}

/// What R8 notes about a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// For a line of the outline that was called before, the line of this method to look up instead.
    OutlineCallSite(Vec<(u32, u32)>),
    /// If the stack is that of an exception of one of these classes (texts of descriptors), this many inlined functions do not show.
    Rewrite { thrown: Vec<u32>, removed: u32 },
}

const OUTLINE_CALL_SITE: u32 = 1;
const REWRITE: u32 = 2;

impl Note {
    pub(super) fn words(&self) -> Vec<u32> {
        let (kind, content): (u32, Vec<u32>) = match self {
            Self::OutlineCallSite(lines) => (
                OUTLINE_CALL_SITE,
                lines.iter().flat_map(|(from, to)| [*from, *to]).collect(),
            ),
            Self::Rewrite { thrown, removed } => {
                let content = [*removed].into_iter().chain(thrown.iter().copied());
                (REWRITE, content.collect())
            }
        };
        let count = u32::try_from(content.len()).unwrap_or_default();
        [kind, count].into_iter().chain(content).collect()
    }

    fn from_words(kind: u32, content: &[u32]) -> Option<Self> {
        match kind {
            OUTLINE_CALL_SITE => {
                let (pairs, _) = content.as_chunks::<2>();
                let lines = pairs.iter().map(|[from, to]| (*from, *to)).collect();
                Some(Self::OutlineCallSite(lines))
            }
            REWRITE => {
                let (removed, thrown) = content.split_first()?;
                Some(Self::Rewrite {
                    thrown: thrown.to_vec(),
                    removed: *removed,
                })
            }
            _ => None,
        }
    }
}

/// A file of [`Written`] tables.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'d> {
    classes: Words<'d>,
    files: Words<'d>,
    methods: Words<'d>,
    ranges: Words<'d>,
    notes: Words<'d>,
    texts: Texts<'d>,
}

impl<'d> Tables<'d> {
    /// Returns the tables, or `None` if this is no file of them. Reads the header only.
    pub(crate) fn read(data: &'d [u8]) -> Option<Self> {
        let sizes = data.get(..HEADER_BYTES)?.strip_prefix(&MAGIC)?;
        let mut rest = data.get(HEADER_BYTES..)?;
        let (sizes, _) = sizes.as_chunks::<WORD>();
        let mut tables = [Words::default(); 5];
        for (table, words) in tables.iter_mut().zip(sizes) {
            let bytes = (u32::from_le_bytes(*words) as usize).checked_mul(WORD)?;
            let (content, others) = rest.split_at_checked(bytes)?;
            *table = Words::new(content);
            rest = others;
        }
        let texts = u32::from_le_bytes(*sizes.last()?) as usize;
        let [classes, files, methods, ranges, notes] = tables;
        (texts == rest.len()).then_some(Self {
            classes,
            files,
            methods,
            ranges,
            notes,
            texts: Texts::new(rest),
        })
    }

    pub(super) fn text(&self, text: u32) -> &'d str {
        self.texts.text(text)
    }

    /// Returns the original name of a class and its methods.
    pub(super) fn class(&self, obfuscated: &str) -> Option<(&'d str, Range<u32>)> {
        let rows = 0..self.classes.rows(CLASS);
        let [_, original, from, to] = self.find::<CLASS>(self.classes, rows, obfuscated)?;
        Some((self.text(original), from..to))
    }

    /// Returns the source file of a class by its original name.
    pub(super) fn source_file(&self, original: &str) -> Option<&'d str> {
        let rows = 0..self.files.rows(FILE);
        let [_, file] = self.find::<FILE>(self.files, rows, original)?;
        Some(self.text(file))
    }

    /// Returns the ranges of a method of a class.
    pub(super) fn method(&self, methods: Range<u32>, obfuscated: &str) -> Option<Range<u32>> {
        let [_, from, to] = self.find::<METHOD>(self.methods, methods, obfuscated)?;
        Some(from..to)
    }

    pub(super) fn range(&self, row: u32) -> Option<LineRange> {
        self.ranges.row(row).map(LineRange::from_words)
    }

    pub(super) fn notes(&self, range: &LineRange) -> impl Iterator<Item = Note> {
        let (mut at, to) = range.notes;
        std::iter::from_fn(move || {
            if at >= to {
                return None;
            }
            let [kind, count] = [self.notes.get(at)?, self.notes.get(at + 1)?];
            let start = at.checked_add(2)?;
            at = start.checked_add(count)?;
            let content: Vec<u32> = self.notes.slice(start..at)?.collect();
            Note::from_words(kind, &content)
        })
    }

    /// Searches rows that are sorted by the text in their first column.
    fn find<const COLUMNS: usize>(
        &self,
        table: Words<'d>,
        rows: Range<u32>,
        name: &str,
    ) -> Option<[u32; COLUMNS]> {
        let Range {
            start: mut from,
            end: mut to,
        } = rows;
        while from < to {
            let middle = from + (to - from) / 2;
            let row = table.row::<COLUMNS>(middle)?;
            match self.texts.bytes(*row.first()?).cmp(name.as_bytes()) {
                Ordering::Equal => return Some(row),
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
            }
        }
        None
    }
}
