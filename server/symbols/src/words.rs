//! Tables of numbers, and the texts that the numbers refer to, as lookup files contain them.
//!
//! All reads are checked, so that a damaged file leads to missing answers, never to a panic.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

pub(crate) const WORD: usize = size_of::<u32>();

/// A table of a file.
#[derive(Clone, Copy, Default)]
pub(crate) struct Words<'d>(&'d [[u8; WORD]]);

impl<'d> Words<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    pub(crate) fn get(self, index: u32) -> Option<u32> {
        self.0
            .get(index as usize)
            .map(|word| u32::from_le_bytes(*word))
    }

    pub(crate) fn slice(self, words: Range<u32>) -> Option<impl Iterator<Item = u32>> {
        let words = self.0.get(words.start as usize..words.end as usize)?;
        Some(words.iter().copied().map(u32::from_le_bytes))
    }

    pub(crate) fn row<const COLUMNS: usize>(self, row: u32) -> Option<[u32; COLUMNS]> {
        let start = (row as usize).checked_mul(COLUMNS)?;
        let words = self.0.get(start..)?.first_chunk::<COLUMNS>()?;
        Some(words.map(u32::from_le_bytes))
    }

    pub(crate) fn rows(self, columns: usize) -> u32 {
        u32::try_from(self.0.len() / columns).unwrap_or(u32::MAX)
    }
}

/// The texts of a file: the length of each, then its bytes. A number is the place of a text.
#[derive(Clone, Copy)]
pub(crate) struct Texts<'d>(&'d [u8]);

impl<'d> Texts<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(self, text: u32) -> &'d [u8] {
        let find = || {
            let (length, rest) = self.0.get(text as usize..)?.split_first_chunk()?;
            rest.get(..u32::from_le_bytes(*length) as usize)
        };
        find().unwrap_or_default()
    }

    pub(crate) fn text(self, text: u32) -> &'d str {
        std::str::from_utf8(self.bytes(text)).unwrap_or_default()
    }
}

/// Texts under construction, each once.
#[derive(Debug, Default)]
pub(crate) struct TextWriter<'d> {
    places: HashMap<Cow<'d, str>, u32>,
    bytes: Vec<u8>,
}

impl<'d> TextWriter<'d> {
    /// Returns the place of a text.
    pub(crate) fn add(&mut self, text: Cow<'d, str>) -> u32 {
        if let Some(place) = self.places.get(&text) {
            return *place;
        }
        let place = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(text.as_bytes());
        self.places.insert(text, place);
        place
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
