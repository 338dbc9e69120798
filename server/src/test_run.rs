//! A run of an app, built from its events: a test, or the events that filters select in the store. Lines of a report file go in,
//! numbers come out. This module knows no HTML, HTTP, database or clock, so any two runs can be compared by the same numbers.

mod app;
mod lines;
mod pages;
mod samples;
mod spans;
mod spread;
mod stalls;
mod traffic;

#[cfg(test)]
mod worked_examples;

use unjank_protocol::{AppStart, Limits, Metric, Timestamp};

pub use self::app::{AppFacts, Losses};
pub use self::lines::Collector;
pub use self::pages::{Frames, Level, Loads, Page, Part};
pub use self::samples::{Measurable, Measured, Quantity, Values};
pub use self::spans::{Redrawn, SpanName};
pub use self::spread::{Spread, Summary};
pub use self::stalls::{Stall, Stalls};
pub use self::traffic::Bytes;

/// From the first event to the end of the last, in microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasted {
    pub from: i64,
    pub to: i64,
}

impl Lasted {
    fn wider(from: Option<Self>, other: Self) -> Self {
        from.map_or(other, |one| Self {
            from: one.from.min(other.from),
            to: one.to.max(other.to),
        })
    }
}

/// A whole run.
#[derive(Debug, Default)]
pub struct TestRun {
    pub app: AppFacts,
    /// `None` if no event has a time. Traffic has a day only.
    pub lasted: Option<Lasted>,
    pub events: u64,
    /// Lines that are not an event known to this version.
    pub skipped: u64,
    /// By lost time, most first.
    pub pages: Vec<Page>,
    pub starts: Vec<Start>,
    /// The longest stalls, longest first.
    pub stalls: Stalls,
    /// By total time, most first.
    pub spans: Vec<SpanName>,
    pub traffic: Vec<Bytes>,
    pub redrawn: Vec<Redrawn>,
    /// Metrics that are not part of pages, by name.
    pub metrics: Vec<(String, Level)>,
    pub losses: Losses,
    /// Single values, to compare runs.
    pub measured: Measured,
}

/// A start of the app.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub kind: &'static str,
    pub start: Timestamp,
    pub duration_ms: i64,
    pub page: String,
    /// Names and milliseconds, in the reported order.
    pub phases: Vec<(String, u32)>,
}

impl From<&AppStart<'_>> for Start {
    fn from(start: &AppStart<'_>) -> Self {
        let phases = start.phases.iter();
        Self {
            kind: start.kind.as_str(),
            start: start.start,
            duration_ms: start.duration_ms,
            page: start.page.to_string(),
            phases: phases
                .map(|phase| (phase.name.to_string(), phase.duration_ms))
                .collect(),
        }
    }
}

impl TestRun {
    /// Whether the run has no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Returns the frames of all pages together.
    #[must_use]
    pub fn frames(&self) -> Option<Frames> {
        let mut all = self.pages.iter().filter_map(|page| page.frames.as_ref());
        let mut sum = Frames {
            over_time: Vec::new(),
            ..all.next()?.clone()
        };
        all.for_each(|frames| sum.add(frames));
        Some(sum)
    }
}

/// Returns the weight of a metric's value, which is a single sample or the mean of several.
fn samples(metric: &Metric<'_>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "samples of one metric")]
    let count = metric.count.unwrap_or(1).max(1) as f64;
    count * weight(metric.sample_rate)
}

/// Returns the number of events that a sampled event represents.
fn weight(sample_rate: f64) -> f64 {
    if (Limits::SMALLEST_RATE..=1.0).contains(&sample_rate) {
        1.0 / sample_rate
    } else {
        1.0
    }
}
