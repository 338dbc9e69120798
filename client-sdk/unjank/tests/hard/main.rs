//! The SDK under faults: an app in a process of its own that is killed, with a real folder and real HTTP. Whatever happens,
//! nothing is stored twice, losses are counted, and the app never blocks.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod app;
mod away;
mod collecting;
mod ended;
mod forms;
mod full_backlog;
#[cfg(target_os = "linux")]
mod full_disk;
mod killed;
mod moved_clock;
#[path = "../shop/server.rs"]
mod server;
#[cfg(target_os = "linux")]
mod suspended;
mod truth;
#[cfg(target_os = "linux")]
mod valgrind;
