//! Runs ClickHouse beside the server: the embedded library or a `clickhouse` program, in a process of its own.
//!
//! [`Engine::start`] writes the configuration, starts the process and waits until ClickHouse listens. The process begins
//! as [`host::run`], which limits what it may do and then becomes ClickHouse. Nothing here knows what is stored.

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
