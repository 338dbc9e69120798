//! The engine through its HTTP interface: each test speaks to a real engine in a process of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compression;
mod errors;
mod inserts;
mod lifecycle;
mod limits;
mod peers;
mod queries;
mod rust_client;
mod sessions;
mod support;
