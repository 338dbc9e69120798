//! All subjects, one file per signal.

mod app_starts;
mod arrivals;
mod frame_windows;
mod janks;
mod metrics;
mod page_loads;
mod recompositions;
pub(super) mod requests;
mod sessions;
mod spans;
mod traffic;
mod uptime;

use std::collections::BTreeSet;

use super::define::{Dimension, Subject};

/// All subjects that can be queried.
pub static SUBJECTS: &[&Subject] = &[
    &spans::SPANS,
    &frame_windows::FRAME_WINDOWS,
    &janks::JANKS,
    &page_loads::PAGE_LOADS,
    &page_loads::PAGE_REQUESTS,
    &requests::REQUESTS,
    &traffic::TRAFFIC,
    &metrics::METRICS,
    &app_starts::APP_STARTS,
    &app_starts::START_PHASES,
    &recompositions::RECOMPOSITIONS,
    &sessions::SESSIONS,
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

/// Returns the names of the dimensions of all subjects.
#[must_use]
pub fn dimension_names() -> BTreeSet<&'static str> {
    SUBJECTS
        .iter()
        .flat_map(|subject| subject.dimensions.iter().chain(subject.common()))
        .map(Dimension::name)
        .collect()
}
