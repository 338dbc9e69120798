//! Single values that the app measures, an event each. `monitor` has values that are aggregated over an interval.

use std::borrow::Cow;

use unjank_monitors::bounded;
use unjank_protocol::{Attributes, Metric, Signal};

use super::client::{self, Shared};
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
        .map(|(name, value)| (text(bounded(name).into()), bounded(value).to_owned().into()));
    let now = Moment::now();
    shared.record_metric(Metric {
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
    });
}

impl Shared {
    /// Records a value, with the time since the last one of its metric, sampled or not.
    pub(crate) fn record_metric(&self, mut metric: Metric<'static>) {
        if !self.settings.load().collects() {
            return;
        }
        self.meters.last_values().note(&mut metric);
        self.record(Signal::Metrics, |sample_rate| {
            Event::Metric(Metric {
                sample_rate,
                ..metric
            })
        });
    }
}
