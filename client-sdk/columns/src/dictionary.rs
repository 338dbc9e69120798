//! Distinct texts in the order of their first use. Columns refer to them by number.

use std::hash::{BuildHasher, RandomState};

use unjank_protocol::Text;

use crate::faults::Unreadable;
use crate::varint::{put, take};

/// Distinct byte strings that are being collected. The number of each is its place, from 1; the empty one has 0 and is not kept.
#[derive(Clone, Debug)]
pub(crate) struct Dictionary {
    bytes: Vec<u8>,
    /// Where each entry ends in `bytes`, with its hash.
    entries: Vec<(usize, u32)>,
    /// A hash table of numbers; 0 is an empty slot. Its size is a power of two.
    slots: Vec<u32>,
    seed: u64,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            slots: Vec::new(),
            // Texts that collide in one process do not in another.
            seed: RandomState::new().hash_one(0),
        }
    }
}

impl Dictionary {
    /// Returns the entry with this number.
    #[inline]
    fn get(&self, number: u32) -> &[u8] {
        let place = number as usize;
        let end_of = |place: usize| self.entries.get(place).map_or(0, |entry| entry.0);
        match place.checked_sub(1) {
            None => &[],
            Some(place) => {
                let start = place.checked_sub(1).map_or(0, end_of);
                self.bytes.get(start..end_of(place)).unwrap_or_default()
            }
        }
    }

    /// Returns the number of a text. `guess` is a number that it may well have.
    #[inline]
    pub(crate) fn number(&mut self, text: &[u8], guess: u32) -> u32 {
        if is_same(self.get(guess), text) {
            return guess;
        }
        self.find(text).0
    }

    /// Returns the number of a text, and whether it is new.
    pub(crate) fn find(&mut self, text: &[u8]) -> (u32, bool) {
        if text.is_empty() {
            return (0, false);
        }
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = hash(text, self.seed);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while let Some(number) = self.slots.get(at).copied().filter(|number| *number != 0) {
            let entry = self.entries.get(number as usize - 1);
            if entry.is_some_and(|entry| entry.1 == hash) && is_same(self.get(number), text) {
                return (number, false);
            }
            at = (at + 1) & mask;
        }
        self.bytes.extend_from_slice(text);
        self.entries.push((self.bytes.len(), hash));
        let number = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = number;
        }
        (number, true)
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(size, 0);
        for (number, (_, hash)) in (1..).zip(&self.entries) {
            let mut at = *hash as usize & (size - 1);
            while self.slots.get(at).is_some_and(|slot| *slot != 0) {
                at = (at + 1) & (size - 1);
            }
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = number;
            }
        }
    }

    /// Writes the number of entries, their lengths and their bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put(out, self.entries.len() as u64);
        let mut start = 0;
        for (end, _) in &self.entries {
            put(out, (end - start) as u64);
            start = *end;
        }
        out.extend_from_slice(&self.bytes);
    }

    /// Forgets the entries and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.slots.fill(0);
    }
}

/// The words of a text: eight bytes each, the last one with bytes of the one before. Shorter texts are one word.
#[inline]
fn words(text: &[u8]) -> (&[[u8; 8]], u64) {
    let last = match text.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => text
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    (text.as_chunks().0, last)
}

/// Whether two texts are equal. Most are short, and a call of the system's function takes longer than this.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let ((ones, last), (others, other_last)) = (words(one), words(other));
    let mut pairs = ones.iter().zip(others);
    one.len() == other.len()
        && last == other_last
        && pairs.all(|(one, other)| u64::from_le_bytes(*one) == u64::from_le_bytes(*other))
}

/// Several times as fast as the hash of the standard library, and good enough for a table of texts.
#[inline]
fn hash(text: &[u8], seed: u64) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word).wrapping_mul(u128::from(ODD));
        let [low, high] = [product, product >> 64].map(|half| (half & u128::from(u64::MAX)) as u64);
        low ^ high.rotate_left(23)
    };
    let (words, last) = words(text);
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let hash = words.fold(seed ^ text.len() as u64, mix);
    (mix(hash, last) >> 32) as u32
}

/// Reads what [`Dictionary::write`] wrote. Fails if an entry is no text.
pub(crate) fn read(section: &[u8]) -> Result<Vec<&str>, Unreadable> {
    let (count, mut lengths, bytes) = parts(section)?;
    let mut texts = Vec::with_capacity(count + 1);
    texts.push("");
    // Checking all at once costs less than checking each.
    let whole = str::from_utf8(bytes).ok();
    let whole = whole.filter(|_| !bytes.contains(&0));
    let mut start = 0_usize;
    for _ in 0..count {
        let end = next_end(&mut lengths, start, bytes)?;
        // A text may end within a character that the next one completes.
        if let Some(text) = whole.and_then(|whole| whole.get(start..end)) {
            texts.push(text);
        }
        start = end;
    }
    if start != bytes.len() {
        return Err(Unreadable::Damaged);
    }
    match texts.len() > count {
        true => Ok(texts),
        false => Err(Unreadable::NoText),
    }
}

/// Returns the section with U+FFFD in place of all that is no text. `None` if the section is damaged.
pub(crate) fn mended(section: &[u8]) -> Option<Vec<u8>> {
    let (count, mut lengths, bytes) = parts(section).ok()?;
    let (mut out, mut texts) = (Vec::new(), Vec::new());
    put(&mut out, count as u64);
    let mut start = 0;
    for _ in 0..count {
        let end = next_end(&mut lengths, start, bytes).ok()?;
        let text = String::from_utf8_lossy(bytes.get(start..end)?);
        let text = Text::from(&*text);
        put(&mut out, text.len() as u64);
        texts.extend_from_slice(text.as_bytes());
        start = end;
    }
    out.append(&mut texts);
    (start == bytes.len()).then_some(out)
}

/// The number of entries, their lengths, and their bytes. The lengths are followed by the bytes.
fn parts(section: &[u8]) -> Result<(usize, &[u8], &[u8]), Unreadable> {
    let mut lengths = section;
    let count = take(&mut lengths).and_then(|count| usize::try_from(count).ok());
    // The length of each takes a byte at least.
    let count = count.filter(|count| *count <= lengths.len());
    let count = count.ok_or(Unreadable::Damaged)?;
    if count > MOST_TEXTS {
        return Err(Unreadable::TooManyTexts { limit: MOST_TEXTS });
    }
    let mut bytes = lengths;
    for _ in 0..count {
        take(&mut bytes).ok_or(Unreadable::Damaged)?;
    }
    Ok((count, lengths, bytes))
}

/// Takes the next length. Returns where the entry ends that begins at `start`.
fn next_end(lengths: &mut &[u8], start: usize, bytes: &[u8]) -> Result<usize, Unreadable> {
    let length = take(lengths).and_then(|length| usize::try_from(length).ok());
    let end = length.and_then(|length| start.checked_add(length));
    let end = end.filter(|end| *end <= bytes.len());
    end.ok_or(Unreadable::Damaged)
}

/// More texts than a batch within the other limits needs.
const MOST_TEXTS: usize = 1 << 20;
