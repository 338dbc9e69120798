//! The log through its public surface, on real files, as one binary.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod behaviour;
mod concurrency;
mod folder;
mod kill;
mod model;
mod torture;
