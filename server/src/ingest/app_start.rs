//! `app_starts`: how long the app took to start.

use unjank_protocol::{AppStart, Signal};

use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event, Place};
use crate::ingest::reject::Reject;
use crate::recent::Dimension;
use crate::records::{FrameBuilder, Kind};

impl Event for AppStart<'_> {
    const SIGNAL: Signal = Signal::AppStarts;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.clock.time(&mut self.start)?;
        checks.duration_ms("duration_ms", self.duration_ms)?;
        checks.sample_rate(self.sample_rate)?;
        checks.text(&mut self.page);
        checks.list(&mut self.phases);
        for phase in &mut self.phases {
            checks.text(&mut phase.name);
        }
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        filter.name(Dimension::Page, &mut self.page);
        for phase in &mut self.phases {
            filter.text(&mut phase.name);
        }
    }

    fn lists_bytes(&self) -> usize {
        size_of_val(&*self.phases)
    }

    fn place(&self) -> Option<Place<'_>> {
        Some(Place::at(self.start))
    }

    fn columns(starts: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder) {
        frame.same(
            Kind::U16,
            "refresh_hz",
            envelope.resource.refresh_hz.to_le_bytes(),
        );
        frame.symbols("page", starts.iter().map(|start| start.page.as_str()));
        frame.networks(starts.iter().map(|start| start.network));
        frame.symbols("kind", starts.iter().map(|start| start.kind.as_str()));
        frame.times("start", starts.iter().map(|start| start.start));
        frame.millis("duration_ms", starts.iter().map(|start| start.duration_ms));
        let counts = || starts.iter().map(|start| start.phases.len());
        let phases = || starts.iter().flat_map(|start| &start.phases);
        frame.lists(Kind::SymList, "phases.name", counts(), |inner| {
            inner.symbols(phases().map(|phase| phase.name.as_str()));
        });
        frame.lists(Kind::U32List, "phases.duration_ms", counts(), |inner| {
            inner.fixed(phases().map(|phase| phase.duration_ms.to_le_bytes()));
        });
        frame.f64s("sample_rate", starts.iter().map(|start| start.sample_rate));
    }
}
