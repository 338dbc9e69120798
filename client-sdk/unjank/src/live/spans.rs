//! Sums of spans by name.

use std::collections::HashMap;

use serde::Serialize;
use unjank_protocol::Span;

use super::Warning;

/// All spans of one name.
///
/// ```
/// for span in unjank::live::watch().read().spans {
///     println!("{}: {} times, at most {} µs", span.name, span.count, span.max_us);
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpanTotal {
    /// The name.
    pub name: String,
    /// The number of recorded spans.
    pub count: u64,
    /// The longest duration, in microseconds.
    pub max_us: i64,
    /// The duration of the span that ended last, in microseconds.
    pub last_us: i64,
    /// The sum of the durations, in microseconds.
    pub total_us: i64,
    /// The highest level of one of the spans.
    pub warning: Warning,
}

impl SpanTotal {
    fn add(&mut self, span: &Span<'_>) {
        let duration = span.duration_us;
        self.count = self.count.saturating_add(1);
        self.max_us = self.max_us.max(duration);
        self.last_us = duration;
        self.total_us = self.total_us.saturating_add(duration);
        self.warning = self.warning.max(Warning::of(duration, span.on_main_thread));
    }

    /// Orders by hazard: the level, then the longest duration.
    fn hazard(&self) -> (Warning, i64) {
        (self.warning, self.max_us)
    }
}

/// At most 256 names.
#[derive(Debug, Default)]
pub(super) struct Spans(HashMap<String, SpanTotal>);

impl Spans {
    const NAMES: usize = 256;

    pub(super) fn add(&mut self, span: &Span<'_>) {
        if let Some(known) = self.0.get_mut(span.name.as_str()) {
            known.add(span);
            return;
        }
        if self.0.len() >= Self::NAMES {
            let totals = self.0.values();
            let least = totals.min_by_key(|total| total.hazard());
            let least = least.map(|total| total.name.clone());
            least.and_then(|name| self.0.remove(&name));
        }
        let name = span.name.to_string();
        let mut total = SpanTotal {
            name: name.clone(),
            ..SpanTotal::default()
        };
        total.add(span);
        self.0.insert(name, total);
    }

    /// Returns the sums, the most hazardous first.
    pub(super) fn by_hazard(&self) -> Vec<SpanTotal> {
        let mut totals: Vec<_> = self.0.values().cloned().collect();
        totals.sort_by(|one, other| {
            let hazard = other.hazard().cmp(&one.hazard());
            hazard.then_with(|| one.name.cmp(&other.name))
        });
        totals
    }
}
