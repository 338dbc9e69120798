//! Functions and rules of the app that take part in collection.

use std::sync::Arc;
use std::time::Duration;

use super::{Config, Mode};
use crate::event::Event;
use crate::measure::should_trace::{ShouldTrace, SpanStart};
use crate::measure::span_tags::SpanTags;
use crate::measure::urgent::{OnUrgent, Urgent};

/// Changes an event before it is sent, or drops it.
pub(crate) type BeforeSend = dyn Fn(&mut Event) -> bool + Send + Sync;

#[derive(Clone, Default)]
pub(crate) struct Hooks {
    /// In the order in which they run.
    pub(crate) before_send: Vec<Arc<BeforeSend>>,
    pub(crate) on_urgent: Vec<Arc<OnUrgent>>,
    pub(crate) should_trace: Option<Arc<ShouldTrace>>,
    pub(crate) span_tags: Option<Arc<SpanTags>>,
    /// Shorter methods are dropped; zero keeps all.
    pub(crate) shortest_method: Duration,
    print_only: bool,
}

impl Config {
    /// Adds a filter that sees every event before it is sent, and may change it. The event is dropped and counted if the filter
    /// returns `false` or panics. Several filters run in the order of the calls, until one drops the event; each sees the changes of those
    /// before it. Traffic sums skip the filters, because they contain no names from the app. Filters run on the background thread, before
    /// reporters.
    ///
    /// ```
    /// use unjank::{Config, Event};
    ///
    /// let config = Config::new("http://127.0.0.1:8080", "demo")
    ///     .before_send(|event| match event {
    ///         Event::Span(span) => &*span.name != "secret",
    ///         _ => true,
    ///     })
    ///     .before_send(|event| {
    ///         if let Event::Jank(jank) = event {
    ///             jank.run_log.clear();
    ///         }
    ///         true
    ///     });
    /// ```
    #[must_use]
    pub fn before_send(
        mut self,
        filter: impl Fn(&mut Event) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.hooks.before_send.push(Arc::new(filter));
        self
    }

    /// Adds a listener that is called at once when a stall begins, when a stall has ended, and for a panic, without waiting for a batch
    /// or for the network. See [`Urgent`].
    ///
    /// ```
    /// use unjank::{Config, Urgent};
    ///
    /// let config = Config::new("http://127.0.0.1:8080", "demo").on_urgent(|urgent| {
    ///     if let Urgent::StallBegan(stall) = urgent {
    ///         // … note it in the log of the app …
    ///         # drop(stall);
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn on_urgent(mut self, listener: impl Fn(&Urgent) + Send + Sync + 'static) -> Self {
        self.hooks.on_urgent.push(Arc::new(listener));
        self
    }

    /// Sets a function that decides whether a span is recorded. It is called for each span that the settings keep, on the thread that
    /// begins the span, so it can drop spans but not add any. Calls of the SDK inside it do nothing, and a span for which it panics is not
    /// recorded. Children of a span that is not recorded belong to the nearest recorded span above. A second call replaces the
    /// function. Without one, nothing is called.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use unjank::Config;
    /// use unjank::protocol::SpanKind;
    ///
    /// static METHODS: AtomicBool = AtomicBool::new(true); // the app changes it at run time
    ///
    /// let config = Config::new("http://127.0.0.1:8080", "demo")
    ///     .should_trace(|span| span.kind != SpanKind::Method || METHODS.load(Ordering::Relaxed));
    /// ```
    #[must_use]
    pub fn should_trace(
        mut self,
        decide: impl Fn(&SpanStart<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.hooks.should_trace = Some(Arc::new(decide));
        self
    }

    /// Gives tags to spans by patterns; [`SpanTags`] has the format. The remote configuration selects spans by tags (`tracing.tags`).
    /// A second call replaces the patterns.
    ///
    /// ```
    /// let tags = "shop::network::* = network".parse()?;
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo").span_tags(tags);
    /// # drop(config);
    /// # Ok::<(), unjank::SpanTagsError>(())
    /// ```
    #[must_use]
    pub fn span_tags(mut self, tags: SpanTags) -> Self {
        self.hooks.span_tags = Some(Arc::new(tags));
        self
    }

    /// Drops spans of methods that took less than this and had no error; the losses of the device count them (`too_short`). A short
    /// method is kept if a span below it is kept or may still come: one on another thread, in a task, or detached. So no span loses its
    /// parent. Methods are functions with `#[traced]`; an `async` one that calls other `async` ones is kept. The default, zero, keeps all.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo")
    ///     .min_method_duration(Duration::from_micros(100));
    /// ```
    #[must_use]
    pub fn min_method_duration(mut self, shortest: Duration) -> Self {
        self.hooks.shortest_method = shortest;
        self
    }

    /// In [`Mode::Development`], only prints events, or gives them to the app's reporters: filters and batches are skipped, nothing is
    /// written to the data directory or sent, and no configuration is fetched. Other modes ignore this, so that a release can have the
    /// same configuration. The default is `false`.
    ///
    /// ```
    /// use unjank::{Config, Mode};
    ///
    /// let config = Config::new("", "").app("com.example.shop", "4.12.0").mode(Mode::Development).print_only(true);
    /// ```
    #[must_use]
    pub fn print_only(mut self, print_only: bool) -> Self {
        self.hooks.print_only = print_only;
        self
    }

    /// Keeps the rest of the SDK off disk and network if events are only printed.
    pub(crate) fn apply_print_only(&mut self) {
        if self.prints_only() {
            self.offline = true;
            self.data_dir = None;
        }
    }

    /// Returns whether events go to reporters and nowhere else.
    pub(crate) fn prints_only(&self) -> bool {
        self.hooks.print_only && self.mode == Mode::Development
    }
}
