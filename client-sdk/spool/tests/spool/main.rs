//! Tests of the log through its public API, on real files, in one binary.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod behaviour;
mod concurrency;
mod folder;
mod kill;
mod model;
mod torture;
