//! Threads that are interrupted at arbitrary points: while they allocate, open files or end.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use unjank_stack_sampler::{CaptureError, Options, Sampler};

use crate::watched::{has, spin_until, watch};

/// Allocates, frees, formats, opens and reads files, and expects everything to succeed.
fn work_hard(round: u64, kept: &mut HashMap<u64, String>) {
    kept.insert(round % 97, format!("{round}").repeat(round as usize % 700));
    let big = vec![round; 1 << (round % 16)];
    assert_eq!(big.iter().sum::<u64>(), round * big.len() as u64);
    if round.is_multiple_of(16) {
        let mut text = String::new();
        let mut file = File::open("/proc/self/stat").unwrap();
        file.read_to_string(&mut text).unwrap();
        assert!(text.contains("sampler"));
    }
}

#[inline(never)]
fn churn_until(stop: &AtomicBool) -> u64 {
    let (mut round, mut kept) = (0, HashMap::new());
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        work_hard(round, &mut kept);
    }
    round
}

#[test]
fn ten_thousand_captures_disturb_nothing() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let watched = watch(move || churn_until(&theirs));
    let (mut frames, mut ours, mut late) = (0, 0, 0);
    for _ in 0..10_000 {
        match watched.sampler.capture(128) {
            Ok(stack) => {
                frames += stack.frames.len();
                let functions = stack.frames.iter().filter_map(|one| one.function.as_ref());
                let mut here = functions.filter(|one| one.contains("churn_until"));
                ours += usize::from(here.next().is_some());
            }
            // On a busy machine, the thread may not run for a while.
            Err(CaptureError::Timeout { .. } | CaptureError::Busy) => late += 1,
            Err(error) => panic!("{error}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(watched.thread.join().unwrap() > 100);
    assert!(late < 100, "{late} of 10000 were too late");
    assert!(frames > 50_000, "{frames} frames in 10000 stacks");
    // Unwind tables cover nearly every instruction, including the prologues of functions.
    assert!(
        ours > 9_800,
        "only {ours} of 10000 stacks reach the outermost function"
    );
}

#[test]
fn errno_survives() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let watched = watch(move || {
        let mut looked = 0_u64;
        while !theirs.load(Ordering::Relaxed) {
            let missing = File::open("/there/is/no/such/file").unwrap_err();
            assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
            for _ in 0..500 {
                let errno = std::io::Error::last_os_error().raw_os_error();
                assert_eq!(errno, Some(libc::ENOENT));
            }
            looked += 1;
        }
        looked
    });
    for _ in 0..500 {
        let _late = watched.sampler.capture(4);
    }
    stop.store(true, Ordering::Relaxed);
    assert!(watched.thread.join().unwrap() > 0);
}

#[inline(never)]
fn first_worker(stop: &AtomicBool) {
    spin_until(stop);
    std::hint::black_box(1);
}

#[inline(never)]
fn second_worker(stop: &AtomicBool) {
    spin_until(stop);
    std::hint::black_box(2);
}

/// Starts a thread with three samplers: with no timeout, a short one and a long one.
fn work_for(work: fn(&AtomicBool), stop: &Arc<AtomicBool>) -> ([Sampler; 3], JoinHandle<()>) {
    let (give, take) = sync_channel(1);
    let stop = Arc::clone(stop);
    let thread = thread::spawn(move || {
        let samplers = [0, 25, 200_000].map(|micros| {
            let timeout = Duration::from_micros(micros);
            let signal = None;
            Sampler::with_options(Options { signal, timeout }).unwrap()
        });
        give.send(samplers).unwrap();
        work(&stop);
    });
    (take.recv().unwrap(), thread)
}

/// Captures that time out at once leave their signals behind, which then arrive during another capture.
#[test]
fn late_signals_never_reach_another_capture() {
    let stop = Arc::new(AtomicBool::new(false));
    let (first, first_thread) = work_for(first_worker, &stop);
    let (second, second_thread) = work_for(second_worker, &stop);
    let (mut answered, mut late) = (0, 0);
    for round in 0..3_000 {
        let which = round / 2 % 3;
        let (sampler, ours, other) = match round % 2 {
            0 => (&first[which], "first_worker", "second_worker"),
            _ => (&second[which], "second_worker", "first_worker"),
        };
        match sampler.capture(64) {
            Ok(stack) => {
                let spinning = has(&stack, &["spin_until"]);
                assert!(!spinning || has(&stack, &[ours]), "{stack:#?}");
                assert!(!has(&stack, &[other]), "{stack:#?}");
                answered += 1;
            }
            Err(CaptureError::Timeout { .. } | CaptureError::Busy) => late += 1,
            Err(error) => panic!("{error}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    first_thread.join().unwrap();
    second_thread.join().unwrap();
    assert!(
        answered > 500 && late > 500,
        "{answered} in time, {late} late"
    );
}

#[test]
fn a_thread_that_ends_during_captures_is_an_error() {
    for round in 0_u32..200 {
        let watched = watch(move || {
            for _ in 0..round {
                thread::yield_now();
            }
        });
        let error = loop {
            match watched.sampler.capture(64) {
                Ok(_) | Err(CaptureError::Timeout { .. } | CaptureError::Busy) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(error, CaptureError::ThreadEnded), "{error:?}");
        watched.thread.join().unwrap();
        let error = watched.sampler.capture(64).unwrap_err();
        assert!(matches!(error, CaptureError::ThreadEnded), "{error:?}");
    }
}
