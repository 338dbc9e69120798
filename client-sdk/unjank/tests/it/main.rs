//! Tests of the SDK through its public API.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod collector;
mod delivery;
mod documented;
mod every_key;
mod export;
mod halves;
mod remote;
mod spans;
mod traced;
mod traced_shapes;
#[cfg(feature = "tracing")]
mod tracing_layer;
mod unreadable;
