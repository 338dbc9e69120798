//! Buffers for recorded spans: one ring per thread that records spans, written by that thread without locks and read by the
//! background thread.
//!
//! A ring outlives its thread until it is read, so spans of threads that end are not lost. A ring that is full is replaced by one
//! of twice the size while the client has room. Otherwise, spans go to the queue that all threads share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::span_record::SpanRecord;

/// A span in a ring. Aligned to cache lines, so that it touches no third one.
#[derive(Debug)]
#[repr(align(64))]
struct Slot(SpanRecord);

/// Number of spans in the first ring of a thread.
const FIRST: usize = 64;

/// The rings of all threads of one client.
pub(crate) struct Rings {
    /// Number of spans that further rings may hold.
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
    /// All rings together hold at most `most` spans.
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
        while let Some(ring) = self.rings.front_mut() {
            // In this order: nothing is written to a ring after it was abandoned.
            let abandoned = ring.is_abandoned();
            match ring.pop() {
                Ok(Slot(item)) => return Some(item),
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

/// The end of a ring that belongs to the recording thread.
#[derive(Debug)]
pub(crate) struct Writer {
    producer: Producer<Slot>,
    lane: u64,
    /// Number of spans written since the ring was last found less than half full.
    written: usize,
}

impl Writer {
    pub(crate) fn new(rings: &Rings) -> Option<Self> {
        rings.add(FIRST, None)
    }

    /// Takes a span, and returns it if there is no room. `hurry` is called when the ring is half full.
    #[inline]
    pub(crate) fn push(
        &mut self,
        rings: &Rings,
        record: &mut SpanRecord,
        hurry: impl FnOnce(),
    ) -> Option<SpanRecord> {
        let Ok(mut room) = self.producer.write_chunk_uninit(1) else {
            hurry();
            return self.grow(rings, record.take());
        };
        // In place, because `push` moves the record twice.
        if let Some(slot) = room.as_mut_slices().0.first_mut() {
            slot.write(Slot(record.take()));
            #[expect(
                unsafe_code,
                reason = "the compiler does not see that the slot is filled"
            )]
            // SAFETY: the chunk has one slot, and it was just written.
            unsafe {
                room.commit_all();
            }
        }
        self.written = self.written.saturating_add(1);
        let half = self.producer.buffer().capacity() / 2;
        if self.written >= half {
            self.written = 0;
            // Looked up rarely, because the reader's position is in the cache of another core.
            if self.producer.slots() <= half {
                hurry();
            }
        }
        None
    }

    /// Goes on with a larger ring. Returns the span if there is no room for one.
    #[cold]
    fn grow(&mut self, rings: &Rings, item: SpanRecord) -> Option<SpanRecord> {
        let size = self.producer.buffer().capacity().saturating_mul(2);
        let Some(larger) = rings.add(size, Some(self.lane)) else {
            return Some(item);
        };
        *self = larger;
        let pushed = self.producer.push(Slot(item)).err();
        pushed.map(|PushError::Full(Slot(item))| item)
    }
}
