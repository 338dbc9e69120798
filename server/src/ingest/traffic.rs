//! `traffic`: bytes of one local natural day, by source and network.

use unjank_protocol::{Signal, Traffic};

use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event};
use crate::ingest::reject::Reject;
use crate::recent::Dimension;
use crate::records::{FrameBuilder, Kind};

impl Event for Traffic<'_> {
    const SIGNAL: Signal = Signal::Traffic;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.required("source", &self.source)?;
        checks.clock.day(&mut self.day)?;
        checks.number("tx_bytes", self.tx_bytes)?;
        checks.number("rx_bytes", self.rx_bytes)?;
        checks.number("requests", self.requests)?;
        checks.number("failed_requests", self.failed_requests)?;
        checks.text(&mut self.source);
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        filter.name(Dimension::TrafficSource, &mut self.source);
    }

    fn columns(rows: &[&Self], _: &Envelope<'_>, frame: &mut FrameBuilder) {
        // Days near the time of receipt, as checked: they fit ClickHouse's 16 bits until 2149.
        let days = rows
            .iter()
            .map(|row| u16::try_from(row.day.as_days()).unwrap_or_default());
        frame.fixed(Kind::Date, "day", days.map(u16::to_le_bytes));
        frame.symbols("source", rows.iter().map(|row| row.source.as_str()));
        frame.networks(rows.iter().map(|row| row.network));
        frame.u64s("tx_bytes", rows.iter().map(|row| row.tx_bytes));
        frame.u64s("rx_bytes", rows.iter().map(|row| row.rx_bytes));
        frame.u64s("requests", rows.iter().map(|row| row.requests));
        frame.u64s(
            "failed_requests",
            rows.iter().map(|row| row.failed_requests),
        );
    }
}
