//! The binary against a real listener that decodes and remembers what it gets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alerts;
mod retries;
mod sending;
mod sink;
