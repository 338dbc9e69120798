//! Records the spans of crates that are instrumented with `tracing`.

mod fields;

use std::sync::OnceLock;
use std::time::Duration;

use compact_str::ToCompactString;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, LevelFilter, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use self::fields::{Fields, Line};
use super::client;
use super::span::foreign::{begin_under, leave};
use super::span::{DetachedSpan, SpanContext};
use crate::clock::Moment;
use crate::random::random;

/// Returns a layer for `tracing` that records its spans of level `INFO` and above, so that libraries that are already
/// instrumented show up.
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
/// * **Time**: a span lasts from its creation to its close, as with OpenTelemetry. The attribute `busy_us` is the time in which
///   it was entered, in microseconds.
/// * **Parents**: the parent is the innermost open span of the thread, of the SDK or of `tracing`, unless the code names another.
///   A span of the SDK that begins inside an entered span of `tracing` is its child.
/// * **Names and places**: a span keeps its name, and the remote configuration selects spans by it. The class is the module; the
///   target becomes an attribute if it differs from the module.
/// * **Fields** become attributes, at most 64 of 1 KiB each. **Events** inside a span become its events, at most 64. An event of
///   level `ERROR` sets the status `error`.
///
/// Spans and events that the app's callbacks produce on the SDK's own thread are ignored.
pub fn tracing_layer<S>() -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    tracing_layer_up_to(LevelFilter::INFO)
}

/// The same, for spans and events up to the given level of detail.
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
    // The filter belongs to this layer alone: other layers are not affected.
    TracingLayer.with_filter(most)
}

/// The same, for spans and events of the crates and modules that `targets` selects, each with its own level of detail.
///
/// ```
/// use tracing_subscriber::filter::Targets;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let targets: Targets = "shop=debug,sqlx=info,hyper::client=trace".parse()?;
/// let subscriber = tracing_subscriber::registry().with(unjank::tracing_layer_of(targets));
/// # drop(subscriber);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tracing_layer_of<S>(targets: Targets) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    TracingLayer.with_filter(targets)
}

#[derive(Clone, Copy, Debug)]
struct TracingLayer;

/// The SDK's data on a span of `tracing`. Absent if all of it can be derived from the span's ancestors.
#[derive(Debug)]
struct Tracked {
    span: DetachedSpan,
    /// Number of threads on which it is entered.
    entered: u32,
    /// Since when it is entered on at least one of them.
    since: Option<Moment>,
    busy: Duration,
}

thread_local! {
    static IS_OURS: bool = matches!(
        std::thread::current().name(),
        Some("unjank" | "unjank-http")
    );
}

/// Returns whether to record on this thread. Recording the SDK's own thread would never come to an end.
fn is_on() -> bool {
    client::is_on() && !IS_OURS.try_with(|ours| *ours).unwrap_or(true)
}

/// Returns a draw from 0 to below 1, the same for all spans below a root, so that nothing has to be stored for spans that are
/// sampled out.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are what a double holds"
)]
fn draw_of(root: &Id) -> f64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    let mut mixed = root.into_u64() ^ SEED.get_or_init(random);
    // The output function of splitmix64 (Steele, Lea and Flood 2014).
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// The keys of foreign spans are even.
fn key(id: &Id) -> u64 {
    id.into_u64() << 1
}

/// Returns the context of the nearest tracked ancestor, or one that is the same for all spans below the root.
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
                ours.set_attribute("target", metadata.target().into());
            }
            // Before the span is locked, because formatting a value may itself be traced.
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
        // Also after collection was switched off: every span that was entered must be left.
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
            let busy = tracked.busy.as_micros().to_compact_string();
            tracked.span.set_attribute("busy_us", busy);
        }
    }
}
