//! `sdk_health`: the overhead of the SDK, and the events that it lost.

use unjank_protocol::{SdkHealth, Signal};

use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event};
use crate::ingest::reject::Reject;
use crate::records::{FrameBuilder, Kind};

impl Event for SdkHealth<'_> {
    const SIGNAL: Signal = Signal::SdkHealth;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.number("overhead_us", self.overhead_us)?;
        checks.number("queue_bytes", self.queue_bytes)?;
        checks.number("upload_bytes", self.upload_bytes)?;
        checks.list(&mut self.dropped);
        for (place, dropped) in self.dropped.iter_mut().enumerate() {
            checks.number(&format!("dropped[{place}].count"), dropped.count)?;
            checks.text(&mut dropped.reason);
        }
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        for dropped in &mut self.dropped {
            filter.text(&mut dropped.reason);
        }
    }

    fn lists_bytes(&self) -> usize {
        size_of_val(&*self.dropped)
    }

    fn columns(rows: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder) {
        frame.same_text(Kind::Sym, "sdk_name", &envelope.resource.sdk_name);
        frame.same_text(Kind::Sym, "sdk_version", &envelope.resource.sdk_version);
        let counts = || rows.iter().map(|row| row.dropped.len());
        let dropped = || rows.iter().flat_map(|row| &row.dropped);
        frame.lists(Kind::SymList, "dropped.signal", counts(), |inner| {
            inner.symbols(dropped().map(|dropped| dropped.signal.as_str()));
        });
        frame.lists(Kind::SymList, "dropped.reason", counts(), |inner| {
            inner.symbols(dropped().map(|dropped| dropped.reason.as_str()));
        });
        frame.lists(Kind::U64List, "dropped.count", counts(), |inner| {
            inner.fixed(dropped().map(|dropped| dropped.count.to_le_bytes()));
        });
        frame.u64s("overhead_us", rows.iter().map(|row| row.overhead_us));
        frame.u64s("queue_bytes", rows.iter().map(|row| row.queue_bytes));
        frame.u64s("upload_bytes", rows.iter().map(|row| row.upload_bytes));
    }
}
