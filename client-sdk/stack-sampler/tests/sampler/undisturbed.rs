//! Calls of C code that the system does not restart after a signal. A capture must not shorten them, and its stack must show who
//! made the call.
#![expect(unsafe_code, reason = "the calls are those of the C library")]

use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libloading::Library;
use unjank_stack_sampler::{CaptureError, Options};

use crate::watched::{capture_until, has, watch, watch_with};

const LASTS: Duration = Duration::from_millis(350);

/// How many stacks of a call are looked at.
const STACKS: usize = 10;

#[inline(never)]
fn caller_of_the_call(call: &impl Fn() -> bool) -> Duration {
    let since = Instant::now();
    assert!(black_box(call()), "the call did not end as it should");
    since.elapsed()
}

/// Makes the same call again and again while its stack is captured. `call` returns whether it ended as it would have without
/// captures. `names` are the functions that each stack of the call has to show, innermost first.
fn assert_undisturbed(names: &[&str], call: impl Fn() -> bool + Send + 'static) {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let watched = watch(move || {
        let mut shortest = Duration::MAX;
        while !theirs.load(Ordering::Relaxed) {
            shortest = shortest.min(caller_of_the_call(&call));
        }
        shortest
    });
    let names = [names, &["caller_of_the_call"]].concat();
    for _ in 0..STACKS {
        let stack = capture_until(&watched.sampler, |stack| {
            !stack.interrupted && has(stack, &names[..1])
        });
        assert!(has(&stack, &names), "{names:?}: {stack:#?}");
        assert!(!stack.truncated, "{names:?}: {stack:#?}");
    }
    stop.store(true, Ordering::Relaxed);
    let shortest = watched.thread.join().unwrap();
    assert!(shortest >= LASTS, "{names:?}: {shortest:?}");
}

fn lasts() -> libc::timespec {
    libc::timespec {
        tv_sec: 0,
        tv_nsec: i64::from(LASTS.subsec_nanos()),
    }
}

#[test]
fn poll_is_not_interrupted() {
    let millis = i32::try_from(LASTS.as_millis()).unwrap();
    // SAFETY: polls no file.
    assert_undisturbed(&["poll"], move || unsafe {
        libc::poll(std::ptr::null_mut(), 0, millis) == 0
    });
}

#[test]
fn select_is_not_interrupted() {
    assert_undisturbed(&["select"], || {
        let mut time = libc::timeval {
            tv_sec: 0,
            tv_usec: i64::from(LASTS.subsec_micros()),
        };
        let none = std::ptr::null_mut();
        // SAFETY: waits for no file, and the time is a local variable.
        unsafe { libc::select(0, none, none, none, &raw mut time) == 0 }
    });
}

#[test]
fn epoll_is_not_interrupted() {
    let millis = i32::try_from(LASTS.as_millis()).unwrap();
    assert_undisturbed(&["epoll_wait"], move || {
        // SAFETY: the descriptor is new, and one event fits into the local variable.
        unsafe {
            let epoll = libc::epoll_create1(0);
            let mut event = std::mem::zeroed();
            let woken = libc::epoll_wait(epoll, &raw mut event, 1, millis);
            libc::close(epoll);
            woken == 0
        }
    });
}

#[test]
fn usleep_is_not_interrupted() {
    // SAFETY: touches no memory.
    assert_undisturbed(&["nanosleep"], || unsafe {
        libc::usleep(LASTS.subsec_micros()) == 0
    });
}

#[test]
fn nanosleep_is_not_interrupted() {
    assert_undisturbed(&["nanosleep"], || {
        let time = lasts();
        // SAFETY: the time is a local variable.
        unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) == 0 }
    });
}

#[test]
fn a_semaphore_is_not_interrupted() {
    assert_undisturbed(&[], || {
        // SAFETY: the semaphore and the time are local variables, and the semaphore is initialised before its use.
        unsafe {
            let mut semaphore: libc::sem_t = std::mem::zeroed();
            assert_eq!(libc::sem_init(&raw mut semaphore, 0, 0), 0);
            let mut until = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut until);
            let nanos = until.tv_nsec + lasts().tv_nsec;
            until.tv_sec += nanos / 1_000_000_000;
            until.tv_nsec = nanos % 1_000_000_000;
            let waited = libc::sem_timedwait(&raw mut semaphore, &raw const until);
            waited == -1 && *libc::__errno_location() == libc::ETIMEDOUT
        }
    });
}

#[test]
fn a_futex_is_not_interrupted() {
    assert_undisturbed(&["syscall"], || {
        let (value, time) = (AtomicU32::new(0), lasts());
        // SAFETY: the value and the time are local variables.
        unsafe {
            let waited = libc::syscall(
                libc::SYS_futex,
                value.as_ptr(),
                libc::FUTEX_WAIT,
                0,
                &raw const time,
            );
            waited == -1 && *libc::__errno_location() == libc::ETIMEDOUT
        }
    });
}

#[test]
fn a_read_of_a_socket_with_a_timeout_is_not_interrupted() {
    let (reader, _writer) = std::os::unix::net::UnixStream::pair().unwrap();
    reader.set_read_timeout(Some(LASTS)).unwrap();
    assert_undisturbed(&["recv"], move || {
        let mut byte = 0_u8;
        // SAFETY: reads at most one byte into a local variable.
        unsafe {
            let read = libc::recv(reader.as_raw_fd(), (&raw mut byte).cast(), 1, 0);
            read == -1 && *libc::__errno_location() == libc::EAGAIN
        }
    });
}

/// C code with and without frame pointers, with a large frame and an indirect call.
const LIBRARY: &str = "
#include <poll.h>
#include <string.h>
__attribute__((noinline)) int poll_inner(int millis) {
    volatile char kept[SIZE];
    memset((void *)kept, 1, sizeof kept);
    int woken = poll(0, 0, millis);
    return woken + kept[3] - 1;
}
__attribute__((noinline)) int poll_outer(int (*inner)(int), int millis, int times) {
    volatile char kept[times * 16];
    kept[0] = 1;
    int woken = inner(millis) + kept[0] - 1;
    return woken;
}
int poll_library(int millis) {
    int woken = poll_outer(poll_inner, 1, 100);
    return woken + poll_outer(poll_inner, millis, 200);
}
";

#[test]
fn the_callers_in_c_code_are_found_for_all_kinds_of_frames() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("waits.c");
    std::fs::write(&source, LIBRARY).unwrap();
    let with = ["-fno-omit-frame-pointer", "-fomit-frame-pointer"];
    let levels = ["-O0", "-O2"];
    for (number, (level, frame_pointer, size)) in levels
        .iter()
        .flat_map(|level| with.iter().map(move |one| (level, one)))
        .flat_map(|(level, one)| ["64", "8000"].map(|size| (level, one, size)))
        .enumerate()
    {
        let path = folder.path().join(format!("libwaits{number}.so"));
        let compiled = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", level, frame_pointer, "-o"])
            .args([&path, &source])
            .arg(format!("-DSIZE={size}"))
            .status();
        assert!(compiled.unwrap().success());
        // SAFETY: loading the library runs no code.
        let library = unsafe { Library::new(&path) }.unwrap();
        let millis = i32::try_from(LASTS.as_millis()).unwrap();
        let callers = ["poll", "poll_inner", "poll_outer", "poll_library"];
        assert_undisturbed(&callers, move || {
            // SAFETY: the type is that of `poll_library`.
            unsafe {
                let poll = library.get::<unsafe extern "C" fn(i32) -> i32>(b"poll_library");
                poll.unwrap()(millis) == 0
            }
        });
    }
}

/// A thread that makes many short calls may enter one between the check and the arrival of the signal.
#[test]
fn hardly_any_of_many_short_calls_is_interrupted() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let options = Options {
        signal: Some(25),
        ..Options::default()
    };
    let watched = watch_with(options, move || {
        let (mut calls, mut interrupted) = (0_u32, 0_u32);
        while !theirs.load(Ordering::Relaxed) {
            // SAFETY: touches no memory.
            let slept = unsafe { libc::usleep(200) };
            calls += 1;
            interrupted += u32::from(slept != 0);
        }
        (calls, interrupted)
    });
    let (mut captured, mut signalled) = (0, 0);
    for _ in 0..5_000 {
        match watched.sampler.capture(16) {
            Ok(stack) => {
                captured += 1;
                signalled += u32::from(stack.interrupted);
            }
            Err(CaptureError::Timeout { .. } | CaptureError::Busy) => {}
            Err(error) => panic!("{error}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    let (calls, interrupted) = watched.thread.join().unwrap();
    assert!(captured > 4_000 && calls > 1_000, "{captured} {calls}");
    assert!(
        interrupted <= 50,
        "{interrupted} of {calls} calls; {signalled} signals in {captured} captures"
    );
}
