//! Attacks with the weakest credential that allows them, on the program itself: what others get while an attack lasts, and what the
//! server's memory does.
//!
//! The tests run one at a time. Other tests may run beside them, so the limit here is wide; `make attacks` runs them alone, on a release
//! build, with the limit of a quiet machine.

mod bodies;
mod connections;
mod exports;
mod expressions;
mod slow_rules;
mod target;
mod variety;
