//! The sampler for Linux and Android. Only `signal`, `slot` and `thread` contain `unsafe` code.

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
