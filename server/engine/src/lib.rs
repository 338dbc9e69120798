//! ClickHouse's HTTP interface over the embedded ClickHouse library.
//!
//! [`serve()`] runs it; [`library`] finds the library, or fetches it. The server's own client code then speaks to an
//! embedded engine and to a ClickHouse server in the same way. Nothing here knows what is stored.
//!
//! The way of a request: `http` authenticates it and finds it a place, `execute` runs its statement on a thread of its
//! own, fed by `input` and answering through `output`. `ffi` is the only file that calls C.

mod blocks;
mod body;
mod engine;
mod exception;
mod execute;
mod ffi;
mod flush;
mod formats;
mod http;
mod input;
pub mod library;
mod multipart;
mod options;
mod output;
mod request;
mod running;
mod serve;
mod sessions;
mod sql;

pub use options::EngineOptions;
pub use serve::serve;
