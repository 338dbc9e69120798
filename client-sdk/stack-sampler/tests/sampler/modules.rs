//! Libraries that are loaded and unloaded while the process runs.
#![expect(unsafe_code, reason = "libraries are loaded by hand")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libloading::{Library, Symbol};

use crate::watched::{capture_until, has, watch};

/// A function of the C math library that takes longer the larger its first argument is.
type Bessel = unsafe extern "C" fn(i32, f64) -> f64;

#[inline(never)]
fn compute_in_a_library(stop: &AtomicBool) -> bool {
    // SAFETY: loading the C math library has no side effects, and the type is that of `jn`.
    unsafe {
        let Ok(library) = Library::new("libm.so.6") else {
            return false;
        };
        let bessel: Symbol<'_, Bessel> = library.get(b"jn").unwrap();
        while !stop.load(Ordering::Relaxed) {
            black_box(bessel(200_000, black_box(300_000.5)));
        }
    }
    true
}

#[test]
fn a_library_loaded_later_is_named_and_forgotten_when_it_is_unloaded() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let (give, loaded) = std::sync::mpsc::sync_channel::<()>(0);
    let watched = watch(move || {
        assert!(loaded.recv().is_ok());
        let had_library = compute_in_a_library(&theirs);
        std::thread::sleep(Duration::from_millis(500));
        had_library
    });
    // Capture once before, so that the other modules are already known when the library is loaded.
    capture_until(&watched.sampler, |stack| has(stack, &["recv"]));
    give.send(()).unwrap();
    let stack = capture_until(&watched.sampler, |stack| {
        let inner = stack.frames.first();
        inner.is_some_and(|frame| &*frame.module == "libm.so.6")
    });
    assert!(has(&stack, &["compute_in_a_library"]), "{stack:#?}");
    let frame = stack.frames.first().unwrap();
    assert!(
        frame.offset.is_some() && !frame.build_id.is_empty(),
        "{frame:?}"
    );
    stop.store(true, Ordering::Relaxed);
    let stack = capture_until(&watched.sampler, |stack| has(stack, &["nanosleep"]));
    assert!(!stack.truncated, "{stack:#?}");
    assert!(watched.thread.join().unwrap(), "there is no libm.so.6 here");
}

#[inline(never)]
fn ask_for_the_time_until(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        black_box(std::time::Instant::now());
    }
}

#[test]
fn the_code_of_the_kernel_is_unwound() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let watched = watch(move || ask_for_the_time_until(&theirs));
    let stack = capture_until(&watched.sampler, |stack| {
        let inner = stack.frames.first();
        inner.is_some_and(|frame| &*frame.module == "[vdso]")
    });
    assert!(has(&stack, &["ask_for_the_time_until"]), "{stack:#?}");
    stop.store(true, Ordering::Relaxed);
    watched.thread.join().unwrap();
}
