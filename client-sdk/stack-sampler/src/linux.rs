//! The sampler of Linux and Android. `unsafe` lives in `signal`, `slot` and `thread`, and nowhere else.

mod image;
mod maps;
mod modules;
mod registers;
mod sampler;
mod signal;
mod slot;
mod symbols;
mod thread;
mod unwinding;

pub use sampler::Sampler;
