//! The server as its users meet it: over HTTP, on a real engine, with real bytes. One binary, one engine, one database a test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

mod accounts;
mod alert_actions;
mod alert_kills;
mod alert_regressions;
mod alert_rounds;
mod alerts;
mod api_tokens;
mod architecture;
mod attacks;
mod bad_days;
mod batches;
mod bench_data;
mod books;
mod circles;
mod comparison;
mod config_preview;
mod control;
mod dead_letters;
mod demo;
mod device_tokens;
mod engine;
mod erasures;
mod exact_periods;
mod exports;
mod flame;
mod folds;
mod gone_clients;
mod grafana;
mod ingest;
mod liveness;
mod notifications;
mod ofrep;
mod ofrep_clients;
mod ofrep_tokens;
mod openapi;
mod openid_connect;
mod operators;
mod overload;
mod packages;
mod people;
mod postgres;
mod processes;
mod prometheus;
mod proofs;
mod questions;
mod quotas;
mod rebuilds;
mod remote_config;
mod retention;
mod role_walk;
mod rules;
mod schema;
mod scrubbing;
mod sentry_cli;
mod server;
mod signal_quotas;
mod source_links;
mod stacks;
mod story;
mod symbol_attacks;
mod symbol_bucket;
mod symbol_uploads;
mod symbols;
mod symbols_api;
mod symbols_command;
mod traces;
mod two_servers;
mod wait;
mod web;
