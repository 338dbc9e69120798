//! Events of the app, on their way to a batch.

use std::borrow::Cow;

use serde::Serialize;
use unjank_protocol::{
    AppStart, FrameWindow, Jank, Limits, Metric, PageLoad, Recomposition, Signal, Span, Traffic,
};

/// An event as it will be sent: what [`crate::Config::before_send`] may change and reporters see. The fields are those of the wire,
/// [`crate::protocol`]; durations are in microseconds (`_us`) or milliseconds (`_ms`).
///
/// ```
/// use unjank::Event;
///
/// fn slow(event: &Event) -> bool {
///     match event {
///         Event::Span(span) => span.duration_us > 1_000_000,
///         Event::PageLoad(load) => load.total_ms > 1_000,
///         _ => false,
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "signal", content = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The time between two marks in the code.
    Span(Span<'static>),
    /// Frames over a short period on one page.
    FrameWindow(FrameWindow<'static>),
    /// The main loop was blocked.
    Jank(Jank<'static>),
    /// Bytes of a day.
    Traffic(Traffic<'static>),
    /// A page was loaded.
    PageLoad(PageLoad<'static>),
    /// A value of a monitor.
    Metric(Metric<'static>),
    /// The app was started.
    AppStart(AppStart<'static>),
    /// A function of the UI was redrawn.
    Recomposition(Recomposition<'static>),
}

impl Event {
    /// Notes that only this share of such events was kept.
    pub(crate) fn was_kept_with(&mut self, probability: f64) {
        let rate = match self {
            Self::Span(span) => &mut span.sample_rate,
            Self::FrameWindow(window) => &mut window.sample_rate,
            Self::Jank(jank) => &mut jank.sample_rate,
            Self::PageLoad(load) => &mut load.sample_rate,
            Self::Metric(metric) => &mut metric.sample_rate,
            Self::AppStart(start) => &mut start.sample_rate,
            Self::Recomposition(redrawn) => &mut redrawn.sample_rate,
            // It is not sampled.
            Self::Traffic(_) => return,
        };
        *rate = (*rate * probability).max(Limits::SMALLEST_RATE);
    }

    /// The list of a batch it belongs to.
    ///
    /// ```
    /// let is_traffic = |event: &unjank::Event| event.signal() == unjank::Signal::Traffic;
    /// ```
    #[must_use]
    pub fn signal(&self) -> Signal {
        match self {
            Self::Span(_) => Signal::Spans,
            Self::FrameWindow(_) => Signal::FrameWindows,
            Self::Jank(_) => Signal::Janks,
            Self::Traffic(_) => Signal::Traffic,
            Self::PageLoad(_) => Signal::PageLoads,
            Self::Metric(_) => Signal::Metrics,
            Self::AppStart(_) => Signal::AppStarts,
            Self::Recomposition(_) => Signal::Recompositions,
        }
    }
}

pub(crate) fn text(text: Cow<'static, str>) -> unjank_protocol::Text<'static> {
    match text {
        Cow::Borrowed(text) => text.into(),
        Cow::Owned(text) => text.into(),
    }
}
