//! Threads that are interrupted in the middle of anything: allocating, opening files, ending.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use unjank_stack_sampler::CaptureError;

use crate::watched::watch;

/// Allocates, frees, formats, opens and reads files, and expects nothing to fail.
fn work_hard(round: u64, kept: &mut HashMap<u64, String>) {
    kept.insert(round % 97, format!("{round}").repeat(round as usize % 700));
    let big = vec![round; 1 << (round % 16)];
    assert_eq!(big.iter().sum::<u64>(), round * big.len() as u64);
    if round % 16 == 0 {
        let mut text = String::new();
        let mut file = File::open("/proc/self/stat").unwrap();
        file.read_to_string(&mut text).unwrap();
        assert!(text.contains("sampler"));
    }
}

#[test]
fn ten_thousand_captures_disturb_nothing() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let watched = watch(move || {
        let (mut round, mut kept) = (0, HashMap::new());
        while !theirs.load(Ordering::Relaxed) {
            round += 1;
            work_hard(round, &mut kept);
        }
        round
    });
    let (mut frames, mut ours, mut late) = (0, 0, 0);
    for _ in 0..10_000 {
        match watched.sampler.capture(128) {
            Ok(stack) => {
                frames += stack.frames.len();
                let functions = stack.frames.iter().filter_map(|one| one.function.as_ref());
                let mut here = functions.filter(|one| one.contains("ten_thousand_captures"));
                ours += usize::from(here.next().is_some());
            }
            // On a machine that does other things too the thread may not run for a while.
            Err(CaptureError::Timeout { .. } | CaptureError::Busy) => late += 1,
            Err(error) => panic!("{error}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(watched.thread.join().unwrap() > 100);
    assert!(late < 100, "{late} of 10000 came too late");
    assert!(frames > 50_000, "{frames} frames in 10000 stacks");
    // Nearly every instruction is covered by unwind tables, the prologues of functions too.
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

#[test]
fn threads_that_end_meanwhile_are_an_error() {
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
