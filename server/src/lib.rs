//! The unjank server as a library: a function of settings, listeners and a shutdown signal.
//!
//! `http` → `intake` → `ingest` → `store`, on the crates `database`, `stacks`, `remote-config` and `foundation`.
//! See ARCHITECTURE.md.

pub mod access;
pub mod alerts;
pub mod auditor;
pub mod backup;
pub mod cli;
pub mod compare;
pub mod config;
pub mod demo;
pub mod erasure;
pub mod forward;
pub mod forwarding;
pub mod history;
pub mod http;
pub mod ingest;
pub mod intake;
pub mod metrics;
pub mod openid_connect;
pub mod otlp;
pub mod query;
pub mod readiness;
pub mod recent;
pub mod records;
pub mod retention_sweep;
pub mod run_report;
pub mod serve;
pub mod store;
pub mod symbols;
pub mod test_run;
pub mod trusted_proxies;
pub mod web_origins;

mod app;
mod bucket;
mod spreadsheet;

pub use app::App;
pub use serve::Listeners;
