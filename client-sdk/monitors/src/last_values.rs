//! The time since the last value of each metric.

use std::collections::BTreeMap;

use unjank_protocol::Metric;

/// The attribute with the time, in milliseconds.
pub const SINCE_LAST: &str = "since_last_ms";
/// Maximum number of metrics, counted with their attributes, whose time is remembered.
const MOST: usize = 256;

/// Adds to each value of a metric how long ago the last value of the same metric with the same attributes was, as the attribute
/// [`SINCE_LAST`]. The first value has no such attribute, and neither has a 257th metric. Of aggregated values, the ends of the
/// intervals count.
///
/// ```
/// use unjank_monitors::LastValues;
/// use unjank_protocol::Metric;
///
/// let mut last = LastValues::default();
/// let value = |uptime_ms: u32| -> Metric<'static> {
///     let json = format!(r#"{{"name": "m", "time": "2026-11-20T12:00:00Z", "value": 1, "uptime_ms": {uptime_ms}}}"#);
///     serde_json::from_str(json.leak()).unwrap()
/// };
/// let (mut first, mut second) = (value(500), value(1_700));
/// last.note(&mut first);
/// last.note(&mut second);
/// assert!(first.attributes.0.is_empty());
/// assert_eq!((&*second.attributes.0[0].0, &*second.attributes.0[0].1), ("since_last_ms", "1200"));
/// ```
#[derive(Debug, Default)]
pub struct LastValues(BTreeMap<String, u64>);

impl LastValues {
    /// Notes a value and adds the attribute. An attribute of that name that the app gave is left as it is.
    pub fn note(&mut self, metric: &mut Metric<'static>) {
        let attributes = &mut metric.attributes.0;
        let mut key = metric.name.to_string();
        for (name, value) in attributes.iter() {
            if &**name == SINCE_LAST {
                return;
            }
            // No text of the wire has this character in practice, and a collision would only give a shorter time.
            key.push('\0');
            key.push_str(name);
            key.push('\0');
            key.push_str(value);
        }
        let now = metric.uptime_ms;
        if let Some(last) = self.0.get_mut(&key) {
            let since = now.saturating_sub(std::mem::replace(last, now));
            attributes.push((SINCE_LAST.into(), since.to_string().into()));
        } else if self.0.len() < MOST {
            self.0.insert(key, now);
        }
    }
}
