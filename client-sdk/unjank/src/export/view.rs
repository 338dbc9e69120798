//! An event that is exported: recorded in this process, or read from a file.

use serde::Deserialize;
use serde_json::value::RawValue;
use unjank_protocol::{
    AppStart, FrameWindow, Jank, Metric, PageLoad, Recomposition, Span, Timestamp,
};

use crate::event::Event;

/// Borrows an event. Traffic has no view, because it covers whole days.
#[derive(Clone, Copy, Debug)]
pub(super) enum View<'e> {
    Span(&'e Span<'e>),
    FrameWindow(&'e FrameWindow<'e>),
    Jank(&'e Jank<'e>),
    PageLoad(&'e PageLoad<'e>),
    Metric(&'e Metric<'e>),
    AppStart(&'e AppStart<'e>),
    Recomposition(&'e Recomposition<'e>),
}

impl<'e> View<'e> {
    pub(super) fn of(event: &'e Event) -> Option<Self> {
        Some(match event {
            Event::Span(span) => Self::Span(span),
            Event::FrameWindow(window) => Self::FrameWindow(window),
            Event::Jank(jank) => Self::Jank(jank),
            Event::PageLoad(load) => Self::PageLoad(load),
            Event::Metric(metric) => Self::Metric(metric),
            Event::AppStart(start) => Self::AppStart(start),
            Event::Recomposition(redrawn) => Self::Recomposition(redrawn),
            Event::Traffic(_) => return None,
        })
    }

    pub(super) fn span(self) -> Option<&'e Span<'e>> {
        match self {
            Self::Span(span) => Some(span),
            _ => None,
        }
    }

    /// Returns when the event began.
    pub(super) fn start(self) -> Timestamp {
        match self {
            Self::Span(span) => span.start,
            Self::FrameWindow(window) => window.start,
            Self::Jank(jank) => jank.start,
            Self::PageLoad(load) => load.start,
            Self::Metric(metric) => metric.time,
            Self::AppStart(start) => start.start,
            Self::Recomposition(redrawn) => redrawn.start,
        }
    }
}

/// An event that was read from a line of a report.
#[derive(Debug)]
pub(super) enum Read<'t> {
    Span(Span<'t>),
    FrameWindow(FrameWindow<'t>),
    Jank(Jank<'t>),
    PageLoad(PageLoad<'t>),
    Metric(Metric<'t>),
    AppStart(AppStart<'t>),
    Recomposition(Recomposition<'t>),
    /// Traffic, the app and losses, which no trace shows, and signals of later versions.
    Other,
}

/// A line as [`crate::ReportFile`] writes it.
#[derive(Deserialize)]
struct Line<'t> {
    signal: &'t str,
    #[serde(borrow)]
    event: &'t RawValue,
}

impl<'t> Read<'t> {
    pub(super) fn line(line: &'t str) -> serde_json::Result<Self> {
        fn read<'t, T: Deserialize<'t>>(event: &'t RawValue) -> serde_json::Result<T> {
            serde_json::from_str(event.get())
        }
        let Line { signal, event } = serde_json::from_str(line)?;
        Ok(match signal {
            "span" => Self::Span(read(event)?),
            "frame_window" => Self::FrameWindow(read(event)?),
            "jank" => Self::Jank(read(event)?),
            "page_load" => Self::PageLoad(read(event)?),
            "metric" => Self::Metric(read(event)?),
            "app_start" => Self::AppStart(read(event)?),
            "recomposition" => Self::Recomposition(read(event)?),
            _ => Self::Other,
        })
    }

    pub(super) fn view(&self) -> Option<View<'_>> {
        Some(match self {
            Self::Span(span) => View::Span(span),
            Self::FrameWindow(window) => View::FrameWindow(window),
            Self::Jank(jank) => View::Jank(jank),
            Self::PageLoad(load) => View::PageLoad(load),
            Self::Metric(metric) => View::Metric(metric),
            Self::AppStart(start) => View::AppStart(start),
            Self::Recomposition(redrawn) => View::Recomposition(redrawn),
            Self::Other => return None,
        })
    }
}
