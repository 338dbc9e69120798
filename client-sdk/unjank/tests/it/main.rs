//! The SDK through its public surface.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod collector;
mod delivery;
mod remote;
mod spans;
