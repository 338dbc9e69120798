//! Spans of crates that are instrumented with `tracing`, as spans of ours.

mod fields;

use std::sync::OnceLock;
use std::time::Duration;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, LevelFilter, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use self::fields::{Fields, Line};
use crate::client::{self, random};
use crate::clock::Moment;
use crate::span::foreign::{begin_under, leave};
use crate::span::{DetachedSpan, SpanContext};

/// A layer for `tracing` that makes its spans of level `INFO` and above spans of ours, so that libraries show up that are
/// instrumented already.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(unjank::tracing_layer());
/// tracing::subscriber::with_default(subscriber, || {
///     let span = tracing::info_span!("connect", host = "db-1");
///     span.in_scope(|| tracing::info!("connected"));
/// });
/// ```
///
/// * **Time**: a span lasts from its creation to its close, as with OpenTelemetry. The attribute `busy_us` says for how many
///   microseconds it was entered.
/// * **Parents**: the innermost open span of the thread, ours or theirs, unless the code names another. Our spans that begin
///   inside an entered span of `tracing` are its children.
/// * **Names and places**: the name is the span's, so that is what the remote configuration chooses by; the class is its module,
///   and the target is an attribute where it is another.
/// * **Fields** are attributes, at most 64 of 1 KiB. **Events** inside are events of the span, at most 64; one of level `ERROR` makes its
///   status `error`.
///
/// What the app's own callbacks do on the SDK's thread is left out.
pub fn tracing_layer<S>() -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    tracing_layer_up_to(LevelFilter::INFO)
}

/// The same for spans and events up to a level of detail.
///
/// ```
/// use tracing_subscriber::filter::LevelFilter;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let layer = unjank::tracing_layer_up_to(LevelFilter::DEBUG);
/// let subscriber = tracing_subscriber::registry().with(layer);
/// # drop(subscriber);
/// ```
pub fn tracing_layer_up_to<S>(most: LevelFilter) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    // A filter of this layer alone: other layers see what they want.
    TracingLayer.with_filter(most)
}

#[derive(Clone, Copy, Debug)]
struct TracingLayer;

/// What a span of `tracing` carries, unless all of it follows from its ancestors.
#[derive(Debug)]
struct Tracked {
    span: DetachedSpan,
    /// On how many threads it is entered.
    entered: u32,
    /// The first of them, while there is any.
    since: Option<Moment>,
    busy: Duration,
}

thread_local! {
    static IS_OURS: bool = std::thread::current().name() == Some("unjank");
}

/// Whether there is anything to do on this thread: what our own does would go on for ever.
fn is_on() -> bool {
    client::is_on() && !IS_OURS.try_with(|ours| *ours).unwrap_or(true)
}

/// From 0 to below 1, the same for all spans below a root: what is sampled out then needs to remember nothing.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are what a double holds"
)]
fn draw_of(root: &Id) -> f64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    let mut mixed = root.into_u64() ^ SEED.get_or_init(random);
    // The end of splitmix64 (Steele, Lea and Flood 2014).
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// Even, as those of foreign spans are.
fn key(id: &Id) -> u64 {
    id.into_u64() << 1
}

/// The context of the nearest tracked ancestor, or of the root that all agree on.
fn implied<'s, S>(span: &SpanRef<'s, S>) -> SpanContext
where
    S: Subscriber + LookupSpan<'s>,
{
    let mut root = span.id();
    let mut above = span.parent();
    while let Some(one) = above {
        if let Some(tracked) = one.extensions().get::<Tracked>() {
            return tracked.span.context();
        }
        root = one.id();
        above = one.parent();
    }
    SpanContext::root(draw_of(&root))
}

impl<S> Layer<S> for TracingLayer
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if !is_on() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let on_thread = attributes.is_contextual().then(SpanContext::innermost);
        let implied = implied(&span);
        let above = on_thread.flatten().unwrap_or(implied);
        let metadata = attributes.metadata();
        let Some(mut ours) = begin_under(metadata, &above) else {
            return;
        };
        if !ours.is_recorded() && above.says_the_same_as(&implied) {
            return;
        }
        if ours.is_recorded() {
            if metadata.module_path() != Some(metadata.target()) {
                ours.set_attribute("target", metadata.target().to_owned());
            }
            // Before the span is locked: printing a value may itself be traced.
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            for (name, value) in fields.0 {
                ours.set_attribute(name, value);
            }
        }
        let tracked = Tracked {
            span: ours,
            entered: 0,
            since: None,
            busy: Duration::ZERO,
        };
        let before = span.extensions_mut().replace(tracked);
        drop(before);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|_| is_on()) else {
            return;
        };
        let recorded = |tracked: &Tracked| tracked.span.is_recorded();
        if !span.extensions().get().is_some_and(recorded) {
            return;
        }
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(tracked) = span.extensions_mut().get_mut::<Tracked>() {
            for (name, value) in fields.0 {
                tracked.span.set_attribute(name, value);
            }
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event).filter(|_| is_on()) else {
            return;
        };
        let takes = |tracked: &Tracked| tracked.span.takes_events();
        let failed = *event.metadata().level() == Level::ERROR;
        let takes = span.extensions().get().is_some_and(takes);
        if !takes && !failed {
            return;
        }
        let mut line = Line::default();
        if takes {
            event.record(&mut line);
        }
        let text = line.text();
        if let Some(tracked) = span.extensions_mut().get_mut::<Tracked>() {
            match text {
                Some(text) => tracked.span.event(text),
                None => tracked.span.event(event.metadata().name()),
            }
            if failed {
                tracked.span.set_error();
            }
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|_| is_on()) else {
            return;
        };
        let mut extensions = span.extensions_mut();
        let entered = extensions.get_mut::<Tracked>().map(|tracked| {
            if tracked.entered == 0 {
                tracked.since = Some(Moment::now());
            }
            tracked.entered = tracked.entered.saturating_add(1);
            tracked.span.context()
        });
        drop(extensions);
        let entered = entered.unwrap_or_else(|| implied(&span));
        entered.enter_as(key(id));
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        // Also when it was switched off meanwhile: what was entered is left.
        leave(key(id));
        let Some(span) = context.span(id) else { return };
        if let Some(tracked) = span.extensions_mut().get_mut::<Tracked>()
            && tracked.entered > 0
        {
            tracked.entered = tracked.entered.saturating_sub(1);
            if tracked.entered == 0
                && let Some(since) = tracked.since.take()
            {
                let busy = Moment::now().since(since);
                tracked.busy = tracked.busy.saturating_add(busy);
            }
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else {
            return;
        };
        let tracked = span.extensions_mut().remove::<Tracked>();
        if let Some(mut tracked) = tracked
            && tracked.span.is_recorded()
        {
            let busy = tracked.busy.as_micros().to_string();
            tracked.span.set_attribute("busy_us", busy);
        }
    }
}
