//! `spans`: the time between two points in the code.

use unjank_protocol::{Signal, Span, Text};

use super::functions;
use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event, Place};
use crate::ingest::reject::Reject;
use crate::recent::Dimension;
use crate::records::{FrameBuilder, Kind, uuid_bytes};

impl Event for Span<'_> {
    const SIGNAL: Signal = Signal::Spans;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.required("name", &self.name)?;
        checks.clock.time(&mut self.start)?;
        checks.duration_us("duration_us", self.duration_us)?;
        checks.number("uptime_ms", self.uptime_ms)?;
        checks.sample_rate(self.sample_rate)?;
        checks.text(&mut self.name);
        checks.text(&mut self.thread);
        checks.text(&mut self.page);
        checks.text(&mut self.code.class);
        checks.text(&mut self.code.function);
        checks.text(&mut self.code.file);
        checks.attributes(&mut self.attributes);
        checks.list(&mut self.events);
        for event in &mut self.events {
            checks.clock.inner_time(&mut event.time);
            checks.text(&mut event.name);
        }
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        functions::set_key(self, filter);
        filter.name(Dimension::SpanName, &mut self.name);
        filter.name(Dimension::Page, &mut self.page);
        filter.text(&mut self.thread);
        filter.attributes(&mut self.attributes);
        for event in &mut self.events {
            filter.text(&mut event.name);
        }
    }

    fn lists_bytes(&self) -> usize {
        size_of_val(&*self.attributes.0) + size_of_val(&*self.events)
    }

    fn place(&self) -> Option<Place<'_>> {
        Some(Place::at(self.start))
    }

    fn columns(spans: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder) {
        frame.same(
            Kind::U16,
            "refresh_hz",
            envelope.resource.refresh_hz.to_le_bytes(),
        );
        frame.symbols("page", spans.iter().map(|span| span.page.as_str()));
        frame.networks(spans.iter().map(|span| span.network));
        frame.u64s("uptime_ms", spans.iter().map(|span| span.uptime_ms));
        frame.fixed(
            Kind::Uuid,
            "trace_id",
            spans.iter().map(|span| uuid_bytes(span.trace_id.0)),
        );
        frame.u64s("span_id", spans.iter().map(|span| span.span_id.0));
        frame.u64s(
            "parent_span_id",
            spans
                .iter()
                .map(|span| span.parent_span_id.map_or(0, |id| id.0)),
        );
        frame.symbols("name", spans.iter().map(|span| span.name.as_str()));
        frame.symbols("kind", spans.iter().map(|span| span.kind.as_str()));
        frame.times("start", spans.iter().map(|span| span.start));
        frame.u64s(
            "duration_us",
            spans
                .iter()
                .map(|span| u64::try_from(span.duration_us).unwrap_or_default()),
        );
        frame.symbols("thread", spans.iter().map(|span| span.thread.as_str()));
        frame.flags(
            "on_main_thread",
            spans.iter().map(|span| span.on_main_thread),
        );
        frame.symbols("status", spans.iter().map(|span| span.status.as_str()));
        frame.symbols(
            "code_class",
            spans.iter().map(|span| span.code.class.as_str()),
        );
        frame.symbols(
            "code_function",
            spans.iter().map(|span| span.code.function.as_str()),
        );
        frame.symbols(
            "code_file",
            spans.iter().map(|span| span.code.file.as_str()),
        );
        frame.u32s("code_line", spans.iter().map(|span| span.code.line));
        frame.lists(
            Kind::SymStrMap,
            "attributes",
            spans.iter().map(|span| span.attributes.0.len()),
            |inner| {
                let pairs = || spans.iter().flat_map(|span| &span.attributes.0);
                inner.symbols(pairs().map(|(key, _)| key.as_str()));
                inner.strings(pairs().map(|(_, value)| value.as_str()));
            },
        );
        let counts = || spans.iter().map(|span| span.events.len());
        let events = || spans.iter().flat_map(|span| &span.events);
        frame.lists(Kind::MicrosList, "events.time", counts(), |inner| {
            inner.fixed(events().map(|event| event.time.as_micros().to_le_bytes()));
        });
        frame.lists(Kind::SymList, "events.name", counts(), |inner| {
            inner.symbols(events().map(|event| Text::as_str(&event.name)));
        });
        frame.f64s("sample_rate", spans.iter().map(|span| span.sample_rate));
    }
}
