//! The engine as its users see it: a real ClickHouse in a separate process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod inserts;
mod lifecycle;
mod limits;
mod peers;
mod rust_client;
mod stand_in;
mod support;
