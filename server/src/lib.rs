//! The unjank server as a library: a function of settings, listeners and a shutdown signal.
//!
//! `http` → `intake` → `ingest` → `store`. `config`, `clock`, `metrics`, `task`, `holm`, `fingerprint`, `expressions` and `shares` are leaves.
//! See ARCHITECTURE.md.

pub mod alerts;
pub mod auditor;
pub mod backup;
pub mod cli;
pub mod clock;
pub mod compare;
pub mod config;
pub mod control;
pub mod demo;
pub mod erasure;
pub mod expressions;
pub mod fingerprint;
pub mod forward;
pub mod forwarding;
pub mod history;
pub mod holm;
pub mod http;
pub mod ingest;
pub mod intake;
pub mod link_template;
pub mod metrics;
pub mod openid_connect;
pub mod otlp;
pub mod proxies;
pub mod query;
pub mod readiness;
pub mod recent;
pub mod remote_config;
pub mod retention_sweep;
pub mod run_report;
pub mod secret;
pub mod serve;
pub mod shares;
pub mod source_links;
pub mod stacks;
pub mod store;
pub mod symbols;
pub mod task;
pub mod test_run;
pub mod trace_links;
pub mod web_origins;

mod app;

pub use app::App;
pub use serve::Listeners;
