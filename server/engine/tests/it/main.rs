//! The engine through its HTTP interface: each test speaks to a real engine in a process of its own.

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
