//! Captures the stack of a blocked thread **while it is blocked**, from another thread of the same process.
//!
//! This crate copies the stack of the thread, and unwinds and symbolizes the copy. It does not decide when a thread counts as
//! blocked, how often to capture, or what happens to the stack.
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
//! let _disconnected = done.recv(); // blocked here: this is what the watchdog captures
//! let stack = watchdog.join().unwrap()?;
//! assert!(!stack.frames().is_empty());
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//! **A thread that waits in the kernel** (Linux, x86-64) is read from outside: the kernel shows where the thread will continue
//! (`/proc/self/task/…/syscall`), and the watching thread copies at most 256 KiB of the stack from there. The thread receives no
//! signal, so its system call is not cut short. The copy counts only if the thread did not run meanwhile.
//!
//! **A running thread** receives a real-time signal. The signal handler copies the registers and at most 256 KiB of the stack into
//! a buffer that lives as long as the process, and returns. The watched thread does nothing else, which takes some ten
//! microseconds. Threads that wait also receive the signal on aarch64 and where the process may not read that file (an Android
//! app that is not debuggable, or a process that was made undumpable with `prctl`).
//!
//! The watching thread unwinds the copy (by the tables in `.eh_frame`, or by frame pointers where there are none) and looks up
//! names.
//!
//! On other platforms, [`Sampler::for_this_thread`] returns [`SamplerError::Unsupported`], and the host implements
//! [`StackSource`].
//!
//! # Guarantees
//! * **The handler cannot deadlock.** It takes no lock, allocates nothing, calls only `memcpy`, `clock_gettime` and system calls,
//!   and preserves `errno`. It may interrupt `malloc`, `dlopen` or anything else.
//! * **The handler reads no byte outside the thread's stack**, whose bounds the thread itself determined. If a thread is on its alternate
//!   signal stack, that stack is copied. If a thread is on an unknown stack (a coroutine), the capture contains only the frame in
//!   its registers. From outside, unknown stacks are read through the kernel, which refuses addresses that are not mapped.
//! * **A late signal is harmless.** Each capture has a number. A handler that runs after its capture has timed out finds that the
//!   number is no longer valid, and does nothing. A handler that is copying at that time keeps the buffer until it is done. No
//!   second signal is queued while one is pending.
//! * **The signal never reaches a foreign handler.** A signal that other code handles or ignores is not used. Before each
//!   capture, the sampler checks that its handler is still installed ([`CaptureError::HandlerReplaced`]).
//! * Captures of one process run one at a time. Each waits at most three times for [`Options::timeout`]: for a thread
//!   that runs and waits in turn, for an earlier handler to finish, and for its own.
//! * No thread, timer or open file remains. The crate keeps two buffers, and for each module seen in a stack its unwind tables and
//!   12 bytes per function.
//!
//! # Notes for the host
//! * **Which signal.** The first unused one of `SIGRTMIN+8`, `+9`, …, or the one in [`Options::signal`]. It is unblocked for the
//!   watched thread. Code that waits for *all* signals (`sigwait` with a full set, `signalfd`) has to exclude it, or it receives
//!   this one.
//! * **`EINTR`.** Where a waiting thread is read from outside, captures cause none. Before a signal is sent, the thread has to
//!   occupy a processor for 0.5 ms. It may still enter a call in the microseconds before the signal arrives. Measured on
//!   two cores, with a thread that computes and sleeps in turn: about 1 of 100 signals cut a sleep short.
//! * Where waiting threads receive the signal: the handler is installed with `SA_RESTART`, so `read`, locks and similar calls
//!   continue. Linux never restarts a few calls: `poll`, `select`, `epoll_wait`, `nanosleep`, `usleep`, `sem_timedwait`, `msgrcv`
//!   and socket calls with a timeout return `EINTR`. The standard library and all common event loops handle that. C code that
//!   treats every error of `poll` as fatal does not.
//! * **Alternate stacks** are used if the thread has one (`SA_ONSTACK`). As for any signal, it needs room for what the kernel
//!   saves (`getauxval(AT_MINSIGSTKSZ)`, up to 12 KiB) and 2 KiB more. Those of the standard library have that.
//! * Do not unload a library that contains this crate while the process runs: it owns a signal handler and a hook of `fork`.
//! * In a child created by `fork`, create a new sampler. An inherited one returns [`CaptureError::ThreadEnded`].
//! * A capture allocates on the watching thread. If the watched thread is stuck inside the allocator and holds its lock, the
//!   watching thread gets stuck as well.
//!
//! # Limits
//! * A waiting async task is on no stack: the frames are those of the executor.
//! * Names come from `.symtab`, or from `.dynsym` if that was stripped, and are mangled. Without either, a frame has a module, a
//!   build id and an offset, from which the server finds the name. Inlined functions have no frame of their own.
//! * Code generated at run time (a JIT) can be unwound only if it keeps frame pointers, and has no names.
//! * The kernel does not show the frame pointer of a waiting thread. If a function needs it before a callee has saved it, the frame
//!   is searched for: the first place on the stack behind a call of that function. If no call confirms the place, for example
//!   because it was indirect, the frames from there on are likely but not certain.
//! * Where waiting threads receive the signal, a thread in a system call that no signal interrupts (state `D`) runs the handler
//!   only when that call ends, so the capture times out.
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
mod fork;
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
pub use fork::{clear_in_children, forks};
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
