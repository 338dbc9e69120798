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

/// Blocks in a library, or for good if the address is never cleared.
type Wait = unsafe extern "C" fn(*const AtomicBool);

const LIBRARY: &str = "
__attribute__((noinline)) void wait_until(volatile char *stop) {
    while (!*stop) {}
}
";

#[test]
fn a_library_that_was_replaced_while_it_runs_keeps_its_build_id() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (
        folder.path().join("shop.c"),
        folder.path().join("libshop.so"),
    );
    std::fs::write(&source, LIBRARY).unwrap();
    let compiled = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-fno-omit-frame-pointer"])
        .args(["-Wl,--build-id=0x0123456789abcdef", "-o"])
        .args([&path, &source])
        .status();
    assert!(compiled.unwrap().success());
    // SAFETY: loading the library runs no code, and the type is that of `wait_until`.
    let library = unsafe { Library::new(&path) }.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let watched = watch(move || {
        // SAFETY: as above; the flag outlives the call.
        unsafe {
            let wait: Symbol<'_, Wait> = library.get(b"wait_until").unwrap();
            wait(&raw const *theirs);
        }
    });
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "an update").unwrap();
    let stack = capture_until(&watched.sampler, |stack| {
        let inner = stack.frames.first();
        inner.is_some_and(|frame| &*frame.module == "libshop.so")
    });
    let frame = stack.frames.first().unwrap();
    assert_eq!(&*frame.build_id, "0123456789abcdef", "{frame:?}");
    assert!(frame.offset.is_some(), "{frame:?}");
    stop.store(true, Ordering::Relaxed);
    watched.thread.join().unwrap();
}
