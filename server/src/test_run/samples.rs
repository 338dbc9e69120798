//! The single values of a run, by thing and quantity. They are needed to compare runs, where sums and percentiles of each run are
//! not enough.

use std::collections::BTreeMap;

use unjank_protocol::{AppStart, FrameWindow, Jank, Metric, PageLoad, Span, SpanKind, Traffic};

use super::{Frames, samples, weight};

/// Maximum number of kept values per series. Beyond it, every second value is kept, then every fourth, and so on.
const MOST_VALUES: usize = 4_096;
/// Maximum number of series, for apps that put numbers into names.
const MOST_SERIES: usize = 20_000;
/// The names of the metrics that the SDK measures.
pub(super) const CPU: &str = "cpu_percent";
pub(super) const MEMORY: &str = "memory_used_bytes";

/// The thing that values belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measurable {
    Page(String),
    /// A span that the app marks manually. Function calls belong in flame graphs.
    Span(String),
    /// A start of this kind: cold, warm or hot.
    Start(String),
    /// The run as a whole.
    Run,
}

/// A measured property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Frames per second, by frame window.
    Fps,
    /// Share of slow frames among the drawn ones, 0 to 1, by frame window.
    SlowShare,
    /// Share of frozen frames, by frame window.
    FrozenShare,
    /// Milliseconds of jank per minute, by frame window.
    JankPerMinute,
    /// Stalls of the main thread, by run.
    Stalls,
    /// Total duration of the stalls in milliseconds, by run.
    StalledMs,
    T1Ms,
    T2Ms,
    T3Ms,
    TotalMs,
    CpuPercent,
    MemoryBytes,
    /// Duration of a span in milliseconds.
    DurationMs,
    /// Duration of a start in milliseconds.
    StartMs,
    /// Bytes sent and received, by run.
    TrafficBytes,
}

impl Quantity {
    /// Whether a run has a single value, which is a sum.
    #[must_use]
    pub fn is_of_run(self) -> bool {
        matches!(self, Self::Stalls | Self::StalledMs | Self::TrafficBytes)
    }
}

/// Values with their weights, in order of arrival.
#[derive(Clone, Debug)]
pub struct Values {
    /// A value and its weight: the number of events, frames or milliseconds that it represents.
    pub kept: Vec<(f64, f64)>,
    /// The number of all values, kept or not.
    pub seen: u64,
    every: u64,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            seen: 0,
            every: 1,
        }
    }
}

impl Values {
    fn add(&mut self, value: f64, weight: f64) {
        if !value.is_finite() || weight <= 0.0 {
            return;
        }
        if self.seen.is_multiple_of(self.every) {
            self.kept.push((value, weight));
        }
        self.seen += 1;
        if self.kept.len() >= MOST_VALUES {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every *= 2;
        }
    }

    /// Adds to a sum, which is kept as a single value.
    fn add_up(&mut self, value: f64) {
        match self.kept.first_mut() {
            Some((sum, _)) => *sum += value,
            None => self.add(value, 1.0),
        }
    }
}

/// All values of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured(BTreeMap<(Measurable, Quantity), Values>);

impl Measured {
    /// Iterates over all series.
    pub fn iter(&self) -> impl Iterator<Item = (&(Measurable, Quantity), &Values)> {
        self.0.iter()
    }

    #[must_use]
    pub fn get(&self, of: &Measurable, quantity: Quantity) -> Option<&Values> {
        self.0.get(&(of.clone(), quantity))
    }

    fn values(&mut self, of: &Measurable, quantity: Quantity) -> Option<&mut Values> {
        let key = (of.clone(), quantity);
        if self.0.len() >= MOST_SERIES && !self.0.contains_key(&key) {
            return None;
        }
        Some(self.0.entry(key).or_default())
    }

    /// Adds a value.
    pub fn add(&mut self, of: &Measurable, quantity: Quantity, value: f64, weight: f64) {
        if let Some(values) = self.values(of, quantity) {
            values.add(value, weight);
        }
    }

    fn add_up(&mut self, of: &Measurable, quantity: Quantity, value: f64) {
        if let Some(values) = self.values(of, quantity) {
            values.add_up(value);
        }
    }

    /// Registers a shown page with zero stalls, and returns it.
    fn shown(&mut self, page: &str) -> Measurable {
        let page = Measurable::Page(page.to_owned());
        self.add_up(&page, Quantity::Stalls, 0.0);
        self.add_up(&page, Quantity::StalledMs, 0.0);
        page
    }

    pub(super) fn add_window(&mut self, window: &FrameWindow<'_>) {
        let page = self.shown(&window.page);
        let frames = Frames::from(window);
        let shown = frames.shown_ms;
        let by_frame = [
            (Quantity::SlowShare, frames.slow_share()),
            (Quantity::FrozenShare, frames.frozen_share()),
        ];
        let by_time = [
            (Quantity::Fps, frames.fps()),
            (
                Quantity::JankPerMinute,
                frames.jank_share().map(|share| share * 60_000.0),
            ),
        ];
        let by_frame = by_frame.map(|(quantity, value)| (quantity, value, frames.drawn));
        let by_time = by_time.map(|(quantity, value)| (quantity, value, shown));
        for (quantity, value, weight) in by_frame.into_iter().chain(by_time) {
            if let Some(value) = value {
                self.add(&page, quantity, value, weight);
            }
        }
    }

    pub(super) fn add_load(&mut self, load: &PageLoad<'_>) {
        let page = self.shown(&load.page);
        let times = [
            (Quantity::T1Ms, load.t1_ms),
            (Quantity::T2Ms, load.t2_ms),
            (Quantity::T3Ms, load.t3_ms),
            (Quantity::TotalMs, Some(load.total_ms)),
        ];
        for (quantity, time) in times {
            if let Some(time) = time {
                self.add(&page, quantity, float(time), weight(load.sample_rate));
            }
        }
    }

    pub(super) fn add_stall(&mut self, jank: &Jank<'_>) {
        let page = self.shown(&jank.page);
        let weight = weight(jank.sample_rate);
        self.add_up(&page, Quantity::Stalls, weight);
        let lost = float(jank.duration_ms) * weight;
        self.add_up(&page, Quantity::StalledMs, lost);
    }

    pub(super) fn add_metric(&mut self, metric: &Metric<'_>) {
        let quantity = match &*metric.name {
            CPU => Quantity::CpuPercent,
            MEMORY => Quantity::MemoryBytes,
            _ => return,
        };
        let page = Measurable::Page(metric.page.to_string());
        self.add(&page, quantity, metric.value, samples(metric));
    }

    pub(super) fn add_span(&mut self, span: &Span<'_>) {
        if span.kind == SpanKind::Manual {
            let name = Measurable::Span(span.name.to_string());
            let lasted = float(span.duration_us.max(0)) / 1_000.0;
            self.add(
                &name,
                Quantity::DurationMs,
                lasted,
                weight(span.sample_rate),
            );
        }
    }

    pub(super) fn add_start(&mut self, start: &AppStart<'_>) {
        let kind = Measurable::Start(start.kind.as_str().to_owned());
        self.add(
            &kind,
            Quantity::StartMs,
            float(start.duration_ms),
            weight(start.sample_rate),
        );
    }

    pub(super) fn add_traffic(&mut self, traffic: &Traffic<'_>) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2⁵³ bytes")]
        let bytes = traffic.tx_bytes.saturating_add(traffic.rx_bytes) as f64;
        self.add_up(&Measurable::Run, Quantity::TrafficBytes, bytes);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a day at most")]
fn float(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_values_are_spread_evenly_over_all_values() {
        let mut values = Values::default();
        (0..100_000).for_each(|value| values.add(f64::from(value), 1.0));
        assert_eq!(values.seen, 100_000);
        assert!((MOST_VALUES / 4..MOST_VALUES).contains(&values.kept.len()));
        let steps = values.kept.windows(2).map(|two| two[1].0 - two[0].0);
        assert!(steps.into_iter().all(|step| step == 32.0));
        assert!(values.kept.last().is_some_and(|(last, _)| *last > 99_000.0));
    }
}
