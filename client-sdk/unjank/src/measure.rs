//! What the app calls to measure something, and the monitors that measure by themselves: spans, frames, page loads, stalls, traffic, metrics.

pub(super) mod app;
pub(super) mod app_state;
mod awaited_frame;
pub(super) mod client;
pub(super) mod errors;
mod foreground_state;
pub(super) mod frames;
pub(super) mod instrumented;
pub(super) mod main_loop;
pub(super) mod measurements;
pub(super) mod meters;
pub(super) mod method_callsite;
pub(super) mod metric;
pub(super) mod metric_provider;
pub(super) mod monitor;
pub(super) mod next_frame;
pub(super) mod page_load;
pub(super) mod panics;
pub(super) mod rings;
pub(super) mod sampling;
pub(super) mod set_monitor;
pub(super) mod should_trace;
pub(super) mod site;
pub(super) mod span;
pub(super) mod span_record;
pub(super) mod span_tags;
pub(super) mod suspensions;
mod switched_off;
pub(super) mod switches;
pub(super) mod system_trace;
pub(super) mod ticks;
#[cfg(feature = "tracing")]
pub(super) mod tracing_layer;
pub(super) mod traffic;
pub(super) mod urgent;
pub(super) mod users;
