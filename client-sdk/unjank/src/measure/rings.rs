//! Buffers for recorded spans: one ring per thread that records spans, written by that thread without locks and read by the
//! background thread.
//!
//! A ring outlives its thread until it is read, so spans of threads that end are not lost. A ring that is full is replaced by one
//! of twice the size while the client has room. Otherwise, spans go to the queue that all threads share.

use std::collections::VecDeque;
use std::iter::{from_fn, once_with};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::span_record::{Attribute, Extras, SpanRecord};

/// An entry of a ring. Aligned to cache lines, so that it touches no third one.
#[derive(Debug)]
#[repr(align(64))]
enum Slot {
    Span(SpanRecord),
    /// Attributes of the next span, the last ones first. They need no memory that one thread allocates and another frees.
    Attributes([Option<Attribute>; 2]),
}

const _: () = assert!(size_of::<Slot>() <= 128);

/// Number of slots in the first ring of a thread.
const FIRST: usize = 64;

/// The rings of all threads of one client.
pub(crate) struct Rings {
    /// Number of slots that further rings may have.
    free: AtomicUsize,
    /// Size of the largest ring.
    largest: usize,
    readers: Mutex<Readers>,
}

/// State that only the background thread uses. Aligned, so that its changes do not slow down threads that read neighbouring fields.
#[derive(Default)]
#[repr(align(128))]
struct Readers {
    lanes: Vec<Lane>,
    /// The lane that is being read.
    current: usize,
    /// Number of spans to read from it before the next one has its turn, so that a busy thread does not hold up the others.
    left: usize,
    /// Number of lanes that there have been.
    last_id: u64,
    /// Number of calls of [`Rings::pop_or`].
    pops: usize,
}

/// The rings of one thread, the oldest first. Only that one is read, so the spans of a thread stay in order.
struct Lane {
    id: u64,
    rings: VecDeque<Consumer<Slot>>,
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rings")
            .field("free", &self.free)
            .finish_non_exhaustive()
    }
}

impl Rings {
    /// All rings together have at most `most` slots.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            free: AtomicUsize::new(most),
            largest: (most / 2).max(FIRST),
            readers: Mutex::default(),
        }
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a ring of the given size, in a lane or in a new one. Returns `None` if there is no room. Takes a lock, which is never
    /// held for longer than it takes to read one span; a thread creates few rings.
    fn add(&self, size: usize, lane: Option<u64>) -> Option<Writer> {
        if size > self.largest {
            return None;
        }
        let take = |free: usize| free.checked_sub(size);
        let taken = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok()?;
        let (producer, consumer) = RingBuffer::new(size);
        Some(Writer {
            producer,
            lane: self.readers().add(consumer, lane),
            written: 0,
        })
    }

    /// Takes a span, or what waits elsewhere: in turn, so that a flood of spans does not hold up other events.
    pub(crate) fn pop_or<T>(
        &self,
        wrap: impl Fn(SpanRecord) -> T,
        elsewhere: impl Fn() -> Option<T>,
    ) -> Option<T> {
        let mut readers = self.readers();
        readers.pops = readers.pops.wrapping_add(1);
        if readers.pops.is_multiple_of(2)
            && let Some(other) = elsewhere()
        {
            return Some(other);
        }
        match readers.pop(&self.free) {
            Some(item) => Some(wrap(item)),
            None => elsewhere(),
        }
    }
}

impl Readers {
    /// Adds a ring to a lane, and returns the id of the lane.
    fn add(&mut self, ring: Consumer<Slot>, lane: Option<u64>) -> u64 {
        let known = self.lanes.iter_mut().find(|one| Some(one.id) == lane);
        if let Some(lane) = known {
            lane.rings.push_back(ring);
            return lane.id;
        }
        self.last_id = self.last_id.wrapping_add(1);
        self.lanes.push(Lane {
            id: self.last_id,
            rings: VecDeque::from([ring]),
        });
        self.last_id
    }

    fn pop(&mut self, free: &AtomicUsize) -> Option<SpanRecord> {
        // Once around, and back to the first one.
        for _ in 0..=self.lanes.len() {
            if let Some(lane) = self.lanes.get_mut(self.current)
                && self.left > 0
                && let Some(item) = lane.pop(free)
            {
                self.left = self.left.saturating_sub(1);
                return Some(item);
            }
            self.next();
        }
        None
    }

    /// Moves on to the next lane, and removes the current one if its thread has ended.
    fn next(&mut self) {
        self.left = FIRST;
        let lane = self.lanes.get(self.current);
        if lane.is_some_and(|lane| lane.rings.is_empty()) {
            drop(self.lanes.remove(self.current));
        } else {
            self.current = self.current.saturating_add(1);
        }
        if self.current >= self.lanes.len() {
            self.current = 0;
        }
    }
}

impl Lane {
    fn pop(&mut self, free: &AtomicUsize) -> Option<SpanRecord> {
        let mut extras: Option<Box<Extras>> = None;
        while let Some(ring) = self.rings.front_mut() {
            // In this order: nothing is written to a ring after it was abandoned.
            let abandoned = ring.is_abandoned();
            match ring.pop() {
                Ok(Slot::Attributes(pair)) => {
                    let attributes = &mut extras.get_or_insert_default().attributes;
                    attributes.extend(pair.into_iter().flatten());
                }
                Ok(Slot::Span(mut item)) => {
                    item.extras = extras.map(in_order).or(item.extras);
                    return Some(item);
                }
                Err(_) if abandoned => {
                    free.fetch_add(ring.buffer().capacity(), Ordering::Relaxed);
                    drop(self.rings.pop_front());
                }
                Err(_) => return None,
            }
        }
        None
    }
}

/// Puts attributes that were read from a ring into the order in which they were added.
fn in_order(mut extras: Box<Extras>) -> Box<Extras> {
    extras.attributes.reverse();
    extras
}

/// The end of a ring that belongs to the recording thread.
#[derive(Debug)]
pub(crate) struct Writer {
    producer: Producer<Slot>,
    lane: u64,
    /// Number of slots written since the ring was last found less than half full.
    written: usize,
}

impl Writer {
    pub(crate) fn new(rings: &Rings) -> Option<Self> {
        rings.add(FIRST, None)
    }

    /// Takes a span, and returns it if there is no room. If the record still has extras then, they are empty. `hurry` is called when
    /// the ring is half full.
    #[inline]
    pub(crate) fn push(
        &mut self,
        rings: &Rings,
        record: &mut SpanRecord,
        hurry: impl FnOnce(),
    ) -> Option<SpanRecord> {
        if let Some(extras) = record.extras.take_if(|extras| extras.fits_into_slots()) {
            return self.push_with_attributes(rings, (record, extras), hurry);
        }
        let Ok(mut room) = self.producer.write_chunk_uninit(1) else {
            hurry();
            return self.grow(rings, record.take());
        };
        // In place, because `push` moves the record twice.
        if let Some(slot) = room.as_mut_slices().0.first_mut() {
            slot.write(Slot::Span(record.take()));
            #[expect(
                unsafe_code,
                reason = "the compiler does not see that the slot is filled"
            )]
            // SAFETY: the chunk has one slot, and it was just written.
            unsafe {
                room.commit_all();
            }
        }
        self.count(1, hurry);
        None
    }

    /// Takes a span and its attributes, all at once.
    #[inline(never)]
    fn push_with_attributes(
        &mut self,
        rings: &Rings,
        (record, mut extras): (&mut SpanRecord, Box<Extras>),
        hurry: impl FnOnce(),
    ) -> Option<SpanRecord> {
        let attributes = &mut extras.attributes;
        let slots = attributes.len().div_ceil(2).saturating_add(1);
        let Ok(room) = self.producer.write_chunk_uninit(slots) else {
            record.extras = Some(extras);
            hurry();
            return self.grow(rings, record.take());
        };
        let pairs = from_fn(|| {
            Some(Slot::Attributes([
                Some(attributes.pop()?),
                attributes.pop(),
            ]))
        });
        room.fill_from_iter(pairs.chain(once_with(|| Slot::Span(record.take()))));
        record.extras = Some(extras);
        self.count(slots, hurry);
        None
    }

    /// Counts slots that were written, and looks now and then whether the ring is half full.
    #[inline]
    fn count(&mut self, slots: usize, hurry: impl FnOnce()) {
        self.written = self.written.saturating_add(slots);
        let half = self.producer.buffer().capacity() / 2;
        if self.written >= half {
            self.written = 0;
            // Looked up rarely, because the reader's position is in the cache of another core.
            if self.producer.slots() <= half {
                hurry();
            }
        }
    }

    /// Goes on with a larger ring. Returns the span if there is no room for one.
    #[cold]
    fn grow(&mut self, rings: &Rings, item: SpanRecord) -> Option<SpanRecord> {
        let size = self.producer.buffer().capacity().saturating_mul(2);
        let Some(larger) = rings.add(size, Some(self.lane)) else {
            return Some(item);
        };
        *self = larger;
        match self.producer.push(Slot::Span(item)) {
            Err(PushError::Full(Slot::Span(item))) => Some(item),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span_with(attributes: usize) -> SpanRecord {
        let mut record = SpanRecord::blank();
        if attributes > 0 {
            let texts = (0..attributes).map(|number| number.to_string());
            let attributes = texts.map(|text| (text.clone().into(), text.into()));
            record.extras = Some(Box::new(Extras {
                attributes: attributes.collect(),
                ..Extras::default()
            }));
        }
        record
    }

    /// Checks that a span has all of its attributes, in order.
    fn assert_has(record: &SpanRecord, attributes: usize) {
        let own = record.extras.iter().flat_map(|extras| &extras.attributes);
        let own: Vec<_> = own.map(|(name, value)| (&**name, &**value)).collect();
        let expected: Vec<_> = (0..attributes).map(|number| number.to_string()).collect();
        let expected: Vec<_> = expected.iter().map(|text| (&**text, &**text)).collect();
        assert_eq!(own, expected);
    }

    fn pop(rings: &Rings) -> Option<SpanRecord> {
        rings.pop_or(|record| record, || None)
    }

    #[test]
    fn a_span_keeps_its_attributes_and_leaves_empty_extras() {
        let rings = Rings::new(1_024);
        let mut writer = Writer::new(&rings).unwrap();
        // Often enough that spans with their attributes lie across the end of the ring.
        for _ in 0..100 {
            for attributes in 0..7 {
                let mut record = span_with(attributes);
                assert!(writer.push(&rings, &mut record, || ()).is_none());
                assert_has(&record, 0);
            }
            for attributes in 0..7 {
                assert_has(&pop(&rings).unwrap(), attributes);
            }
            assert!(pop(&rings).is_none());
        }
    }

    #[test]
    fn a_span_keeps_its_attributes_when_the_ring_is_full() {
        let rings = Rings::new(1_024);
        let mut writer = Writer::new(&rings).unwrap();
        let numbers = || (0..2_000).map(|number| number % 7);
        let (mut kept, mut left) = (VecDeque::new(), 0);
        for attributes in numbers() {
            let refused = writer.push(&rings, &mut span_with(attributes), || ());
            match refused {
                Some(record) => {
                    assert_has(&record, attributes);
                    left += 1;
                }
                None => kept.push_back(attributes),
            }
        }
        assert!(left > 0);
        while let Some(record) = pop(&rings) {
            assert_has(&record, kept.pop_front().unwrap());
        }
        assert!(kept.is_empty());
    }
}
