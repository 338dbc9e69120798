//! Runs the binary against a real listener that decodes and records the requests.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod alerts;
mod retries;
mod sending;
mod sink;
