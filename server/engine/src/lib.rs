//! Runs ClickHouse beside the server, in a separate process: the embedded library or a `clickhouse` program.
//!
//! [`Engine::start`] writes the configuration, starts the process and waits until ClickHouse listens. The process begins as [`host::run`], which
//! confines itself and then becomes ClickHouse. This crate knows nothing about the stored data.

mod clickhouse;
mod configuration;
mod confine;
mod engine;
#[cfg(target_os = "linux")]
mod failed_writes;
pub mod host;
pub mod library;
mod log;
mod options;
mod port;
mod private;
mod terminal;

pub use clickhouse::{ClickHouse, Search, locate};
pub use engine::Engine;
pub use options::{EngineOptions, HostProgram, Role, Source, User};
pub use port::Ports;
