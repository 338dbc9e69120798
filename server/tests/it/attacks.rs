//! Attacks on the real program, each with the weakest credential that allows it. A test measures the responses that other clients get
//! during an attack, and how much the server's memory grows.
//!
//! The attacks run one at a time. Other tests may run at the same time, so latency has no limit here. `make attacks` runs them alone, on a
//! release build, with strict limits.

mod bodies;
mod connections;
mod exports;
mod expressions;
mod slow_rules;
mod target;
mod variety;
