//! Frame windows.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
use crate::store::reads::define::{Dimension, Subject, Time};

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
];

const FRAME_WINDOWS_AGGREGATES: &[Aggregate] = &[
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "1 / s.sample_rate",
    },
    Aggregate {
        name: "samples",
        fold: Fold::Sum,
        raw: "1",
    },
    Aggregate {
        name: "duration_ms",
        fold: Fold::Sum,
        raw: "s.duration_ms / s.sample_rate",
    },
    Aggregate {
        name: "frames_drawn",
        fold: Fold::Sum,
        raw: "s.frames_drawn / s.sample_rate",
    },
    Aggregate {
        name: "frames_dropped",
        fold: Fold::Sum,
        raw: "s.frames_dropped / s.sample_rate",
    },
    Aggregate {
        name: "slow_frames",
        fold: Fold::Sum,
        raw: "s.slow_frames / s.sample_rate",
    },
    Aggregate {
        name: "frozen_frames",
        fold: Fold::Sum,
        raw: "s.frozen_frames / s.sample_rate",
    },
    Aggregate {
        name: "jank_ms",
        fold: Fold::Sum,
        raw: "s.jank_ms / s.sample_rate",
    },
    Aggregate {
        name: "delay_ms",
        fold: Fold::Sum,
        raw: "s.delay_ms / s.sample_rate",
    },
    Aggregate {
        name: "longest_drop",
        fold: Fold::Max,
        raw: "s.longest_drop",
    },
    Aggregate {
        name: "late",
        fold: Fold::Sum,
        raw: "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    },
    Aggregate {
        name: "frame_times_ms",
        fold: Fold::Bounds,
        raw: "mapApply((ms, frames) -> (ms, frames / s.sample_rate), s.frame_time_hist)",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
    Aggregate {
        name: "sessions",
        fold: Fold::Distinct,
        raw: "s.session_id",
    },
];

const FRAME_WINDOWS_MEASURES: &[Measure] = &[
    Measure {
        name: "count",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("count"),
    },
    Measure {
        name: "samples",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("samples"),
    },
    Measure {
        name: "installs",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("installs"),
    },
    Measure {
        name: "sessions",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("sessions"),
    },
    Measure {
        name: "duration_ms",
        unit: Unit::Milliseconds,
        better: Better::Neither,
        formula: Formula::Is("duration_ms"),
    },
    Measure {
        name: "frames_drawn",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("frames_drawn"),
    },
    Measure {
        name: "frames_dropped",
        unit: Unit::Count,
        better: Better::Lower,
        formula: Formula::Is("frames_dropped"),
    },
    Measure {
        name: "dropped_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("frames_dropped", "frames_drawn", 1.),
    },
    Measure {
        name: "slow_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("slow_frames", "frames_drawn", 1.),
    },
    Measure {
        name: "frozen_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("frozen_frames", "frames_drawn", 1.),
    },
    Measure {
        name: "jank_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Is("jank_ms"),
    },
    Measure {
        name: "delay_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Is("delay_ms"),
    },
    Measure {
        name: "jank_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("jank_ms", "duration_ms", 1.),
    },
    Measure {
        name: "delay_ms_per_minute",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Ratio("delay_ms", "duration_ms", 60000.),
    },
    Measure {
        name: "fps",
        unit: Unit::PerSecond,
        better: Better::Higher,
        formula: Formula::Ratio("frames_drawn", "duration_ms", 1000.),
    },
    Measure {
        name: "longest_drop",
        unit: Unit::Count,
        better: Better::Lower,
        formula: Formula::Is("longest_drop"),
    },
    Measure {
        name: "late_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("late", "count", 1.),
    },
];
