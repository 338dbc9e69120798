//! The sums of one window of frames, and the event it becomes.

use unjank_protocol::{FrameWindow, Histogram};

use crate::uptime::{millis, millis_u32};
use crate::{Scene, Uptime};

/// A frame that takes longer is frozen.
pub(super) const FROZEN_US: u64 = 700_000;

/// Lower bounds of the buckets of frame durations, in milliseconds: steps of √2 in both directions from one refresh at 60 Hz. 700
/// replaces 747, so that the limit for frozen frames is the bound of a bucket.
const BOUNDS_MS: [u32; 28] = [
    0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 33, 47, 66, 93, 132, 187, 264, 373, 528, 700, 1_056, 1_493,
    2_112, 2_987, 4_224, 5_973, 8_448, 11_947,
];

/// The bucket at which the search for a duration begins, by the bit length of the duration in milliseconds: the bucket of the
/// shortest duration with that bit length. The right bucket is at most two steps further.
#[expect(
    clippy::indexing_slicing,
    reason = "runs at build time, where a mistake is an error"
)]
const FIRST_BUCKETS: [u8; 33] = {
    let mut first = [0; 33];
    let (mut bits, mut bucket) = (1, 0);
    while bits < first.len() {
        while bucket + 1 < BOUNDS_MS.len() && BOUNDS_MS[bucket + 1] <= 1 << (bits - 1) {
            bucket += 1;
        }
        first[bits] = bucket as u8;
        bits += 1;
    }
    first
};

/// Returns the bucket of a duration. Runs for every frame, so it avoids a search.
#[inline]
fn bucket_of(took_ms: u32) -> usize {
    let bits =
        usize::try_from(u32::BITS.saturating_sub(took_ms.leading_zeros())).unwrap_or_default();
    let first = usize::from(FIRST_BUCKETS.get(bits).copied().unwrap_or_default());
    let above = BOUNDS_MS.iter().skip(first.saturating_add(1));
    let passed = above.take_while(|bound| **bound <= took_ms).count();
    first.saturating_add(passed)
}

#[derive(Debug)]
pub(super) struct Window {
    pub(super) start: Uptime,
    drawn: u32,
    dropped: u32,
    slow: u32,
    frozen: u32,
    longest_drop: u32,
    jank_us: u64,
    delay_us: u64,
    rates: Rates,
    buckets: [u32; BOUNDS_MS.len()],
}

impl Window {
    pub(super) fn new(start: Uptime) -> Self {
        Self {
            start,
            drawn: 0,
            dropped: 0,
            slow: 0,
            frozen: 0,
            longest_drop: 0,
            jank_us: 0,
            delay_us: 0,
            rates: Rates::default(),
            buckets: [0; BOUNDS_MS.len()],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, took: u64, over: u64, refresh_hz: u16) {
        self.drawn = self.drawn.saturating_add(1);
        self.slow = self.slow.saturating_add(u32::from(over > 0));
        self.frozen = self.frozen.saturating_add(u32::from(took > FROZEN_US));
        self.delay_us = self.delay_us.saturating_add(over);
        self.rates.add(refresh_hz);
        if let Some(count) = self.buckets.get_mut(bucket_of(millis_u32(took))) {
            *count = count.saturating_add(1);
        }
    }

    #[inline]
    pub(super) fn add_dropped(&mut self, dropped: u64, jank_us: u64) {
        let dropped = u32::try_from(dropped).unwrap_or(u32::MAX);
        self.dropped = self.dropped.saturating_add(dropped);
        self.longest_drop = self.longest_drop.max(dropped);
        self.jank_us = self.jank_us.saturating_add(jank_us);
    }

    #[cold]
    pub(super) fn finish(
        self,
        end: Uptime,
        refresh_hz: u16,
        scene: &Scene,
    ) -> FrameWindow<'static> {
        let counts = BOUNDS_MS.into_iter().zip(self.buckets);
        FrameWindow {
            page: scene.page_text(),
            start: scene.wall.time(self.start),
            duration_ms: millis(end.micros_since(self.start)),
            refresh_hz: self.rates.longest().unwrap_or(refresh_hz),
            frames_drawn: self.drawn,
            frames_dropped: self.dropped,
            slow_frames: self.slow,
            frozen_frames: self.frozen,
            longest_drop: self.longest_drop,
            jank_ms: millis_u32(self.jank_us),
            delay_ms: millis_u32(self.delay_us),
            uptime_ms: self.start.as_millis(),
            network: scene.network,
            frame_time_hist: Histogram(counts.filter(|(_, count)| *count > 0).collect()),
            sample_rate: 1.0,
        }
    }
}

/// Determines the refresh rate with the longest run of frames. Displays with a variable rate have too many rates to count frames by
/// rate.
#[derive(Debug, Default)]
struct Rates {
    now_hz: u16,
    run: u32,
    longest_hz: u16,
    longest_run: u32,
}

impl Rates {
    #[inline]
    fn add(&mut self, hz: u16) {
        if hz != self.now_hz {
            self.now_hz = hz;
            self.run = 0;
        }
        self.run = self.run.saturating_add(1);
        if self.run > self.longest_run {
            self.longest_run = self.run;
            self.longest_hz = hz;
        }
    }

    fn longest(&self) -> Option<u16> {
        (self.longest_run > 0).then_some(self.longest_hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_last_bucket_whose_bound_it_reaches() {
        let edges = BOUNDS_MS
            .iter()
            .flat_map(|bound| [bound.saturating_sub(1), *bound, bound + 1]);
        for took in edges.chain(0..3_000).chain([u32::MAX]) {
            let searched = BOUNDS_MS.partition_point(|bound| *bound <= took);
            assert_eq!(bucket_of(took) + 1, searched, "{took} ms");
        }
    }
}
