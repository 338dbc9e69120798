//! The spans that are open on a thread, and the calls that begin and end them. Everything here belongs to one thread: a recorded
//! span lives on the stack of its thread until it ends, and then goes to the thread's ring, so it takes neither a lock nor an
//! allocation.

use std::cell::RefCell;

use unjank_protocol::SpanStatus;

use super::Open;
use super::decision::is_wanted;
use super::new_span::New;
use super::shares::{Known, Rates};
use super::short;
use super::stack::Stack;
use super::task::Task;
use crate::measure::client::{self, Shared};
use crate::measure::rings::Writer;
use crate::measure::span_record::{Extras, Queued, SpanRecord};
use crate::measure::system_trace::SystemTrace;
use crate::measure::ticks::Tick;
use crate::names::NameId;
use crate::random::{draw_of, random, randoms};

pub(super) struct Local {
    stack: Stack,
    /// The last key issued on this thread. Keys are odd, because 0 means none and foreign spans have even keys.
    last_key: u64,
    /// A client's id, and the name of this thread as that client interned it.
    thread: (u32, NameId),
    is_main: Option<bool>,
    rates: Rates,
    known: client::Known,
    ring: Ring,
    /// Empty extras for the next span that needs them, because the ring leaves the box here.
    spare: Option<Box<Extras>>,
}

/// A client's id, and the ring that this thread writes for it.
struct Ring(u32, Option<Writer>);

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local {
        stack: Stack::EMPTY,
        last_key: 1,
        thread: (0, NameId(0)),
        is_main: None,
        rates: Rates::NONE,
        known: client::Known::NONE,
        ring: Ring(0, None),
        spare: None,
    }) };
}

/// Runs a closure with the state of this thread. Returns `None` on a thread that is ending, and for a nested call from inside the
/// SDK.
#[inline]
fn with<R>(run: impl FnOnce(&mut Local) -> Option<R>) -> Option<R> {
    LOCAL
        .try_with(|local| run(&mut *local.try_borrow_mut().ok()?))
        .ok()
        .flatten()
}

/// Marks this thread as the one that draws, or as another one.
pub(super) fn set_main(is_main: bool) {
    with(|local| {
        local.is_main = Some(is_main);
        Some(())
    });
}

/// Begins a span. Returns its key, and whether it is recorded. Returns `None` if nothing is collected or too many spans are open.
pub(super) fn begin(new: &mut New<'_>) -> Option<(u64, bool)> {
    with(|local| local.begin(new))
}

/// Ends a span of this thread. `ended` is the time, if the span is recorded.
pub(super) fn end(key: u64, ended: Option<Tick>, status: SpanStatus) {
    with(|local| match ended {
        None => local.remove(key).map(|_| ()),
        Some(ended) => local.end(key, ended, status),
    });
}

/// Ends a span that is not bound to a thread.
pub(super) fn end_detached(mut record: Box<SpanRecord>, status: SpanStatus, keeps_below: bool) {
    conclude(&mut record, Tick::now(), status);
    let is_dropped = || {
        with(|local| {
            let is_dropped = short::drops_method(local.known.current()?, &record);
            if is_dropped && let Some(trace) = forwards(&mut local.known, &record) {
                trace.end_detached(&record);
            }
            Some(is_dropped)
        })
    };
    if !keeps_below && is_dropped() == Some(true) {
        return;
    }
    let mut record = Some(record);
    with(|local| {
        let mut record = record.take()?;
        let shared = local.known.current()?;
        if record.client == shared.id {
            if let Some(trace) = &shared.system_trace {
                trace.end_detached(&record);
            }
            local.ring.keep(shared, &mut record);
        }
        Some(())
    });
    if let Some(record) = record {
        client::with(|shared| {
            if shared.id == record.client {
                shared.push(Queued::Span(record));
            }
        });
    }
}

#[inline]
fn conclude(record: &mut SpanRecord, ended: Tick, status: SpanStatus) {
    record.end = ended;
    record.status = match status {
        SpanStatus::Unset if !record.in_panic && std::thread::panicking() => SpanStatus::Error,
        status => status,
    };
}

/// Removes a span from the stack of this thread. Returns what its children inherit, and its record if it is recorded.
pub(super) fn take(key: u64) -> Option<(Open, Option<SpanRecord>)> {
    with(|local| {
        let taken = local.remove(key)?;
        let open = local.stack.open_mut();
        let Some(record) = &taken.1 else {
            // Its children become children of the nearest recorded span.
            short::keep_itself(local.known.now(), open, taken.0.span_id);
            return Some(taken);
        };
        short::keep_parent(local.known.now(), open, record);
        if let Some(trace) = forwards(&mut local.known, record) {
            trace.detach(record);
        }
        Some(taken)
    })
}

/// Pushes a frame on the stack of this thread under a new key, which it returns.
pub(super) fn enter(open: Open, is_recorded: bool) -> Option<u64> {
    with(|local| {
        local.known.current()?;
        let key = local.next_key();
        local.push(Open { key, ..open }, is_recorded)?;
        Some(key)
    })
}

/// Ends [`enter`]. Returns whether a span below is kept, or may be.
pub(super) fn leave(key: u64) -> bool {
    let keeps_below = with(|local| {
        let place = local.stack.place(key)?;
        let keeps_below = local.stack.open().get(place)?.keeps_below;
        local.remove(key)?;
        Some(keeps_below)
    });
    keeps_below.unwrap_or(true)
}

/// Pushes a frame on the stack of this thread under its own key, unless too many spans are open.
#[cfg(feature = "tracing")]
pub(super) fn enter_as(open: Open) {
    with(|local| local.push(open, false));
}

/// Returns the span that is open on this thread.
pub(super) fn innermost() -> Option<Open> {
    with(|local| {
        let open = local.stack.innermost_of(Task::current())?;
        local.keep_open(open)
    })
}

/// Returns what children of a span inherit.
pub(super) fn open_of(key: u64) -> Option<Open> {
    with(|local| {
        let place = local.stack.place(key)?;
        let open = local.stack.open().get(place)?.open();
        local.keep_open(open)
    })
}

/// Changes the extras of a recorded span of this thread. The change must not call code of the app.
#[inline]
pub(super) fn change(key: u64, change: impl FnOnce(&mut Extras)) {
    with(|local| {
        let place = local.stack.place(key)?;
        let record = &mut local.stack.open_mut().get_mut(place)?.record;
        let spare = || local.spare.take().unwrap_or_default();
        change(record.extras.get_or_insert_with(spare));
        Some(())
    });
}

impl Local {
    /// Returns a key that identifies a span on the stack of this thread.
    #[inline]
    fn next_key(&mut self) -> u64 {
        self.last_key = self.last_key.wrapping_add(2);
        self.last_key
    }

    /// Keeps an open span, because spans elsewhere may become its children.
    fn keep_open(&mut self, open: Open) -> Option<Open> {
        short::keep_itself(self.known.now(), self.stack.open_mut(), open.span_id);
        Some(open)
    }

    #[inline]
    fn begin(&mut self, new: &mut New<'_>) -> Option<(u64, bool)> {
        let key = self.next_key();
        let shared = self.known.current()?;
        let Known { site, kept } = *self.rates.of(shared, new);
        let task = Task::current();
        let above = new.parent.filter(|parent| !parent.draw.is_nan());
        let above = above.copied().or_else(|| self.stack.innermost_of(task));
        let (mut open, ids) = match above {
            Some(above) => (above, None),
            None => {
                let ids: [u64; 3] = randoms();
                let [high, ..] = ids;
                let root = Open {
                    draw: draw_of(high),
                    ..Open::default()
                };
                (root, Some(ids))
            }
        };
        open.key = key;
        let recorded = kept.share.keeps(open.draw) && (!kept.asks || is_wanted(shared, new));
        let frame = self.stack.push()?;
        let parent_id = open.span_id;
        if recorded {
            open.span_id = 1 | if open.trace_id == 0 {
                let [high, low, span_id] = ids.unwrap_or_else(randoms);
                open.trace_id = u128::from(high) << 64 | u128::from(low | 1);
                span_id
            } else {
                random()
            };
        }
        frame.fill(open, task);
        if !recorded {
            return Some((key, false));
        }
        frame.recorded = true;
        if self.thread.0 != shared.id {
            self.thread = (shared.id, thread_name(shared, &mut self.is_main));
        }
        let record = &mut frame.record;
        record.parent_id = parent_id;
        record.site = site;
        record.sample_rate = kept.sample_rate;
        record.client = shared.id;
        record.thread = self.thread.1;
        record.on_main_thread = self.is_main == Some(true);
        record.in_panic = std::thread::panicking();
        record.page = shared.page();
        record.network = shared.network();
        // What is left of an earlier span has no extras.
        if let Some(name) = new.own_name.take() {
            record.extras = Some(Extras::named(name));
        }
        if let Some(trace) = &shared.system_trace
            && !new.is_detached
        {
            frame.in_section = true;
            trace.begin(record.name());
        }
        // Last, so that the span does not include the cost of beginning it.
        record.start = Tick::now();
        Some((key, true))
    }

    /// Ends a recorded span.
    #[inline]
    fn end(&mut self, key: u64, ended: Tick, status: SpanStatus) -> Option<()> {
        let Some((below, frame)) = self.stack.pop_if(key) else {
            return self.end_outer(key, ended, status);
        };
        let record = &mut frame.record;
        conclude(record, ended, status);
        // A span of an earlier client has names that this one does not know.
        let shared = self.known.current();
        let Some(shared) = shared.filter(|shared| shared.id == record.client) else {
            record.extras = None;
            return Some(());
        };
        if frame.in_section
            && let Some(trace) = &shared.system_trace
        {
            trace.end();
        }
        if short::keeps(shared, below, frame.keeps_below, record) {
            self.ring.keep(shared, record);
            if record.extras.is_some() {
                self.spare = record.extras.take();
            }
        } else {
            record.extras = None;
        }
        Some(())
    }

    /// Ends a recorded span inside which others are open.
    #[cold]
    fn end_outer(&mut self, key: u64, ended: Tick, status: SpanStatus) -> Option<()> {
        let mut record = self.remove(key)?.1?;
        conclude(&mut record, ended, status);
        short::keep_parent(self.known.now(), self.stack.open_mut(), &record);
        let shared = self.known.current()?;
        if record.client == shared.id {
            self.ring.keep(shared, &mut record);
        }
        Some(())
    }

    /// Removes a span. Returns what its children inherit, and its record if it is recorded.
    fn remove(&mut self, key: u64) -> Option<(Open, Option<SpanRecord>)> {
        let place = self.stack.place(key)?;
        self.forward_end(place);
        let (_, frame) = self.stack.remove(place)?;
        let open = frame.open();
        let record = frame.recorded.then(|| frame.record.take());
        Some((open, record))
    }

    /// Ends the section of a recorded span in the trace of the system. Sections end innermost first, so those inside it end, too, and
    /// begin again.
    fn forward_end(&mut self, place: usize) {
        let Some([ending, inside @ ..]) = self.stack.open().get(place..) else {
            return;
        };
        if !ending.in_section {
            return;
        }
        let Some(trace) = forwards(&mut self.known, &ending.record) else {
            return;
        };
        trace.end();
        let inside = inside.iter().filter(|frame| frame.in_section);
        inside.clone().for_each(|_| trace.end());
        inside.for_each(|frame| trace.begin(frame.record.name()));
    }

    /// Pushes a frame without a record.
    fn push(&mut self, open: Open, is_entered: bool) -> Option<()> {
        let frame = self.stack.push()?;
        frame.fill(open, Task::current());
        frame.is_entered = is_entered;
        Some(())
    }
}

impl Ring {
    /// Hands a span that has ended to the background thread.
    #[inline]
    fn keep(&mut self, shared: &Shared, record: &mut SpanRecord) {
        let Self(of, ring) = self;
        if *of != shared.id || ring.is_none() {
            (*of, *ring) = (shared.id, Writer::new(&shared.rings));
        }
        record.turn = shared.users.turn();
        let left = match ring {
            Some(ring) => ring.push(&shared.rings, record, || shared.hurry()),
            None => Some(record.take()),
        };
        if let Some(record) = left {
            shared.push(Queued::Span(Box::new(record)));
        }
    }
}

/// Returns the system trace to which a span is forwarded, if there is one.
#[inline]
fn forwards<'k>(known: &'k mut client::Known, record: &SpanRecord) -> Option<&'k SystemTrace> {
    let shared = known.current()?;
    let trace = shared.system_trace.as_ref()?;
    (record.client == shared.id).then_some(trace)
}

#[cold]
fn thread_name(shared: &Shared, is_main: &mut Option<bool>) -> NameId {
    let current = std::thread::current();
    let name = current.name().unwrap_or("unnamed");
    is_main.get_or_insert(name == "main");
    shared.names.id(name)
}
