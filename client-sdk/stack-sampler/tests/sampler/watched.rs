//! A watched thread, and checks of its stack.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use unjank_stack_sampler::{CaptureError, Options, Sampler, Stack};

const PATIENCE: Duration = Duration::from_secs(20);

/// A thread and its sampler.
pub(crate) struct Watched<T> {
    pub(crate) sampler: Sampler,
    pub(crate) thread: JoinHandle<T>,
}

/// Starts a thread that creates a sampler for itself and then runs `work`.
pub(crate) fn watch<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Watched<T> {
    watch_with(Options::default(), work)
}

pub(crate) fn watch_with<T: Send + 'static>(
    options: Options,
    work: impl FnOnce() -> T + Send + 'static,
) -> Watched<T> {
    let (give, take) = sync_channel(1);
    let thread = thread::spawn(move || {
        give.send(Sampler::with_options(options).unwrap()).unwrap();
        work()
    });
    let sampler = take.recv().unwrap();
    Watched { sampler, thread }
}

/// Captures until the stack is as wanted, because the thread takes a moment to get there.
pub(crate) fn capture_until(sampler: &Sampler, wanted: impl Fn(&Stack) -> bool) -> Stack {
    let since = Instant::now();
    let mut last = None;
    while since.elapsed() < PATIENCE {
        match sampler.capture(128) {
            Ok(stack) if wanted(&stack) => return stack,
            Err(error @ CaptureError::ThreadEnded) => panic!("{error}"),
            other => last = Some(other),
        }
    }
    panic!("no stack was as wanted; last: {last:#?}");
}

/// Returns whether functions whose mangled names contain `names` are on the stack in this order, innermost first.
pub(crate) fn has(stack: &Stack, names: &[&str]) -> bool {
    let functions = stack.frames.iter().filter_map(|one| one.function.as_ref());
    let mut names = names.iter().peekable();
    for function in functions {
        names.next_if(|name| function.contains(**name));
    }
    names.peek().is_none()
}

/// Blocks until the sender is dropped.
#[inline(never)]
pub(crate) fn wait_for(end: &Receiver<()>) {
    assert!(end.recv().is_err());
}

/// Computes until the flag is set, so that only a signal reaches the thread.
#[inline(never)]
pub(crate) fn spin_until(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}
