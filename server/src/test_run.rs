//! A run of an app, as its events tell it: of a test, or of whatever filters leave in the store. Lines of a report file go in,
//! numbers come out; nothing here knows HTML, HTTP, a database or a clock, so that two runs can be compared by the same numbers.

mod app;
mod lines;
mod measured;
mod pages;
mod spans;
mod spread;
mod stalls;
mod traffic;

#[cfg(test)]
mod worked_examples;

use unjank_protocol::{AppStart, Metric, Timestamp};

pub use self::app::{AppFacts, Losses};
pub use self::lines::Collector;
pub use self::measured::{Measurable, Measured, Quantity, Values};
pub use self::pages::{Frames, Level, Loads, Page, Part};
pub use self::spans::{Redrawn, SpanName};
pub use self::spread::{Spread, Summary};
pub use self::stalls::{Stall, Stalls};
pub use self::traffic::Bytes;

/// Microseconds since the epoch: from the first event to the end of the last.
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
    /// Missing when nothing has a time: traffic has a day only.
    pub lasted: Option<Lasted>,
    pub events: u64,
    /// Lines that are no event this version knows.
    pub skipped: u64,
    /// Those with most lost time first.
    pub pages: Vec<Page>,
    pub starts: Vec<Start>,
    /// The longest first, as many as are worth reading.
    pub stalls: Stalls,
    /// Those that took most time first.
    pub spans: Vec<SpanName>,
    pub traffic: Vec<Bytes>,
    pub redrawn: Vec<Redrawn>,
    /// Every monitor but those of the pages, by name.
    pub metrics: Vec<(String, Level)>,
    pub losses: Losses,
    /// Single values, to compare runs by.
    pub measured: Measured,
}

/// A start of the app.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub kind: &'static str,
    pub start: Timestamp,
    pub duration_ms: i64,
    pub page: String,
    /// Names and milliseconds, in the order they were reported.
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
    /// Nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Frames of all pages.
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

/// A value is that of a single sample, or the mean of some.
fn samples(metric: &Metric<'_>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "samples of one metric")]
    let count = metric.count.unwrap_or(1).max(1) as f64;
    count * weight(metric.sample_rate)
}

/// How many events one stands for.
fn weight(sample_rate: f64) -> f64 {
    if sample_rate > 0.0 && sample_rate <= 1.0 {
        1.0 / sample_rate
    } else {
        1.0
    }
}
