//! Single values that the app measures, an event each. `monitor` has values that are aggregated over an interval.

use std::borrow::Cow;

use unjank_monitors::bounded;
use unjank_monitors::last_values::SINCE_LAST;
use unjank_protocol::{Attributes, Metric, Signal};

use super::client::{self, Shared};
use super::span_record::Queued;
use crate::bounded_text::cut;
use crate::clock::Moment;
use crate::event::{Event, text};

/// Records a value with the current time, screen and uptime. The name includes the unit, such as `memory_used_bytes`, and is cut
/// at 1 KiB. A value that is not finite is ignored. Does nothing while nothing is collected. For values that change often, use
/// [`crate::sample`].
///
/// From the second value on, a metric has the attribute `since_last_ms`: the time since the last value of the same metric with the same
/// attributes in this process, for the first 256 metrics.
///
/// ```
/// unjank::metric("battery_percent", 81.0);
/// ```
pub fn metric(name: impl Into<Cow<'static, str>>, value: f64) {
    client::with(|shared| record(shared, cut(name.into()), value));
}

/// The same, with attributes of the app, by which the server groups and filters (`attribute.` and the name). Give them few different
/// values, and none that belongs to a person. At most 64; names and values are cut at 1 KiB.
///
/// ```
/// unjank::metric_with("cache_bytes", 12_582_912.0, &[("cache", "images"), ("tier", "disk")]);
/// ```
pub fn metric_with(
    name: impl Into<Cow<'static, str>>,
    value: f64,
    attributes: &[(&'static str, &str)],
) {
    client::with(|shared| record_with(shared, cut(name.into()), value, attributes));
}

pub(crate) fn record(shared: &Shared, name: Cow<'static, str>, value: f64) {
    record_with(shared, name, value, &[]);
}

/// Maximum number of attributes of an event.
const MOST: usize = 64;

pub(crate) fn record_with(
    shared: &Shared,
    name: Cow<'static, str>,
    value: f64,
    attributes: &[(&'static str, &str)],
) {
    if !value.is_finite() {
        return;
    }
    let attributes = attributes
        .iter()
        .take(MOST)
        .map(|(name, value)| (bounded(name), bounded(value)));
    let now = Moment::now();
    let Some(kept) = shared.keeps_metric(&name, attributes.clone(), now.millis()) else {
        return;
    };
    let attributes = attributes.map(|(name, value)| (text(name.into()), value.to_owned().into()));
    let metric = Metric {
        name: text(name),
        time: shared.wall.at(now),
        value,
        min: None,
        max: None,
        count: None,
        page: shared.page_name(),
        uptime_ms: now.millis(),
        network: shared.network(),
        attributes: Attributes(attributes.collect()),
        sample_rate: 1.0,
    };
    shared.push_metric(metric, &kept);
}

/// What sampling and earlier values add to a value that is kept.
struct Kept {
    sample_rate: f64,
    since_last_ms: Option<u64>,
}

impl Shared {
    /// Records a value, with the time since the last one of its metric, sampled or not.
    pub(crate) fn record_metric(&self, metric: Metric<'static>) {
        let attributes = metric.attributes.0.iter();
        let attributes = attributes.map(|(name, value)| (&**name, &**value));
        if let Some(kept) = self.keeps_metric(&metric.name, attributes, metric.uptime_ms) {
            self.push_metric(metric, &kept);
        }
    }

    /// Notes the time of a value, and draws whether sampling keeps it. Most values are not kept, so this allocates nothing.
    fn keeps_metric<'n, 'v>(
        &self,
        name: &str,
        attributes: impl Iterator<Item = (&'n str, &'v str)>,
        uptime_ms: u64,
    ) -> Option<Kept> {
        if !self.settings.load().collects() {
            return None;
        }
        let mut last_values = self.meters.last_values();
        let since_last_ms = last_values.since_last(name, attributes, uptime_ms);
        drop(last_values);
        Some(Kept {
            sample_rate: self.draw_rate(Signal::Metrics)?,
            since_last_ms,
        })
    }

    fn push_metric(&self, mut metric: Metric<'static>, kept: &Kept) {
        metric.sample_rate = kept.sample_rate;
        if let Some(since) = kept.since_last_ms {
            let attributes = &mut metric.attributes.0;
            attributes.push((SINCE_LAST.into(), since.to_string().into()));
        }
        self.push(Queued::Event(Box::new(Event::Metric(metric))));
    }
}
