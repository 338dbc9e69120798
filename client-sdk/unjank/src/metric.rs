//! Values that the app measures.

use std::borrow::Cow;

use unjank_protocol::{Attributes, Metric, Signal};

use crate::client::{self, Shared};
use crate::clock::Moment;
use crate::event::{Event, text};

/// Records a value with the current time, screen and uptime. The name includes the unit, such as `memory_used_bytes`, and is cut
/// at 1 KiB. A value that is not finite is ignored. Does nothing while nothing is collected. For values that change often, use
/// [`crate::sample`].
///
/// ```
/// unjank::metric("battery_percent", 81.0);
/// ```
pub fn metric(name: impl Into<Cow<'static, str>>, value: f64) {
    client::with(|shared| record(shared, crate::span::cut(name.into()), value));
}

pub(crate) fn record(shared: &Shared, name: Cow<'static, str>, value: f64) {
    if !value.is_finite() {
        return;
    }
    shared.record(Signal::Metrics, |sample_rate| {
        let now = Moment::now();
        Event::Metric(Metric {
            name: text(name),
            time: shared.wall.at(now),
            value,
            min: None,
            max: None,
            count: None,
            page: shared.page_name(),
            uptime_ms: now.millis(),
            network: shared.network(),
            attributes: Attributes::default(),
            sample_rate,
        })
    });
}
