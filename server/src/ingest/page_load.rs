//! `page_loads`: how long a page takes, in three parts.

use unjank_protocol::{PageLoad, Signal};

use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event, Place};
use crate::ingest::reject::Reject;
use crate::recent::Dimension;
use crate::records::{FrameBuilder, Kind};

impl Event for PageLoad<'_> {
    const SIGNAL: Signal = Signal::PageLoads;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.required("page", &self.page)?;
        checks.clock.time(&mut self.start)?;
        checks.duration_ms("total_ms", self.total_ms)?;
        for (name, part) in [
            ("t1_ms", self.t1_ms),
            ("t2_ms", self.t2_ms),
            ("t3_ms", self.t3_ms),
        ] {
            checks.duration_ms(name, part.unwrap_or_default())?;
        }
        checks.number("uptime_ms", self.uptime_ms)?;
        checks.sample_rate(self.sample_rate)?;
        checks.text(&mut self.page);
        checks.list(&mut self.requests);
        for request in &mut self.requests {
            checks.text(&mut request.path);
        }
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        filter.name(Dimension::Page, &mut self.page);
        for request in &mut self.requests {
            filter.text(&mut request.path);
        }
    }

    fn lists_bytes(&self) -> usize {
        size_of_val(&*self.requests)
    }

    fn place(&self) -> Option<Place<'_>> {
        Some(Place::at(self.start))
    }

    fn columns(loads: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder) {
        frame.same(
            Kind::U16,
            "refresh_hz",
            envelope.resource.refresh_hz.to_le_bytes(),
        );
        frame.symbols("page", loads.iter().map(|load| load.page.as_str()));
        frame.networks(loads.iter().map(|load| load.network));
        frame.u64s("uptime_ms", loads.iter().map(|load| load.uptime_ms));
        frame.times("start", loads.iter().map(|load| load.start));
        frame.optional_millis("t1_ms", loads.iter().map(|load| load.t1_ms));
        frame.optional_millis("t2_ms", loads.iter().map(|load| load.t2_ms));
        frame.optional_millis("t3_ms", loads.iter().map(|load| load.t3_ms));
        frame.millis("total_ms", loads.iter().map(|load| load.total_ms));
        frame.symbols("launch", loads.iter().map(|load| load.launch.as_str()));
        frame.symbols("outcome", loads.iter().map(|load| load.outcome.as_str()));
        let counts = || loads.iter().map(|load| load.requests.len());
        let requests = || loads.iter().flat_map(|load| &load.requests);
        frame.lists(Kind::SymList, "requests.path", counts(), |inner| {
            inner.symbols(requests().map(|request| request.path.as_str()));
        });
        frame.lists(Kind::I32List, "requests.offset_ms", counts(), |inner| {
            inner.fixed(requests().map(|request| request.offset_ms.to_le_bytes()));
        });
        frame.lists(Kind::U32List, "requests.duration_ms", counts(), |inner| {
            inner.fixed(requests().map(|request| request.duration_ms.to_le_bytes()));
        });
        frame.lists(Kind::U16List, "requests.status", counts(), |inner| {
            inner.fixed(requests().map(|request| request.status.to_le_bytes()));
        });
        frame.f64s("sample_rate", loads.iter().map(|load| load.sample_rate));
    }
}
