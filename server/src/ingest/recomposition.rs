//! `recompositions`: how often UI functions are redrawn.

use unjank_protocol::{Recomposition, Signal};

use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event, Place};
use crate::ingest::reject::Reject;
use crate::recent::Dimension;
use crate::records::{FrameBuilder, Kind};

impl Event for Recomposition<'_> {
    const SIGNAL: Signal = Signal::Recompositions;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.required("function", &self.function)?;
        checks.clock.time(&mut self.start)?;
        checks.duration_ms("window_ms", self.window_ms)?;
        checks.number("uptime_ms", self.uptime_ms)?;
        checks.sample_rate(self.sample_rate)?;
        checks.text(&mut self.function);
        checks.text(&mut self.page);
        checks.text(&mut self.cause);
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        filter.name(Dimension::Function, &mut self.function);
        filter.name(Dimension::Page, &mut self.page);
        filter.text(&mut self.cause);
    }

    fn place(&self) -> Option<Place<'_>> {
        Some(Place::named(&self.function, self.start))
    }

    fn columns(rows: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder) {
        frame.same(
            Kind::U16,
            "refresh_hz",
            envelope.resource.refresh_hz.to_le_bytes(),
        );
        frame.symbols("page", rows.iter().map(|row| row.page.as_str()));
        frame.networks(rows.iter().map(|row| row.network));
        frame.u64s("uptime_ms", rows.iter().map(|row| row.uptime_ms));
        frame.symbols("function", rows.iter().map(|row| row.function.as_str()));
        frame.times("start", rows.iter().map(|row| row.start));
        frame.millis("window_ms", rows.iter().map(|row| row.window_ms));
        frame.u32s("count", rows.iter().map(|row| row.count));
        frame.symbols("cause", rows.iter().map(|row| row.cause.as_str()));
        frame.f64s("sample_rate", rows.iter().map(|row| row.sample_rate));
    }
}
