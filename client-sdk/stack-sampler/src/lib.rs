//! The stack of a blocked thread, taken **while it is blocked**, from another thread of the same process.
//!
//! What lives here: reaching the thread, copying its stack, unwinding and naming the copy. What may not: deciding
//! when a thread counts as blocked, how often to look, what becomes of the stack.
//!
//! ```
//! # #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))] {
//! use std::{sync::mpsc, thread};
//!
//! use unjank_stack_sampler::Sampler;
//!
//! let sampler = Sampler::for_this_thread()?; // on the thread to watch, usually the main one
//! let (watchdog_is_done, done) = mpsc::sync_channel::<()>(0);
//! let watchdog = thread::spawn(move || {
//!     let stack = sampler.capture(128);
//!     drop(watchdog_is_done);
//!     stack
//! });
//! let _disconnected = done.recv(); // blocked: this is what the watchdog sees
//! let stack = watchdog.join().unwrap()?;
//! assert!(!stack.frames().is_empty());
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How
//! Linux and Android, x86-64 and aarch64: the watching thread sends a real-time signal to the watched one. Its
//! handler copies the registers and at most 256 KiB of the stack into a buffer that exists for the life of the
//! process, and returns. That is all the watched thread ever does: some ten microseconds. Unwinding (by the tables
//! in `.eh_frame`, by frame pointers where there are none) and looking up names happen on the watching thread, in
//! the copy. Elsewhere [`Sampler::for_this_thread`] answers [`SamplerError::Unsupported`] and the host implements
//! [`StackSource`].
//!
//! # What is guaranteed
//! * **The handler cannot deadlock.** It takes no lock, allocates nothing, calls only `memcpy`, `clock_gettime` and
//!   system calls, and leaves `errno` alone. It may interrupt `malloc`, `dlopen` or anything else.
//! * **It reads no byte outside the thread's stack**, whose bounds were asked for on the thread itself. A thread that
//!   is on its alternate signal stack is copied from there. A thread on a stack nobody knows (a coroutine) gives the
//!   one frame its registers name.
//! * **A late signal harms nothing.** A capture has a number. A handler that runs after its capture timed out finds
//!   the number gone and does nothing; one that is in the middle of copying keeps the buffer until it is through.
//!   No second signal is queued while one is pending.
//! * **No signal reaches somebody else's handler**: a signal that is handled or ignored by others is not taken, and
//!   before each sending it is checked that the handler still is ours ([`CaptureError::HandlerReplaced`]).
//! * Captures of one process take turns; each waits at most twice for [`Options::timeout`], for an
//!   earlier handler to get through and for its own.
//! * Nothing is kept running: no thread, no timer, no open file. Kept are the buffer and what is known about the
//!   modules that were seen in stacks (their unwind tables and 12 bytes per function).
//!
//! # What the host should know
//! * **Which signal.** The first of `SIGRTMIN+8`, `+9`, … that nobody has, or the one in [`Options::signal`]. It is
//!   unblocked for the watched thread. Code that waits for *all* signals (`sigwait` with a full set, `signalfd`) must
//!   leave it out, or it gets ours.
//! * **`EINTR`.** The handler is installed with `SA_RESTART`, so `read`, locks and the like continue. A few calls are
//!   never restarted by Linux: `poll`, `select`, `epoll_wait`, `nanosleep`, `usleep`, `sem_timedwait`, `msgrcv` and
//!   socket calls with a timeout return `EINTR`. The standard library and every event loop that deserves the name
//!   handle that; C code that takes any error of `poll` for the end of the world does not.
//! * **Alternate stacks** are used when the thread has one (`SA_ONSTACK`). As for any signal, it must have room for
//!   what the kernel saves (`getauxval(AT_MINSIGSTKSZ)`, up to 12 KiB) and 2 KiB more; those of the standard library do.
//! * A library that contains this crate must not be unloaded while the process lives: it owns a signal handler.
//! * A capture allocates on the watching thread. When the watched thread is stuck inside the allocator, holding its
//!   lock, the watching thread gets stuck with it.
//!
//! # Limits
//! * An async task that waits is on no stack: the frames are those of the executor.
//! * Names come from `.symtab`, or `.dynsym` where that was stripped, and are mangled. Without either there are module,
//!   build id and offset, from which the server finds the name. Inlined functions have no frame of their own.
//! * Code made at run time (a JIT) is passed only if it keeps frame pointers, and has no name.
//! * A thread inside a system call that no signal interrupts (state `D`) answers when that call ends: a timeout.
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::expect_used,
        clippy::unwrap_used
    )
)]

mod error;
mod options;
mod source;
mod stack;

#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    target_endian = "little"
))]
mod linux;

#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    target_endian = "little"
)))]
mod unsupported;

pub use error::{CaptureError, SamplerError};
pub use options::Options;
pub use source::StackSource;
pub use stack::{RawFrame, Stack};

#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    target_endian = "little"
))]
pub use linux::Sampler;
#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    target_endian = "little"
)))]
pub use unsupported::Sampler;
