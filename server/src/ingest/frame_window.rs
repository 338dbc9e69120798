//! `frame_windows`: frames over a short period on one page.

use unjank_protocol::{FrameWindow, Signal};

use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event, Place};
use crate::ingest::reject::Reject;
use crate::recent::Dimension;
use crate::records::{FrameBuilder, Kind};

impl Event for FrameWindow<'_> {
    const SIGNAL: Signal = Signal::FrameWindows;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.clock.time(&mut self.start)?;
        checks.duration_ms("duration_ms", self.duration_ms)?;
        checks.number("uptime_ms", self.uptime_ms)?;
        checks.sample_rate(self.sample_rate)?;
        checks.text(&mut self.page);
        checks.histogram(&mut self.frame_time_hist);
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        filter.name(Dimension::Page, &mut self.page);
    }

    fn lists_bytes(&self) -> usize {
        size_of_val(&*self.frame_time_hist.0)
    }

    fn place(&self) -> Option<Place<'_>> {
        Some(Place::at(self.start))
    }

    fn columns(windows: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder) {
        let own_or_device = |hz| {
            if hz == 0 {
                envelope.resource.refresh_hz
            } else {
                hz
            }
        };
        frame.u16s(
            "refresh_hz",
            windows
                .iter()
                .map(|window| own_or_device(window.refresh_hz)),
        );
        frame.symbols("page", windows.iter().map(|window| window.page.as_str()));
        frame.networks(windows.iter().map(|window| window.network));
        frame.u64s("uptime_ms", windows.iter().map(|window| window.uptime_ms));
        frame.times("start", windows.iter().map(|window| window.start));
        frame.millis(
            "duration_ms",
            windows.iter().map(|window| window.duration_ms),
        );
        frame.u32s(
            "frames_drawn",
            windows.iter().map(|window| window.frames_drawn),
        );
        frame.u32s(
            "frames_dropped",
            windows.iter().map(|window| window.frames_dropped),
        );
        frame.u32s(
            "slow_frames",
            windows.iter().map(|window| window.slow_frames),
        );
        frame.u32s(
            "frozen_frames",
            windows.iter().map(|window| window.frozen_frames),
        );
        frame.u32s(
            "longest_drop",
            windows.iter().map(|window| window.longest_drop),
        );
        frame.u32s("jank_ms", windows.iter().map(|window| window.jank_ms));
        frame.u32s("delay_ms", windows.iter().map(|window| window.delay_ms));
        let counts = windows.iter().map(|window| window.frame_time_hist.0.len());
        frame.lists(Kind::U32U32Map, "frame_time_hist", counts, |inner| {
            let buckets = || windows.iter().flat_map(|window| &window.frame_time_hist.0);
            inner.fixed(buckets().map(|(bucket, _)| bucket.to_le_bytes()));
            inner.fixed(buckets().map(|(_, count)| count.to_le_bytes()));
        });
        frame.f64s(
            "sample_rate",
            windows.iter().map(|window| window.sample_rate),
        );
    }
}
