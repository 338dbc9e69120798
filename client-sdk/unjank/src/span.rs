//! Spans: the time between two marks in the code.

mod detached;
#[cfg(feature = "tracing")]
pub(crate) mod foreign;
mod shares;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Display;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use unjank_monitors::bounded;
use unjank_protocol::{SpanKind, SpanStatus};

use crate::client::{self, Shared, draw, random};
use crate::clock::Moment;
use crate::event::{Place, Queued, SpanRecord};
use crate::names::NameId;

pub use self::detached::{DetachedSpan, Entered};
use self::shares::{Name, Rates};

/// Spans open on one thread at once; those deeper are not recorded.
const DEEPEST: usize = 256;

/// A span of this thread: it ends when it is dropped. While it lives, spans that begin on the same thread are its children. While nothing
/// is collected, and where sampling leaves it out, everything on it does nothing. At most 256 are open on one thread at once; those
/// deeper are not recorded.
///
/// To follow an operation over threads or through `async` code, [`Span::detach`] it.
///
/// ```
/// fn pay(cents: u64) -> Result<u64, String> {
///     if cents == 0 { Err("nothing to pay".to_owned()) } else { Ok(cents) }
/// }
///
/// let mut span = unjank::span("checkout");
/// if span.is_recorded() {
///     span.attribute("items", 3);
/// }
/// span.event("cart read");
/// let context = span.context(); // for work on other threads: `unjank::span_in`
/// match pay(1_999) {
///     Ok(_) => span.end_ok(),
///     Err(_) => span.end_error(),
/// }
/// unjank::span("rest").end(); // the same as `drop`
/// # drop(context);
/// ```
#[derive(Debug)]
#[must_use = "a span lasts as long as this value: bind it to a name, not to `_`"]
pub struct Span {
    /// Names it on the stack of its thread; 0 while nothing is collected. Small, since it is moved about even then.
    key: u64,
    record: Option<Box<SpanRecord>>,
    /// Its place is on the stack of open spans of its thread.
    not_send: PhantomData<*const ()>,
}

/// What children take from a span, recorded or not.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Names it on the stack of its thread.
    key: u64,
    trace_id: u128,
    /// The nearest span above that is recorded, or 0.
    span_id: u64,
    /// From 0 to below 1, drawn once a trace: whoever has the larger share is kept wherever one with a smaller is.
    draw: f64,
}

impl Default for Open {
    /// One that stands for nothing: whoever begins below it begins a trace.
    fn default() -> Self {
        Self {
            key: 0,
            trace_id: 0,
            span_id: 0,
            draw: f64::NAN,
        }
    }
}

/// Where a span belongs, to carry over to another thread or another process. The default belongs nowhere: what begins under it begins
/// a trace, or goes under the span that is open on the thread.
///
/// ```
/// let span = unjank::span("sync");
/// let context = span.context();
/// let header = context.traceparent(); // for the request: 00-….-….-01
/// let worker = std::thread::spawn(move || unjank::span_in(&context, "download").end());
/// # worker.join().unwrap();
/// # assert_eq!(header, None); // nothing is collected here
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanContext(Open);

impl SpanContext {
    /// The W3C `traceparent` header for a request that is made inside the span; nothing when the span is not recorded.
    #[must_use]
    pub fn traceparent(&self) -> Option<String> {
        let Open {
            trace_id, span_id, ..
        } = self.0;
        (span_id != 0).then(|| format!("00-{trace_id:032x}-{span_id:016x}-01"))
    }
}

/// What is known of a place in the source at build time. Made by `#[traced]`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Callsite {
    pub name: &'static str,
    pub class: &'static str,
    pub function: &'static str,
    pub file: &'static str,
    pub line: u32,
    pub tags: &'static [&'static str],
    pub kind: SpanKind,
}

struct Local {
    stack: Vec<Open>,
    /// The last key that was given out on this thread: an odd number, since none is 0 and those of foreign spans are even.
    last_key: u64,
    /// Its name, as the client of that id knows it.
    thread: (u32, NameId),
    is_main: Option<bool>,
    rates: Rates,
}

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local {
        stack: Vec::new(),
        last_key: 1,
        thread: (0, NameId(0)),
        is_main: None,
        rates: Rates::NONE,
    }) };
}

impl Local {
    /// Names a span on the stack of this thread, and nowhere else.
    fn next_key(&mut self) -> u64 {
        self.last_key = self.last_key.wrapping_add(2);
        self.last_key
    }
}

/// Says that this is the thread that draws: for hosts whose main thread is not named `main`. [`crate::MainLoop`] says it by itself.
///
/// ```
/// std::thread::Builder::new().name("ui".to_owned()).spawn(|| {
///     unjank::mark_main_thread();
///     // … the loop that draws …
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn mark_main_thread() {
    let marked = LOCAL.try_with(|local| {
        if let Ok(mut local) = local.try_borrow_mut() {
            local.is_main = Some(true);
        }
    });
    // A thread that ends draws nothing.
    marked.unwrap_or_default();
}

/// Begins a span. It is a child of the span that is open on this thread, if any; see [`Span`] for its end. The remote configuration
/// samples by the name, which is cut at 1 KiB: names of the program, not made with an id in them. While nothing is collected it
/// costs a look at one flag.
///
/// ```
/// {
///     let mut span = unjank::span("checkout");
///     span.attribute("items", 3);
///     // … what is measured …
/// }
/// ```
#[track_caller]
#[inline]
pub fn span(name: impl Into<Cow<'static, str>>) -> Span {
    if !client::is_on() {
        return Span::OFF;
    }
    let place = Place::Caller(Location::caller());
    begin(cut(name.into()), SpanKind::Manual, place, &[], None)
}

/// Begins a span under another one, wherever that is; else the same as [`span()`].
///
/// ```
/// let span = unjank::span("sync");
/// let context = span.context();
/// std::thread::spawn(move || {
///     let _child = unjank::span_in(&context, "download");
/// });
/// ```
#[track_caller]
pub fn span_in(parent: &SpanContext, name: impl Into<Cow<'static, str>>) -> Span {
    if !client::is_on() {
        return Span::OFF;
    }
    let place = Place::Caller(Location::caller());
    begin(
        cut(name.into()),
        SpanKind::Manual,
        place,
        &[],
        Some(parent.0),
    )
}

/// Begins the span of a construction: kind `init`, named after the type. For containers that inject dependencies; a constructor of
/// one's own has `#[unjank::traced(init)]`.
///
/// ```
/// fn construct<T: Default>() -> T {
///     let _span = unjank::init_span(std::any::type_name::<T>());
///     T::default()
/// }
/// assert!(construct::<Vec<u8>>().is_empty());
/// ```
#[track_caller]
pub fn init_span(type_name: impl Into<Cow<'static, str>>) -> Span {
    if !client::is_on() {
        return Span::OFF;
    }
    let place = Place::Caller(Location::caller());
    begin(cut(type_name.into()), SpanKind::Init, place, &[], None)
}

/// Begins the span of a function: what `#[traced]` writes at its start.
#[doc(hidden)]
#[inline]
pub fn callsite_span(callsite: &'static Callsite) -> Span {
    if !client::is_on() {
        return Span::OFF;
    }
    begin(
        Cow::Borrowed(callsite.name),
        callsite.kind,
        Place::Function(callsite),
        callsite.tags,
        None,
    )
}

fn begin(
    name: Cow<'static, str>,
    kind: SpanKind,
    place: Place,
    tags: &[&str],
    parent: Option<Open>,
) -> Span {
    client::with(|shared| {
        LOCAL
            .try_with(|local| {
                let mut local = local.try_borrow_mut().ok()?;
                let local = &mut *local;
                if local.stack.len() >= DEEPEST {
                    return None;
                }
                let kept = local.rates.share(shared, Name::of(&name), tags);
                let above = parent
                    .filter(|parent| !parent.draw.is_nan())
                    .or_else(|| local.stack.last().copied())
                    .unwrap_or_else(|| Open {
                        draw: draw(),
                        ..Open::default()
                    });
                let mut open = Open {
                    key: local.next_key(),
                    ..above
                };
                let record = kept.share.keeps(open.draw).then(|| {
                    let mut record = start(shared, local, (name, kind, place), &above);
                    (open.trace_id, open.span_id) = (record.trace_id, record.span_id);
                    record.sample_rate = kept.sample_rate;
                    record
                });
                local.stack.push(open);
                Some(Span {
                    key: open.key,
                    record,
                    not_send: PhantomData,
                })
            })
            .ok()
            .flatten()
    })
    .flatten()
    .unwrap_or(Span::OFF)
}

fn start(
    shared: &Arc<Shared>,
    local: &mut Local,
    (name, kind, place): (Cow<'static, str>, SpanKind, Place),
    above: &Open,
) -> Box<SpanRecord> {
    let trace_id = if above.trace_id == 0 {
        u128::from(random()) << 64 | u128::from(random() | 1)
    } else {
        above.trace_id
    };
    if local.thread.0 != shared.id {
        let current = std::thread::current();
        let name = current.name().unwrap_or("unnamed");
        local.is_main.get_or_insert(name == "main");
        local.thread = (shared.id, shared.names.id(name));
    }
    Box::new(SpanRecord {
        trace_id,
        span_id: random() | 1,
        parent_id: above.span_id,
        name,
        kind,
        duration_us: 0,
        thread: local.thread.1,
        on_main_thread: local.is_main == Some(true),
        status: SpanStatus::Unset,
        page: shared.page(),
        network: shared.network(),
        place,
        extras: None,
        sample_rate: 1.0,
        // Last: what it cost to begin is not the app's.
        start: Moment::now(),
    })
}

impl Span {
    const OFF: Self = Self {
        key: 0,
        record: None,
        not_send: PhantomData,
    };

    /// Whether it will be sent: what only serves its attributes need not be computed else.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Adds an attribute; at most 64 are kept, names and values are cut at 1 KiB each. The value is made into text only when the span
    /// is recorded.
    pub fn attribute(&mut self, name: impl Into<Cow<'static, str>>, value: impl Display) {
        add_attribute(self.record.as_deref_mut(), name, &value);
    }

    /// Notes that something happened now; at most 64 are kept, of 1 KiB each.
    pub fn event(&mut self, name: impl Into<Cow<'static, str>>) {
        add_event(self.record.as_deref_mut(), name);
    }

    /// Ends it with the status `ok`: as intended. One that is dropped has the status `unset`.
    pub fn end_ok(mut self) {
        self.set_status(SpanStatus::Ok);
    }

    /// Ends it with the status `error`.
    pub fn end_error(mut self) {
        self.set_status(SpanStatus::Error);
    }

    /// Ends it; the same as dropping it.
    pub fn end(self) {}

    fn set_status(&mut self, status: SpanStatus) {
        if let Some(record) = &mut self.record {
            record.status = status;
        }
    }

    /// Where children on other threads belong. Ask on the thread that began the span.
    #[must_use]
    pub fn context(&self) -> SpanContext {
        let open = LOCAL.try_with(|local| {
            let local = local.try_borrow().ok()?;
            let mut stack = local.stack.iter().rev();
            stack.find(|open| open.key == self.key).copied()
        });
        SpanContext(open.ok().flatten().unwrap_or_default())
    }

    /// Takes it off its thread: it may end on another, and is no parent of what begins here any more. See [`DetachedSpan`] for an
    /// example.
    ///
    /// ```
    /// let span = unjank::span("upload").detach();
    /// # let worker =
    /// std::thread::spawn(move || span.end_ok());
    /// # worker.join().unwrap();
    /// ```
    pub fn detach(mut self) -> DetachedSpan {
        let key = std::mem::take(&mut self.key);
        DetachedSpan {
            open: close(key).unwrap_or_default(),
            record: self.record.take(),
        }
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        // What is recorded has a key, so that a span costs no call while nothing is collected.
        if self.key != 0 {
            finish(self.record.take());
            close(self.key);
        }
    }
}

/// Puts what stands for a span on the stack of this thread, under a name of its own.
fn push(open: Open) -> Option<Open> {
    let pushed = client::with(|_| {
        let push = |local: &RefCell<Local>| {
            let mut local = local.try_borrow_mut().ok()?;
            let key = local.next_key();
            let open = Open { key, ..open };
            local.stack.push(open);
            Some(open)
        };
        LOCAL.try_with(push).ok().flatten()
    });
    pushed.flatten()
}

/// Takes a span off the stack of this thread, wherever in it: spans need not end in order.
fn close(key: u64) -> Option<Open> {
    if key == 0 {
        return None;
    }
    let close = |local: &RefCell<Local>| {
        let mut local = local.try_borrow_mut().ok()?;
        let stack = &mut local.stack;
        if stack.last().is_some_and(|last| last.key == key) {
            return stack.pop();
        }
        let place = stack.iter().rposition(|open| open.key == key)?;
        Some(stack.remove(place))
    };
    // A thread that ends has no stack any more.
    LOCAL.try_with(close).ok().flatten()
}

fn finish(record: Option<Box<SpanRecord>>) {
    let Some(mut record) = record else { return };
    let duration = Moment::now().since(record.start).as_micros();
    record.duration_us = i64::try_from(duration).unwrap_or(i64::MAX);
    client::with(|shared| shared.push(Queued::Span(record)));
}

/// What the wire takes of attributes and of events of one span.
const MOST: usize = 64;
/// Texts of the app are kept in memory until they are sent: no longer than they are sent.
pub(crate) fn cut(text: Cow<'static, str>) -> Cow<'static, str> {
    let length = bounded(&text).len();
    if length == text.len() {
        return text;
    }
    let mut text = text.into_owned();
    text.truncate(length);
    Cow::Owned(text)
}

fn add_attribute(
    record: Option<&mut SpanRecord>,
    name: impl Into<Cow<'static, str>>,
    value: &dyn Display,
) {
    let extras = record.map(|record| record.extras.get_or_insert_default());
    if let Some(extras) = extras.filter(|extras| extras.attributes.len() < MOST) {
        let mut text = value.to_string();
        text.truncate(bounded(&text).len());
        extras.attributes.push((cut(name.into()), text));
    }
}

fn add_event(record: Option<&mut SpanRecord>, name: impl Into<Cow<'static, str>>) {
    let extras = record.map(|record| record.extras.get_or_insert_default());
    if let Some(extras) = extras.filter(|extras| extras.events.len() < MOST) {
        extras.events.push((Moment::now(), cut(name.into())));
    }
}
