//! Generates the events of one minute of use on a device: one file per signal.

mod app_start;
mod frame_window;
mod jank;
mod metric;
mod page_load;
mod recomposition;
mod sdk_health;
mod span;
mod traffic;

use clap::ValueEnum;
use unjank_protocol::{Batch, Signal, Timestamp};
use unjank_random::{Random, whole};

use crate::population::Device;
use crate::vocabulary::Vocabulary;

/// The minute of a session that a batch reports.
pub(crate) struct Scene<'a> {
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) device: &'a Device,
    /// End of the minute on the device's clock.
    pub(crate) end: Timestamp,
    /// Index of the minute within the session, from 0.
    pub(crate) minute: u64,
}

/// A point in time in the two forms that events carry.
struct Moment {
    time: Timestamp,
    uptime_ms: u64,
}

const MINUTE_MS: u64 = 60_000;

impl Scene<'_> {
    /// Returns a random moment of the minute, to the microsecond.
    fn moment(&self, random: &mut Random) -> Moment {
        self.moment_at(random.below(MINUTE_MS * 1_000))
    }

    /// Returns the moment `offset_us` after the start of the minute.
    fn moment_at(&self, offset_us: u64) -> Moment {
        let before_end = MINUTE_MS * 1_000 - offset_us.min(MINUTE_MS * 1_000);
        Moment {
            time: self.end.shifted(-micros(before_end)),
            uptime_ms: self.minute * MINUTE_MS + offset_us / 1_000,
        }
    }
}

/// Converts an unsigned number of microseconds to the protocol's signed one.
fn micros(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Signals that a batch contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Mix {
    /// All signals, in the proportions of an app in use.
    Realistic,
    Spans,
    FrameWindows,
    Janks,
    Traffic,
    PageLoads,
    Metrics,
    AppStarts,
    Recompositions,
    SdkHealth,
}

/// Shares of the realistic mix. The rest are spans.
const REALISTIC: &[(Signal, f64)] = &[
    (Signal::Metrics, 0.2),
    (Signal::FrameWindows, 0.06),
    (Signal::Recompositions, 0.04),
    (Signal::PageLoads, 0.03),
    (Signal::Traffic, 0.015),
    (Signal::Janks, 0.006),
];

impl Mix {
    fn only(self) -> Option<Signal> {
        match self {
            Self::Realistic => None,
            Self::Spans => Some(Signal::Spans),
            Self::FrameWindows => Some(Signal::FrameWindows),
            Self::Janks => Some(Signal::Janks),
            Self::Traffic => Some(Signal::Traffic),
            Self::PageLoads => Some(Signal::PageLoads),
            Self::Metrics => Some(Signal::Metrics),
            Self::AppStarts => Some(Signal::AppStarts),
            Self::Recompositions => Some(Signal::Recompositions),
            Self::SdkHealth => Some(Signal::SdkHealth),
        }
    }

    /// Fills `batch` with `events` events of the scene.
    pub(crate) fn fill<'a>(
        self,
        batch: &mut Batch<'a>,
        scene: &Scene<'a>,
        events: usize,
        random: &mut Random,
    ) {
        if let Some(signal) = self.only() {
            add(batch, signal, scene, events, random);
            return;
        }
        let mut left = events;
        let mut take = |batch: &mut Batch<'a>, signal, count: usize, random: &mut Random| {
            let count = count.min(left);
            left -= count;
            add(batch, signal, scene, count, random);
        };
        if scene.minute == 0 {
            take(batch, Signal::AppStarts, 1, random);
        }
        if random.chance(0.3) {
            take(batch, Signal::SdkHealth, 1, random);
        }
        for (signal, share) in REALISTIC {
            let count = share * events as f64 + random.unit() - 0.5;
            take(
                batch,
                *signal,
                usize::try_from(whole(count)).unwrap_or_default(),
                random,
            );
        }
        add(batch, Signal::Spans, scene, left, random);
    }
}

fn add<'a>(
    batch: &mut Batch<'a>,
    signal: Signal,
    scene: &Scene<'a>,
    count: usize,
    random: &mut Random,
) {
    match signal {
        Signal::Spans => batch.spans = span::some(scene, count, random),
        Signal::FrameWindows => batch.frame_windows = frame_window::some(scene, count, random),
        Signal::Janks => batch.janks = jank::some(scene, count, random),
        Signal::Traffic => batch.traffic = traffic::some(scene, count, random),
        Signal::PageLoads => batch.page_loads = page_load::some(scene, count, random),
        Signal::Metrics => batch.metrics = metric::some(scene, count, random),
        Signal::AppStarts => batch.app_starts = app_start::some(scene, count, random),
        Signal::Recompositions => batch.recompositions = recomposition::some(scene, count, random),
        Signal::SdkHealth if count > 0 => batch.sdk_health = Some(sdk_health::one(random)),
        Signal::SdkHealth | Signal::Other => {}
    }
}

/// Makes one span invalid in a way that every server must reject, whatever its limits. Returns its signal and index, or `None` if
/// the batch has no spans.
pub(crate) fn spoil(batch: &mut Batch<'_>, random: &mut Random) -> Option<(Signal, u32)> {
    let index = usize::try_from(random.below(batch.spans.len() as u64)).ok()?;
    let span = batch.spans.get_mut(index)?;
    span.duration_us = -1 - micros(random.below(1_000_000));
    Some((Signal::Spans, u32::try_from(index).ok()?))
}
