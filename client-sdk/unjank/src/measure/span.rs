//! Spans: timed operations.

mod decision;
mod detached;
#[cfg(feature = "tracing")]
pub(crate) mod foreign;
mod inherited;
mod local;
#[cfg(feature = "tower")]
mod network;
mod new_span;
mod shares;
mod short;
mod stack;
mod task;

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::panic::Location;

use compact_str::CompactString;
use unjank_protocol::{SpanKind, SpanStatus};

use self::new_span::New;
use super::client;
use super::site::{Callsite, Site, SourceLocation};
use super::span_record::{Extras, SpanRecord};
use super::ticks::Tick;
use crate::bounded_text::{bounded_text, cut};
use crate::clock::Moment;

pub use self::detached::{DetachedSpan, Entered};
#[cfg(feature = "tokio")]
pub use self::inherited::spawn;
pub use self::inherited::{Inherited, inherit};
#[cfg(feature = "tower")]
pub(crate) use self::network::network_span;

/// A timed operation of one thread. It ends when it is dropped. While it is open, spans that begin on the same thread are its
/// children. While nothing is collected, and if sampling leaves the span out, its methods do nothing. A thread can have at most
/// 256 open spans; deeper ones are not recorded.
///
/// A span that is dropped has the status `unset`, or `error` if a panic unwinds it.
///
/// Do not hold a `Span` over an `.await`: it stays the parent of whatever the thread runs meanwhile, except for other tasks of
/// tokio (feature `tokio`). For `async` code, put [`traced`](crate::traced) on the function, or call [`Span::detach`]. A
/// [`DetachedSpan`] can also end on another thread or in another function than it began in.
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
    /// Identifies the span on the stack of its thread, which holds its data; 0 while nothing is collected.
    key: u64,
    recorded: bool,
    status: SpanStatus,
    /// The span is on its thread's stack of open spans.
    not_send: PhantomData<*const ()>,
}

/// The values that children inherit from a span, recorded or not.
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

/// Returns the trace and the span that an event of this thread belongs to; 0 for none.
pub(crate) fn innermost_ids() -> Option<(u128, u64)> {
    local::innermost().map(|open| (open.trace_id, open.span_id))
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
    // A thread that is ending draws nothing.
    local::set_main(true);
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
    span_tagged(name, &[])
}

/// Begins a span with tags. The remote configuration can select spans by their tags (`tracing.tags`), as it selects functions
/// with `#[traced(tag = "…")]`. Otherwise the same as [`span()`].
///
/// ```
/// let span = unjank::span_tagged("pay", &["checkout", "network"]);
/// # drop(span);
/// ```
#[track_caller]
#[inline]
pub fn span_tagged(name: impl Into<Cow<'static, str>>, tags: &'static [&'static str]) -> Span {
    if !client::is_on() {
        return Span::OFF;
    }
    begin_here(name.into(), tags)
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
    let site = Site {
        place: SourceLocation::Caller(Location::caller()),
        ..Site::UNKNOWN
    };
    begin(New {
        parent: Some(&parent.0),
        ..New::at(site).named(name.into())
    })
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
    let site = Site {
        kind: SpanKind::Init,
        place: SourceLocation::Caller(Location::caller()),
        ..Site::UNKNOWN
    };
    begin(New::at(site).named(type_name.into()))
}

/// Begins the span of a function, in code that `#[traced]` generates.
#[doc(hidden)]
#[inline]
pub fn callsite_span(callsite: &'static Callsite) -> Span {
    if !client::is_on() {
        return Span::OFF;
    }
    begin(New::at(Site::of(callsite)))
}

/// Begins the span of a future.
pub(crate) fn future_span(callsite: &'static Callsite) -> DetachedSpan {
    let new = New {
        is_detached: true,
        ..New::at(Site::of(callsite))
    };
    begin(new).detach()
}

impl New<'_> {
    /// A span at a site, and otherwise as most spans are.
    #[inline]
    const fn at(site: Site) -> Self {
        Self {
            site,
            own_name: None,
            parent: None,
            is_detached: false,
        }
    }

    /// The name is a constant, or was built at run time.
    #[inline]
    fn named(mut self, name: Cow<'static, str>) -> Self {
        match cut(name) {
            Cow::Borrowed(name) => self.site.name = name,
            Cow::Owned(name) => self.own_name = Some(name),
        }
        self
    }
}

/// Adds an attribute to a span of this thread. Not in line, to keep the code of the app small.
#[inline(never)]
fn add_attribute(key: u64, name: Cow<'static, str>, value: CompactString) {
    let name = cut(name);
    local::change(key, |extras| extras.attribute(name, value));
}

/// Begins a span at the place of the caller. Not in line, to keep the code of the app small.
#[track_caller]
#[inline(never)]
fn begin_here(name: Cow<'static, str>, tags: &'static [&'static str]) -> Span {
    let site = Site {
        place: SourceLocation::Caller(Location::caller()),
        tags,
        ..Site::UNKNOWN
    };
    begin(New::at(site).named(name))
}

fn begin(mut new: New<'_>) -> Span {
    match local::begin(&mut new) {
        Some((key, recorded)) => Span {
            key,
            recorded,
            ..Span::OFF
        },
        None => Span::OFF,
    }
}

impl Span {
    const OFF: Self = Self {
        key: 0,
        recorded: false,
        status: SpanStatus::Unset,
        not_send: PhantomData,
    };

    /// Returns whether the span is recorded. If not, the values of its attributes need not be computed.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Adds an attribute. A span keeps at most 64; names and values are cut at 1 KiB each. The value is formatted only if the
    /// span is recorded. If it fails to format, the attribute has what it wrote until then.
    pub fn attribute(&mut self, name: impl Into<Cow<'static, str>>, value: impl Display) {
        if !self.recorded {
            return;
        }
        // Before the span is changed, because formatting a value may itself be traced.
        let (name, value) = (name.into(), bounded_text(&value));
        add_attribute(self.key, name, value);
    }

    /// Adds an event with the current time. A span keeps at most 64; each is cut at 1 KiB.
    pub fn event(&mut self, name: impl Into<Cow<'static, str>>) {
        if !self.recorded {
            return;
        }
        let (now, name) = (Moment::now(), cut(name.into()));
        local::change(self.key, |extras| extras.event(now, name));
    }

    /// Ends the span with the status `ok`. A span that is dropped has the status `unset`.
    pub fn end_ok(mut self) {
        self.status = SpanStatus::Ok;
    }

    /// Ends the span with the status `error`.
    pub fn end_error(mut self) {
        self.status = SpanStatus::Error;
    }

    /// Ends the span with the status `cancelled`: the operation was given up.
    ///
    /// ```
    /// unjank::span("search").end_cancelled(); // the user typed on
    /// ```
    pub fn end_cancelled(mut self) {
        self.status = SpanStatus::Cancelled;
    }

    /// Ends the span; the same as dropping it.
    pub fn end(self) {}

    /// Returns the place of the span in its trace, to begin children on other threads.
    #[must_use]
    pub fn context(&self) -> SpanContext {
        SpanContext(local::open_of(self.key).unwrap_or_default())
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
        let entry = match std::mem::take(&mut self.key) {
            0 => None,
            key => local::take(key),
        };
        DetachedSpan::new(entry)
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        // A recorded span always has a key, so dropping a span costs no call while nothing is collected.
        if self.key != 0 {
            let ended = self.recorded.then(Tick::now);
            local::end(self.key, ended, self.status);
        }
    }
}

/// Maximum number of attributes, and of events, of one span on the wire.
const MOST: usize = 64;

fn extras(record: &mut SpanRecord) -> &mut Extras {
    record.extras.get_or_insert_default()
}

impl Extras {
    #[inline]
    fn attribute(&mut self, name: Cow<'static, str>, value: CompactString) {
        if self.attributes.len() < MOST {
            self.attributes.push((name, value));
        }
    }

    fn event(&mut self, time: Moment, name: Cow<'static, str>) {
        if self.events.len() < MOST {
            self.events.push((time, name));
        }
    }
}
