//! The time since the last value of each metric.

use std::collections::BTreeMap;

/// The attribute with the time, in milliseconds.
pub const SINCE_LAST: &str = "since_last_ms";
/// Maximum number of metrics, counted with their attributes, whose time is remembered.
const MOST: usize = 256;
/// Capacity of the buffer for keys that is kept, in bytes.
const KEY_BYTES: usize = 1_024;

/// Measures how long ago the last value of the same metric with the same attributes was, for the attribute [`SINCE_LAST`]. The first
/// value has no such time, and neither has a 257th metric. Of aggregated values, the ends of the intervals count.
///
/// ```
/// use unjank_monitors::LastValues;
///
/// let mut last = LastValues::default();
/// let images = [("cache", "images")];
/// assert_eq!(last.since_last("bytes", images.into_iter(), 500), None);
/// assert_eq!(last.since_last("bytes", [("cache", "texts")].into_iter(), 900), None);
/// assert_eq!(last.since_last("bytes", images.into_iter(), 1_700), Some(1_200));
/// ```
#[derive(Debug, Default)]
pub struct LastValues {
    uptimes_ms: BTreeMap<String, u64>,
    /// The key of the current value. Kept, so that only a new metric allocates.
    key: String,
}

impl LastValues {
    /// Notes a value. Returns the milliseconds since the last one. A value that has the attribute already is not noted.
    pub fn since_last<'n, 'v>(
        &mut self,
        name: &str,
        attributes: impl Iterator<Item = (&'n str, &'v str)>,
        uptime_ms: u64,
    ) -> Option<u64> {
        let key = &mut self.key;
        key.clear();
        key.shrink_to(KEY_BYTES);
        key.push_str(name);
        for (name, value) in attributes {
            if name == SINCE_LAST {
                return None;
            }
            // No text of the wire has this character in practice, and a collision would only give a shorter time.
            key.push('\0');
            key.push_str(name);
            key.push('\0');
            key.push_str(value);
        }
        if let Some(last) = self.uptimes_ms.get_mut(key.as_str()) {
            return Some(uptime_ms.saturating_sub(std::mem::replace(last, uptime_ms)));
        }
        if self.uptimes_ms.len() < MOST {
            self.uptimes_ms.insert(key.clone(), uptime_ms);
        }
        None
    }
}
