//! The state machines through their public API: worked examples, and comparisons with simple models.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod app_start;
mod frames;
mod loop_clock;
mod metrics_window;
mod page_loads;
mod recompositions;
mod run_log;
mod stalls;
mod traffic;
