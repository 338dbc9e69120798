//! All subjects, one file per signal.

mod app_starts;
mod arrivals;
mod frame_windows;
mod janks;
mod metrics;
mod page_loads;
mod recompositions;
mod spans;
mod traffic;

use super::define::Subject;

pub(super) use self::spans::PACKAGE;

/// All subjects that can be queried.
pub static SUBJECTS: &[&Subject] = &[
    &spans::SPANS,
    &frame_windows::FRAME_WINDOWS,
    &janks::JANKS,
    &page_loads::PAGE_LOADS,
    &page_loads::PAGE_REQUESTS,
    &traffic::TRAFFIC,
    &metrics::METRICS,
    &app_starts::APP_STARTS,
    &app_starts::START_PHASES,
    &recompositions::RECOMPOSITIONS,
    &arrivals::USAGE,
    &arrivals::SDK_HEALTH,
    &arrivals::SDK_DROPS,
    &arrivals::OUTCOMES,
];

/// Returns the subject with this name.
#[must_use]
pub fn subject(name: &str) -> Option<&'static Subject> {
    SUBJECTS.iter().find(|one| one.name == name).copied()
}
