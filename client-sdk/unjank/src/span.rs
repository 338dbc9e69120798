//! Spans: timed operations.

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

use crate::client::{self, Shared};
use crate::clock::Moment;
use crate::names::NameId;
use crate::random::{draw, random};
use crate::span_record::{Callsite, Queued, SourceLocation, SpanRecord};

pub use self::detached::{DetachedSpan, Entered};
use self::shares::{Name, Rates};

/// Maximum number of open spans on one thread.
const DEEPEST: usize = 256;

/// A timed operation of one thread. It ends when it is dropped. While it is open, spans that begin on the same thread are its
/// children. While nothing is collected, and if sampling leaves the span out, its methods do nothing. A thread can have at most
/// 256 open spans; deeper ones are not recorded.
///
/// To follow an operation across threads or through `async` code, call [`Span::detach`].
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
    /// Identifies the span on the stack of its thread; 0 while nothing is collected. Small, because the span is moved even then.
    key: u64,
    record: Option<Box<SpanRecord>>,
    /// The span is on its thread's stack of open spans.
    not_send: PhantomData<*const ()>,
}

/// What children inherit from a span, recorded or not.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Identifies the entry on the stack of its thread.
    key: u64,
    trace_id: u128,
    /// The span itself if it is recorded, else its nearest recorded ancestor, or 0.
    span_id: u64,
    /// From 0 to below 1, drawn once per trace, so that a span is kept wherever one with a smaller share is.
    draw: f64,
}

impl Default for Open {
    /// An entry for no span: a span that begins below it starts a new trace.
    fn default() -> Self {
        Self {
            key: 0,
            trace_id: 0,
            span_id: 0,
            draw: f64::NAN,
        }
    }
}

/// The place of a span in its trace, to pass on to another thread or process. The default belongs to no span: a span that begins
/// under it becomes a child of the span open on the thread, if any, and else starts a new trace.
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
    /// Returns the W3C `traceparent` header for a request that is made inside the span, or `None` if neither the span nor any
    /// span above it is recorded.
    #[must_use]
    pub fn traceparent(&self) -> Option<String> {
        let Open {
            trace_id, span_id, ..
        } = self.0;
        (span_id != 0).then(|| format!("00-{trace_id:032x}-{span_id:016x}-01"))
    }
}

struct Local {
    stack: Vec<Open>,
    /// The last key issued on this thread. Keys are odd, because 0 means none and foreign spans have even keys.
    last_key: u64,
    /// A client's id, and the name of this thread as that client interned it.
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
    /// Returns a key that identifies a span on the stack of this thread.
    fn next_key(&mut self) -> u64 {
        self.last_key = self.last_key.wrapping_add(2);
        self.last_key
    }
}

/// Marks this thread as the one that draws. Needed only if the host's main thread is not named `main`; [`crate::MainLoop`] calls
/// it for you.
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
    // A thread that is ending draws nothing.
    marked.unwrap_or_default();
}

/// Begins a span, as a child of the span that is open on this thread, if any. It ends when the returned [`Span`] is dropped.
///
/// The remote configuration samples spans by name, so use constant names without ids. Names are cut at 1 KiB. While nothing is
/// collected, the call only checks one flag.
///
/// ```
/// {
///     let mut span = unjank::span("checkout");
///     span.attribute("items", 3);
///     // … the operation …
/// }
/// ```
#[track_caller]
#[inline]
pub fn span(name: impl Into<Cow<'static, str>>) -> Span {
    if !client::is_on() {
        return Span::OFF;
    }
    let place = SourceLocation::Caller(Location::caller());
    begin(cut(name.into()), SpanKind::Manual, place, &[], None)
}

/// Begins a span under `parent`, which may be on another thread. Otherwise the same as [`span()`].
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
    let place = SourceLocation::Caller(Location::caller());
    begin(
        cut(name.into()),
        SpanKind::Manual,
        place,
        &[],
        Some(parent.0),
    )
}

/// Begins a span of kind `init` for the construction of an object, named after its type. Meant for dependency injection
/// containers; for constructors of your own, use `#[unjank::traced(init)]`.
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
    let place = SourceLocation::Caller(Location::caller());
    begin(cut(type_name.into()), SpanKind::Init, place, &[], None)
}

/// Begins the span of a function, in code that `#[traced]` generates.
#[doc(hidden)]
#[inline]
pub fn callsite_span(callsite: &'static Callsite) -> Span {
    if !client::is_on() {
        return Span::OFF;
    }
    begin(
        Cow::Borrowed(callsite.name),
        callsite.kind,
        SourceLocation::Function(callsite),
        callsite.tags,
        None,
    )
}

fn begin(
    name: Cow<'static, str>,
    kind: SpanKind,
    place: SourceLocation,
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
                let kept = local.rates.share(shared, Name::new(&name), tags);
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
                    let mut record = start(shared, local, name, kind, place, &above);
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
    name: Cow<'static, str>,
    kind: SpanKind,
    place: SourceLocation,
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
        // Last, so that the span does not include the cost of beginning it.
        start: Moment::now(),
    })
}

impl Span {
    const OFF: Self = Self {
        key: 0,
        record: None,
        not_send: PhantomData,
    };

    /// Returns whether the span is recorded. If not, the values of its attributes need not be computed.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Adds an attribute. A span keeps at most 64; names and values are cut at 1 KiB each. The value is formatted only if the
    /// span is recorded.
    pub fn attribute(&mut self, name: impl Into<Cow<'static, str>>, value: impl Display) {
        add_attribute(self.record.as_deref_mut(), name, &value);
    }

    /// Adds an event with the current time. A span keeps at most 64; each is cut at 1 KiB.
    pub fn event(&mut self, name: impl Into<Cow<'static, str>>) {
        add_event(self.record.as_deref_mut(), name);
    }

    /// Ends the span with the status `ok`. A span that is dropped has the status `unset`.
    pub fn end_ok(mut self) {
        self.set_status(SpanStatus::Ok);
    }

    /// Ends the span with the status `error`.
    pub fn end_error(mut self) {
        self.set_status(SpanStatus::Error);
    }

    /// Ends the span; the same as dropping it.
    pub fn end(self) {}

    fn set_status(&mut self, status: SpanStatus) {
        if let Some(record) = &mut self.record {
            record.status = status;
        }
    }

    /// Returns the place of the span in its trace, to begin children on other threads.
    #[must_use]
    pub fn context(&self) -> SpanContext {
        let open = LOCAL.try_with(|local| {
            let local = local.try_borrow().ok()?;
            let mut stack = local.stack.iter().rev();
            stack.find(|open| open.key == self.key).copied()
        });
        SpanContext(open.ok().flatten().unwrap_or_default())
    }

    /// Takes the span off its thread: it may end on another thread, and is no longer the parent of spans that begin on this one.
    /// See [`DetachedSpan`] for an example.
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
        // A recorded span always has a key, so dropping a span costs no call while nothing is collected.
        if self.key != 0 {
            finish(self.record.take());
            close(self.key);
        }
    }
}

/// Pushes an entry on the stack of this thread under a new key.
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

/// Removes an entry from the stack of this thread, wherever it is: spans need not end in order.
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
    // A thread that is ending has no stack any more.
    LOCAL.try_with(close).ok().flatten()
}

fn finish(record: Option<Box<SpanRecord>>) {
    let Some(mut record) = record else { return };
    let duration = Moment::now().since(record.start).as_micros();
    record.duration_us = i64::try_from(duration).unwrap_or(i64::MAX);
    client::with(|shared| shared.push(Queued::Span(record)));
}

/// Maximum number of attributes, and of events, of one span on the wire.
const MOST: usize = 64;
/// Cuts a text to the length that is sent, so that a longer one does not occupy memory until then.
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
