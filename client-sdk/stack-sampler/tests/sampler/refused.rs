//! Signals that are blocked, in use, or replaced.
#![expect(unsafe_code, reason = "signals are set up with the C library")]

use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use unjank_stack_sampler::{CaptureError, Options, Sampler, SamplerError};

use crate::watched::{capture_until, has, spin_until, wait_for, watch_with};

fn with_signal(offset: u8) -> Options {
    Options {
        signal: Some(offset),
        timeout: Duration::from_millis(50),
    }
}

fn set_of(offset: u8) -> libc::sigset_t {
    // SAFETY: the set is initialised by the first call.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGRTMIN() + i32::from(offset));
        set
    }
}

fn mask(how: i32, offset: u8) {
    let set = set_of(offset);
    // SAFETY: changes the mask of this thread only.
    let code = unsafe { libc::pthread_sigmask(how, &raw const set, ptr::null_mut()) };
    assert_eq!(code, 0);
}

#[test]
fn a_running_thread_that_blocks_the_signal_is_a_timeout_and_a_later_capture_works() {
    const SIGNAL: u8 = 20;
    let [blocked, stop] = [flag(), flag()];
    let theirs = [Arc::clone(&blocked), Arc::clone(&stop)];
    let (give, ready) = sync_channel::<()>(0);
    let watched = watch_with(with_signal(SIGNAL), move || {
        mask(libc::SIG_BLOCK, SIGNAL);
        give.send(()).unwrap();
        spin_until(&theirs[0]);
        mask(libc::SIG_UNBLOCK, SIGNAL);
        spin_until(&theirs[1]);
    });
    ready.recv().unwrap();
    times_out(&watched.sampler, 3);
    blocked.store(true, Ordering::Relaxed);
    capture_until(&watched.sampler, |stack| has(stack, &["spin_until"]));
    stop.store(true, Ordering::Relaxed);
    watched.thread.join().unwrap();
}

#[test]
fn a_waiting_thread_that_blocks_the_signal_is_captured() {
    const SIGNAL: u8 = 24;
    let (keep, end) = sync_channel::<()>(0);
    let watched = watch_with(with_signal(SIGNAL), move || {
        mask(libc::SIG_BLOCK, SIGNAL);
        wait_for(&end);
    });
    let stack = capture_until(&watched.sampler, |stack| has(stack, &["recv", "wait_for"]));
    assert!(!stack.interrupted);
    drop(keep);
    watched.thread.join().unwrap();
}

fn flag() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

/// Captures until the thread runs and so many captures have timed out.
fn times_out(sampler: &Sampler, times: usize) {
    let mut timed_out = 0;
    while timed_out < times {
        match sampler.capture(64) {
            // The thread waits for the processor or has not begun to spin.
            Ok(stack) => assert!(!stack.interrupted, "{stack:?}"),
            Err(CaptureError::Timeout { .. }) => timed_out += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn unanswered_signals_do_not_pile_up() {
    const SIGNAL: u8 = 21;
    let stop = flag();
    let theirs = Arc::clone(&stop);
    let (give, ready) = sync_channel::<()>(0);
    let watched = watch_with(with_signal(SIGNAL), move || {
        mask(libc::SIG_BLOCK, SIGNAL);
        give.send(()).unwrap();
        spin_until(&theirs);
        let (set, at_once) = (
            set_of(SIGNAL),
            libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
        );
        let mut pending = 0;
        // SAFETY: takes pending signals of this thread and returns at once.
        while unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const at_once) } > 0
        {
            pending += 1;
        }
        pending
    });
    ready.recv().unwrap();
    times_out(&watched.sampler, 5);
    stop.store(true, Ordering::Relaxed);
    assert_eq!(watched.thread.join().unwrap(), 1);
}

extern "C" fn theirs(_: i32) {}

fn install_foreign_handler(offset: u8) {
    // SAFETY: the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = theirs as extern "C" fn(i32) as libc::sighandler_t;
        let signal = libc::SIGRTMIN() + i32::from(offset);
        assert_eq!(
            libc::sigaction(signal, &raw const action, ptr::null_mut()),
            0
        );
    }
}

#[test]
fn a_signal_in_use_is_not_claimed() {
    install_foreign_handler(22);
    let error = Sampler::with_options(with_signal(22)).unwrap_err();
    assert!(
        matches!(error, SamplerError::SignalTaken { offset: 22 }),
        "{error:?}"
    );
    let error = Sampler::with_options(with_signal(200)).unwrap_err();
    assert!(
        matches!(error, SamplerError::NoSuchSignal { .. }),
        "{error:?}"
    );
}

#[test]
fn a_signal_whose_handler_was_replaced_is_not_sent() {
    let stop = flag();
    let theirs = Arc::clone(&stop);
    let (keep, end) = sync_channel::<()>(0);
    let watched = watch_with(with_signal(23), move || {
        spin_until(&theirs);
        wait_for(&end);
    });
    capture_until(&watched.sampler, |stack| {
        stack.interrupted && has(stack, &["spin_until"])
    });
    install_foreign_handler(23);
    let error = watched.sampler.capture(64).unwrap_err();
    assert!(matches!(error, CaptureError::HandlerReplaced), "{error:?}");
    // A thread that waits needs no signal.
    stop.store(true, Ordering::Relaxed);
    capture_until_without_signal(&watched.sampler);
    drop(keep);
    watched.thread.join().unwrap();
}

fn capture_until_without_signal(sampler: &Sampler) {
    loop {
        match sampler.capture(64) {
            Ok(stack) if has(&stack, &["wait_for"]) => return,
            Ok(_) | Err(CaptureError::HandlerReplaced) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
