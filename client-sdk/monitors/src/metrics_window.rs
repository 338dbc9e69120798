//! Samples of monitors, aggregated to one value per interval.

use std::collections::BTreeMap;

use unjank_protocol::config::Monitor;
use unjank_protocol::{Attributes, Metric, Text};

use crate::{Scene, Uptime, bounded};

/// Maximum number of metrics at the same time, counted with their attributes.
const METRICS: usize = 64;
/// Maximum number of attributes of a sample.
const ATTRIBUTES: usize = 8;

/// The key by which samples are aggregated.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// The name of the monitor in the remote configuration.
    pub monitor: &'a str,
    /// The name of the metric, cut at 1 KiB.
    pub metric: &'a str,
    /// Names and values of attributes: at most 8, in any order; further ones are ignored. Each text is cut at 1 KiB.
    pub attributes: &'a [(&'a str, &'a str)],
}

impl<'a> Series<'a> {
    /// Returns the attributes within their limits, by name.
    fn bounded_attributes(&self) -> Vec<(&'a str, &'a str)> {
        let few = self.attributes.iter().take(ATTRIBUTES);
        let mut attributes: Vec<_> = few
            .map(|(name, value)| (bounded(name), bounded(value)))
            .collect();
        attributes.sort_unstable();
        attributes
    }
}

/// Aggregates samples. After each interval of its monitor, a metric becomes one event with the mean as its `value`, and with
/// `min`, `max` and `count`. A single sample is sent unchanged, without these three.
///
/// An interval begins with its first sample. Its event has the time, page and uptime of its end. A metric means something only
/// with its page, so a change of the page ends all intervals. A monitor that is not configured is off, and its samples are
/// ignored. Samples that are not finite, and those of a 65th metric, are dropped and counted.
///
/// ```
/// use unjank_monitors::{MetricWindows, Scene, Uptime};
/// use unjank_protocol::config::Document;
///
/// let at = Uptime::from_millis;
/// let mut metrics = MetricWindows::new(&Document::default().monitors, Scene::new("Feed"));
/// for (time, bytes) in [(0, 40.0), (2_000, 60.0), (4_000, 50.0)] {
///     assert!(metrics.sample("memory", "memory_used_bytes", bytes, at(time)).is_none());
/// }
/// let event = &metrics.poll(at(5_000))[0];
/// assert_eq!((event.value, event.min, event.max, event.count), (50.0, Some(40.0), Some(60.0), Some(3)));
/// ```
#[derive(Debug)]
pub struct MetricWindows {
    monitors: BTreeMap<String, u64>,
    scene: Scene,
    open: Vec<Open>,
    dropped: u64,
}

#[derive(Debug)]
struct Open {
    monitor: String,
    metric: String,
    attributes: Vec<(String, String)>,
    began: Uptime,
    last: Uptime,
    min: f64,
    max: f64,
    mean: f64,
    count: u64,
}

impl MetricWindows {
    /// Creates an aggregator without samples.
    #[must_use]
    pub fn new(monitors: &BTreeMap<String, Monitor>, scene: Scene) -> Self {
        let mut windows = Self {
            monitors: BTreeMap::new(),
            scene,
            open: Vec::new(),
            dropped: 0,
        };
        windows.set_config(monitors);
        windows
    }

    /// Sets the monitors that are on, with intervals from 100 to 3,600,000 ms; at most 64. Drops open samples of monitors that
    /// are now off.
    pub fn set_config(&mut self, monitors: &BTreeMap<String, Monitor>) {
        let monitors = monitors.iter().take(64).map(|(name, monitor)| {
            let interval = u64::from(monitor.interval_ms.clamp(100, 3_600_000));
            (name.clone(), interval.saturating_mul(1_000))
        });
        self.monitors = monitors.collect();
        let running = &self.monitors;
        self.open.retain(|open| running.contains_key(&open.monitor));
    }

    /// Sets the surroundings. A change of the page ends all intervals.
    #[must_use]
    pub fn set_scene(&mut self, now: Uptime, scene: Scene) -> Vec<Metric<'static>> {
        let mut ended = Vec::new();
        if scene.page != self.scene.page {
            ended = self.flush(now);
        }
        self.scene = scene;
        ended
    }

    /// Adds a sample of `metric` from `monitor`, without attributes. The name is cut at 1 KiB. Returns the previous interval if it is
    /// over.
    #[must_use]
    pub fn sample(
        &mut self,
        monitor: &str,
        metric: &str,
        value: f64,
        now: Uptime,
    ) -> Option<Metric<'static>> {
        let series = Series {
            monitor,
            metric,
            attributes: &[],
        };
        self.sample_of(series, value, now)
    }

    /// Adds a sample of a series. Samples with different attributes are aggregated apart. Returns the previous interval if it is over.
    #[must_use]
    pub fn sample_of(
        &mut self,
        series: Series<'_>,
        value: f64,
        now: Uptime,
    ) -> Option<Metric<'static>> {
        let interval = *self.monitors.get(series.monitor)?;
        if !value.is_finite() {
            self.dropped = self.dropped.saturating_add(1);
            return None;
        }
        let (metric, attributes) = (bounded(series.metric), series.bounded_attributes());
        let is_it = |open: &Open| {
            let known = open.attributes.iter();
            let known = known.map(|(name, value)| (name.as_str(), value.as_str()));
            open.metric == metric
                && open.monitor == series.monitor
                && known.eq(attributes.iter().copied())
        };
        let Some(position) = self.open.iter().position(is_it) else {
            self.open(Open::new(series.monitor, metric, attributes), value, now);
            return None;
        };
        let open = self.open.get_mut(position)?;
        if now.micros_since(open.began) < interval {
            open.add(value, now);
            return None;
        }
        let ended = self.open.swap_remove(position);
        self.open(Open::new(series.monitor, metric, attributes), value, now);
        Some(ended.event(now, interval, &self.scene))
    }

    /// Ends the intervals whose time is over.
    #[must_use]
    pub fn poll(&mut self, now: Uptime) -> Vec<Metric<'static>> {
        self.end(now, |open, interval| {
            now.micros_since(open.began) >= interval
        })
    }

    /// Ends all intervals, however short they are.
    #[must_use]
    pub fn flush(&mut self, now: Uptime) -> Vec<Metric<'static>> {
        self.end(now, |_, _| true)
    }

    /// Returns the number of samples dropped since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn open(&mut self, open: Open, value: f64, now: Uptime) {
        if self.open.len() >= METRICS {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.open.push(Open {
            began: now,
            last: now,
            min: value,
            max: value,
            mean: value,
            count: 1,
            ..open
        });
    }

    fn end(&mut self, now: Uptime, is_over: impl Fn(&Open, u64) -> bool) -> Vec<Metric<'static>> {
        let mut events = Vec::new();
        let mut still_open = Vec::new();
        for open in std::mem::take(&mut self.open) {
            let interval = self.monitors.get(&open.monitor).copied();
            let interval = interval.unwrap_or_default();
            if is_over(&open, interval) {
                events.push(open.event(now, interval, &self.scene));
            } else {
                still_open.push(open);
            }
        }
        self.open = still_open;
        events
    }
}

impl Open {
    /// Creates an interval without samples.
    fn new(monitor: &str, metric: &str, attributes: Vec<(&str, &str)>) -> Self {
        let attributes = attributes.into_iter();
        Self {
            monitor: monitor.to_owned(),
            metric: metric.to_owned(),
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            began: Uptime::default(),
            last: Uptime::default(),
            min: 0.0,
            max: 0.0,
            mean: 0.0,
            count: 0,
        }
    }

    fn add(&mut self, value: f64, now: Uptime) {
        self.last = now;
        self.count = self.count.saturating_add(1);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        // The count stays far below 2^53. Unlike a sum, a running mean cannot overflow.
        #[expect(clippy::cast_precision_loss, reason = "far fewer samples than 2^53")]
        let share = 1.0 / self.count as f64;
        self.mean += value * share - self.mean * share;
        self.mean = self.mean.clamp(self.min, self.max);
    }

    fn event(self, now: Uptime, interval: u64, scene: &Scene) -> Metric<'static> {
        let several = self.count > 1;
        let end = if several {
            now.min(self.began.plus(interval))
        } else {
            self.last
        };
        Metric {
            name: Text::from(self.metric),
            time: scene.wall.time(end),
            value: self.mean,
            min: several.then_some(self.min),
            max: several.then_some(self.max),
            count: several.then_some(self.count),
            page: scene.page_text(),
            uptime_ms: end.as_millis(),
            network: scene.network,
            attributes: Attributes(
                self.attributes
                    .into_iter()
                    .map(|(name, value)| (Text::from(name), Text::from(value)))
                    .collect(),
            ),
            sample_rate: 1.0,
        }
    }
}
