//! Stacks that are deep, that belong to a signal handler, or that are unknown.
#![expect(unsafe_code, reason = "signals and stacks are made with the C library")]

use std::hint::black_box;
use std::io::{PipeReader, Read};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::{mem, ptr};

use unjank_stack_sampler::Stack;

use crate::watched::{capture_until, has, wait_for, watch};

const COPIED_AT_MOST: usize = 256 << 10;

#[inline(never)]
fn recurse(depth: usize, end: &Receiver<()>) -> u64 {
    let local = black_box([depth as u64; 8]);
    if depth == 0 {
        wait_for(end);
        return 0;
    }
    recurse(depth - 1, end) + black_box(local)[3]
}

#[test]
fn a_stack_is_cut_at_the_requested_depth() {
    let (keep, end) = sync_channel::<()>(0);
    let watched = watch(move || recurse(300, &end));
    capture_until(&watched.sampler, |stack| has(stack, &["wait_for"]));
    for depth in [0, 1, 50, 200] {
        let stack = watched.sampler.capture(depth).unwrap();
        assert_eq!(stack.frames.len(), depth);
        assert!(stack.truncated);
    }
    let whole = watched.sampler.capture(10_000).unwrap();
    assert!(!whole.truncated);
    let functions = whole.frames.iter().filter_map(|one| one.function.as_ref());
    assert_eq!(functions.filter(|one| one.contains("recurse")).count(), 301);
    drop(keep);
    watched.thread.join().unwrap();
}

#[test]
fn a_stack_deeper_than_the_buffer_keeps_its_inner_frames() {
    let (keep, end) = sync_channel::<()>(0);
    let watched = watch(move || recurse(5_000, &end));
    let stack = capture_until(&watched.sampler, |stack| has(stack, &["wait_for"]));
    assert_eq!(stack.copied_bytes, COPIED_AT_MOST);
    let stack = watched.sampler.capture(100_000).unwrap();
    assert!(stack.truncated);
    assert!(stack.frames.len() > 500, "{}", stack.frames.len());
    drop(keep);
    watched.thread.join().unwrap();
}

/// The pipe that the handlers of these tests read from. They block until its other end is closed.
struct Gate(AtomicI32);

impl Gate {
    #[inline(never)]
    fn wait_in_handler(&self) {
        let mut byte = 0_u8;
        // SAFETY: reads at most one byte into a local.
        let read = unsafe { libc::read(self.0.load(Ordering::Relaxed), (&raw mut byte).cast(), 1) };
        assert_eq!(black_box(read), 0);
    }

    fn open(&self) -> (PipeReader, impl Sized) {
        let (reader, writer) = std::io::pipe().unwrap();
        self.0.store(reader.as_raw_fd(), Ordering::Relaxed);
        (reader, writer)
    }
}

fn handle(signal: i32, flags: i32, handler: extern "C" fn(i32)) {
    // SAFETY: the handlers of these tests only read from a pipe.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = flags;
        assert_eq!(
            libc::sigaction(signal, &raw const action, ptr::null_mut()),
            0
        );
    }
}

#[inline(never)]
fn raise_a_signal(signal: i32) -> i32 {
    // SAFETY: the signal has a handler.
    black_box(unsafe { libc::raise(signal) })
}

static ON_OWN_STACK: Gate = Gate(AtomicI32::new(-1));

extern "C" fn handler_on_own_stack(_: i32) {
    ON_OWN_STACK.wait_in_handler();
}

#[test]
fn a_thread_inside_another_signal_handler_is_unwound_through_it() {
    let (reader, writer) = ON_OWN_STACK.open();
    let signal = libc::SIGRTMIN() + 2;
    handle(signal, libc::SA_RESTART, handler_on_own_stack);
    let watched = watch(move || raise_a_signal(signal));
    let stack = capture_until(&watched.sampler, |stack| {
        has(stack, &["wait_in_handler", "handler_on_own_stack"])
    });
    assert!(
        has(&stack, &["handler_on_own_stack", "raise_a_signal"]),
        "{stack:#?}"
    );
    assert!(!stack.truncated);
    drop(writer);
    watched.thread.join().unwrap();
    drop(reader);
}

static ON_OTHER_STACK: Gate = Gate(AtomicI32::new(-1));

extern "C" fn handler_on_other_stack(_: i32) {
    ON_OTHER_STACK.wait_in_handler();
}

#[test]
fn a_thread_on_its_alternate_stack_is_captured_there() {
    let (reader, writer) = ON_OTHER_STACK.open();
    let signal = libc::SIGRTMIN() + 3;
    handle(
        signal,
        libc::SA_RESTART | libc::SA_ONSTACK,
        handler_on_other_stack,
    );
    // The standard library gives every thread an alternate stack.
    let watched = watch(move || raise_a_signal(signal));
    let stack = capture_until(&watched.sampler, |stack| {
        has(stack, &["wait_in_handler", "handler_on_other_stack"])
    });
    assert!(stack.copied_bytes < COPIED_AT_MOST, "{stack:#?}");
    drop(writer);
    watched.thread.join().unwrap();
    drop(reader);
}

thread_local! {
    static BLOCKED_IN_COROUTINE: std::cell::RefCell<Option<PipeReader>> =
        const { std::cell::RefCell::new(None) };
}

extern "C" fn wait_in_coroutine() {
    BLOCKED_IN_COROUTINE.with_borrow_mut(|reader| {
        let mut byte = [0];
        assert_eq!(reader.as_mut().unwrap().read(&mut byte).unwrap(), 0);
    });
}

/// Runs a function on a stack of its own that ends at unmapped memory.
fn run_coroutine(run: extern "C" fn()) {
    const SIZE: usize = 256 << 10;
    // SAFETY: the stack is fresh memory followed by a page without access. Both contexts live on this frame until the coroutine
    // has returned to it.
    unsafe {
        let (all, none) = (SIZE + 4096, libc::PROT_NONE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let stack = libc::mmap(ptr::null_mut(), all, none, flags, -1, 0);
        assert_ne!(stack, libc::MAP_FAILED);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        assert_eq!(libc::mprotect(stack, SIZE, access), 0);
        let (mut main, mut coroutine): (libc::ucontext_t, libc::ucontext_t) = mem::zeroed();
        assert_eq!(libc::getcontext(&raw mut coroutine), 0);
        coroutine.uc_stack.ss_sp = stack;
        coroutine.uc_stack.ss_size = SIZE;
        coroutine.uc_link = &raw mut main;
        libc::makecontext(&raw mut coroutine, run, 0);
        assert_eq!(libc::swapcontext(&raw mut main, &raw const coroutine), 0);
        libc::munmap(stack, all);
    }
}

#[test]
fn a_thread_that_waits_in_a_coroutine_is_captured_there() {
    let (reader, writer) = std::io::pipe().unwrap();
    let watched = watch(move || {
        BLOCKED_IN_COROUTINE.set(Some(reader));
        run_coroutine(wait_in_coroutine);
    });
    capture_until(&watched.sampler, |stack| {
        has(stack, &["read", "wait_in_coroutine"])
    });
    drop(writer);
    watched.thread.join().unwrap();
}

static STOP_COROUTINE: AtomicBool = AtomicBool::new(false);

extern "C" fn spin_in_coroutine() {
    while !STOP_COROUTINE.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

#[test]
fn the_handler_reads_nothing_from_an_unknown_stack() {
    let watched = watch(move || run_coroutine(spin_in_coroutine));
    let unknown = |stack: &Stack| stack.interrupted && stack.copied_bytes == 0;
    let stack = capture_until(&watched.sampler, unknown);
    assert!(stack.truncated);
    assert_eq!(stack.frames.len(), 1, "{stack:#?}");
    STOP_COROUTINE.store(true, Ordering::Relaxed);
    watched.thread.join().unwrap();
}
