//! Libraries that come and go while the process runs.
#![expect(unsafe_code, reason = "libraries are loaded by hand")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libloading::{Library, Symbol};

use crate::watched::{capture_until, has, watch};

/// A function of the C library of mathematics that takes as long as its first argument is large.
type Bessel = unsafe extern "C" fn(i32, f64) -> f64;

#[inline(never)]
fn compute_in_a_library(stop: &AtomicBool) -> bool {
    // SAFETY: the C library of mathematics does nothing when it is loaded, and the type is that of `jn`.
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
fn a_library_loaded_later_is_known_by_name_and_left_behind_when_it_goes() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let (give, loaded) = std::sync::mpsc::sync_channel::<()>(0);
    let watched = watch(move || {
        assert!(loaded.recv().is_ok());
        let had_library = compute_in_a_library(&theirs);
        std::thread::sleep(Duration::from_millis(500));
        had_library
    });
    // Look before, so that the modules are known already when one more comes.
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
