//! The sampler for Linux and Android. Only `signal`, `slot` and `thread` contain `unsafe` code.

#[cfg(target_arch = "x86_64")]
mod blocked;
mod copied_stack;
#[cfg(target_arch = "x86_64")]
mod frame_pointer;
#[cfg(target_arch = "x86_64")]
mod function_table;
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
