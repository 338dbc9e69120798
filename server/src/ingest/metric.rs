//! `metrics`: samples from monitors.

use unjank_protocol::{Metric, Signal};

use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event, Place};
use crate::ingest::reject::Reject;
use crate::recent::Dimension;
use crate::records::{FrameBuilder, Kind};

impl Event for Metric<'_> {
    const SIGNAL: Signal = Signal::Metrics;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.required("name", &self.name)?;
        checks.clock.time(&mut self.time)?;
        checks.finite("value", self.value)?;
        let (min, max) = (min_of(self), max_of(self));
        checks.finite("min", min)?;
        checks.finite("max", max)?;
        if min > max {
            // Of a missing one, the value is checked.
            let named = |name, given: Option<f64>| if given.is_some() { name } else { "value" };
            let (least, most) = (named("min", self.min), named("max", self.max));
            return Err(Reject::new(
                "value_out_of_range",
                format!("`{least}` is {min:e}, which is more than `{most}`: {max:e}"),
            ));
        }
        checks.number("uptime_ms", self.uptime_ms)?;
        checks.sample_rate(self.sample_rate)?;
        checks.count("count", count_of(self))?;
        checks.text(&mut self.name);
        checks.text(&mut self.page);
        checks.attributes(&mut self.attributes);
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        filter.name(Dimension::MetricName, &mut self.name);
        filter.name(Dimension::Page, &mut self.page);
        filter.attributes(&mut self.attributes);
    }

    fn lists_bytes(&self) -> usize {
        size_of_val(&*self.attributes.0)
    }

    fn place(&self) -> Option<Place<'_>> {
        Some(Place::named(&self.name, self.time))
    }

    fn columns(metrics: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder) {
        frame.same(
            Kind::U16,
            "refresh_hz",
            envelope.resource.refresh_hz.to_le_bytes(),
        );
        frame.symbols("page", metrics.iter().map(|metric| metric.page.as_str()));
        frame.networks(metrics.iter().map(|metric| metric.network));
        frame.u64s("uptime_ms", metrics.iter().map(|metric| metric.uptime_ms));
        frame.symbols("name", metrics.iter().map(|metric| metric.name.as_str()));
        frame.times("time", metrics.iter().map(|metric| metric.time));
        frame.f64s("value", metrics.iter().map(|metric| metric.value));
        frame.f64s("min", metrics.iter().map(|metric| min_of(metric)));
        frame.f64s("max", metrics.iter().map(|metric| max_of(metric)));
        frame.u64s("count", metrics.iter().map(|metric| count_of(metric)));
        let counts = metrics.iter().map(|metric| metric.attributes.0.len());
        frame.lists(Kind::SymStrMap, "attributes", counts, |inner| {
            let pairs = || metrics.iter().flat_map(|metric| &metric.attributes.0);
            inner.symbols(pairs().map(|(key, _)| key.as_str()));
            inner.strings(pairs().map(|(_, value)| value.as_str()));
        });
        frame.f64s(
            "sample_rate",
            metrics.iter().map(|metric| metric.sample_rate),
        );
    }
}

// What is checked, and stored: a single value is its own minimum and maximum.

fn min_of(metric: &Metric<'_>) -> f64 {
    metric.min.unwrap_or(metric.value)
}

fn max_of(metric: &Metric<'_>) -> f64 {
    metric.max.unwrap_or(metric.value)
}

fn count_of(metric: &Metric<'_>) -> u64 {
    metric.count.unwrap_or(1)
}
