//! Tests of the SDK through its public API.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod app_state;
#[cfg(feature = "ureq")]
mod changed_on_the_way;
mod collector;
mod console;
mod delivery;
mod documented;
mod errors;
mod every_key;
mod export;
mod halves;
mod hooks;
#[cfg(feature = "reqwest")]
mod http_propagation;
#[cfg(feature = "reqwest")]
mod http_reqwest;
#[cfg(feature = "reqwest")]
mod http_server;
#[cfg(feature = "reqwest")]
mod http_tower;
mod live;
mod measured;
mod metric_attributes;
#[cfg(feature = "ureq")]
mod problems;
mod remote;
mod spans;
mod stall_began;
mod stalls;
mod switches;
mod system_trace;
#[cfg(feature = "tokio")]
mod tasks;
mod traced;
mod traced_items;
mod traced_shapes;
#[cfg(feature = "tracing")]
mod tracing_layer;
mod unreadable;
