//! The rules of ARCHITECTURE.md and CONTRIBUTING.md that a machine can check.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod circles;
mod explained;
mod features;
mod links;
mod rules;
