//! Frame windows.

use crate::store::reads::aggregate::Formula::{Is, PartOf, Ratio};
use crate::store::reads::aggregate::Unit::{Count, Milliseconds, PerSecond, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
use crate::store::reads::define::{Dimension, Subject, Time};

use super::uptime::UPTIME;

/// Frame statistics over short periods on a page.
pub(super) static FRAME_WINDOWS: Subject = Subject {
    name: "frame_windows",
    raw: "frame_windows AS s",
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: Some("frame_windows_hourly"),
    daily: Some("frame_windows_daily"),
    rollup_join: "",
    lead: Some("page"),
    dimensions: FRAME_WINDOWS_DIMENSIONS,
    aggregates: FRAME_WINDOWS_AGGREGATES,
    measures: FRAME_WINDOWS_MEASURES,
};

const FRAME_WINDOWS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("page", "s.page"),
    Dimension::kept("refresh_hz", "toString(s.refresh_hz)").converted(),
    Dimension::raw("network", "s.network"),
    UPTIME,
];

const FRAME_WINDOWS_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1 / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum("duration_ms", "s.duration_ms / s.sample_rate"),
    Aggregate::sum("frames_drawn", "s.frames_drawn / s.sample_rate"),
    Aggregate::sum("frames_dropped", "s.frames_dropped / s.sample_rate"),
    Aggregate::sum("slow_frames", "s.slow_frames / s.sample_rate"),
    Aggregate::sum("frozen_frames", "s.frozen_frames / s.sample_rate"),
    Aggregate::sum("jank_ms", "s.jank_ms / s.sample_rate"),
    Aggregate::sum("delay_ms", "s.delay_ms / s.sample_rate"),
    // A screen without changes needs no frames.
    Aggregate::sum_of(
        "wanted_s",
        "(s.frames_drawn + s.frames_dropped) / if(s.refresh_hz = 0, 60, s.refresh_hz) / s.sample_rate",
        "(s.frames_drawn + s.frames_dropped) / if(s.refresh_hz = 0, 60, s.refresh_hz)",
    ),
    Aggregate::max("longest_drop", "s.longest_drop"),
    Aggregate::sum(
        "late",
        "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    ),
    Aggregate::bounds(
        "frame_times_ms",
        "mapApply((ms, frames) -> (ms, frames / s.sample_rate), s.frame_time_hist)",
    ),
    Aggregate::distinct("installs", "s.install_id"),
    Aggregate::distinct("sessions", "s.session_id"),
];

const FRAME_WINDOWS_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::neutral("sessions", Count, Is("sessions")),
    Measure::neutral("duration_ms", Milliseconds, Is("duration_ms")),
    Measure::neutral("frames_drawn", Count, Is("frames_drawn")),
    Measure::lower("frames_dropped", Count, Is("frames_dropped")),
    Measure::lower(
        "dropped_share",
        Share,
        PartOf("frames_dropped", "frames_drawn"),
    ),
    Measure::lower(
        "slow_share",
        Share,
        Ratio("slow_frames", "frames_drawn", 1.),
    ),
    Measure::lower(
        "frozen_share",
        Share,
        Ratio("frozen_frames", "frames_drawn", 1.),
    ),
    Measure::lower("jank_ms", Milliseconds, Is("jank_ms")),
    Measure::lower("delay_ms", Milliseconds, Is("delay_ms")),
    Measure::lower("jank_share", Share, Ratio("jank_ms", "duration_ms", 1.)),
    Measure::lower(
        "delay_ms_per_minute",
        Milliseconds,
        Ratio("delay_ms", "duration_ms", 60000.),
    ),
    Measure::higher("fps", PerSecond, Ratio("frames_drawn", "wanted_s", 1.)),
    Measure::lower("longest_drop", Count, Is("longest_drop")),
    Measure::lower("late_share", Share, Ratio("late", "count", 1.)),
];
