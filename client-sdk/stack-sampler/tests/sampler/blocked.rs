//! The stack of a blocked thread shows what the thread waits for.

use std::hint::black_box;
use std::io::Read;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use unjank_stack_sampler::{Sampler, Stack, StackSource};

use crate::watched::{capture_until, has, wait_for, watch};

#[inline(never)]
fn outermost_work(wait: impl FnOnce()) -> u32 {
    inner_work(wait);
    black_box(1)
}

#[inline(never)]
fn inner_work(wait: impl FnOnce()) -> u32 {
    wait();
    black_box(2)
}

#[test]
fn a_sleeping_thread_is_captured_in_its_sleep() {
    let watched = watch(|| outermost_work(|| thread::sleep(Duration::from_millis(700))));
    let stack = capture_until(&watched.sampler, |stack| {
        has(stack, &["nanosleep", "inner_work", "outermost_work"])
    });
    assert!(!stack.truncated, "{stack:#?}");
    assert!(!has(&stack, &["outermost_work", "inner_work"]));
    assert!(stack.suspended < Duration::from_millis(5), "{stack:#?}");
    // The sleep is not shortened, although the signal interrupts it.
    watched.thread.join().unwrap();
}

#[test]
fn a_thread_that_waits_for_a_mutex_is_captured_there() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock().unwrap();
    let theirs = Arc::clone(&mutex);
    let watched = watch(move || {
        outermost_work(|| {
            *theirs.lock().unwrap() += 1;
        })
    });
    capture_until(&watched.sampler, |stack| {
        has(stack, &["Mutex", "inner_work", "outermost_work"])
    });
    drop(held);
    watched.thread.join().unwrap();
    assert_eq!(*mutex.lock().unwrap(), 1);
}

#[test]
fn a_thread_that_waits_for_a_condition_is_captured_there() {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = Arc::clone(&pair);
    let watched = watch(move || {
        outermost_work(|| {
            let ready = theirs.0.lock().unwrap();
            drop(theirs.1.wait_while(ready, |ready| !*ready).unwrap());
        })
    });
    capture_until(&watched.sampler, |stack| {
        has(stack, &["Condvar", "inner_work", "outermost_work"])
    });
    *pair.0.lock().unwrap() = true;
    pair.1.notify_all();
    watched.thread.join().unwrap();
}

#[test]
fn a_thread_that_reads_is_captured_there_and_the_read_continues() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let watched = watch(move || {
        outermost_work(move || {
            let mut byte = [0];
            // One call of `read`, so that an EINTR would show.
            let read = reader.read(&mut byte);
            assert_eq!(read.unwrap(), 0);
        })
    });
    for _ in 0..20 {
        capture_until(&watched.sampler, |stack| {
            has(stack, &["read", "inner_work", "outermost_work"])
        });
    }
    drop(writer);
    watched.thread.join().unwrap();
}

#[test]
fn two_threads_can_be_watched_at_once() {
    let (keep_one, one) = sync_channel::<()>(0);
    let (keep_two, two) = sync_channel::<()>(0);
    let one = watch(move || outermost_work(|| wait_for(&one)));
    let two = watch(move || inner_work(|| wait_for(&two)));
    let both = [one, two].map(|watched| {
        thread::spawn(move || {
            let there = |stack: &Stack| has(stack, &["wait_for", "inner_work"]);
            for _ in 0..200 {
                capture_until(&watched.sampler, there);
            }
            let stack = watched.sampler.capture(128).unwrap();
            (has(&stack, &["outermost_work"]), watched.thread)
        })
    });
    let seen = both.map(|watching| watching.join().unwrap());
    drop((keep_one, keep_two));
    let outermost = seen.map(|(outermost, thread)| {
        thread.join().unwrap();
        outermost
    });
    assert_eq!(outermost, [true, false]);
}

#[test]
fn several_threads_can_capture_one_thread() {
    let (keep, end) = sync_channel::<()>(0);
    let watched = watch(move || outermost_work(|| wait_for(&end)));
    capture_until(&watched.sampler, |stack| has(stack, &["wait_for"]));
    let ask = || {
        for _ in 0..50 {
            let stack = watched.sampler.capture(128).unwrap();
            assert!(has(&stack, &["wait_for", "outermost_work"]), "{stack:#?}");
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(ask);
        }
    });
    drop(keep);
    watched.thread.join().unwrap();
}

#[test]
fn frames_have_a_module_a_build_id_and_an_offset_on_the_wire() {
    let (keep, end) = sync_channel::<()>(0);
    let watched = watch(move || outermost_work(|| wait_for(&end)));
    capture_until(&watched.sampler, |stack| has(stack, &["wait_for"]));
    let source: &dyn StackSource = &watched.sampler;
    let frames = source.capture(128).unwrap();
    let mut frames = frames.iter();
    let ours = frames
        .find(|frame| frame.function.contains("inner_work"))
        .unwrap();
    assert!(ours.module.starts_with("sampler-"), "{ours:?}");
    assert!(ours.offset.is_some_and(|offset| offset > 0), "{ours:?}");
    assert!(ours.build_id.len() >= 16, "{ours:?}");
    assert!(ours.build_id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    drop(keep);
    watched.thread.join().unwrap();
}

#[inline(never)]
fn own_stack() -> Stack {
    let sampler = Sampler::for_this_thread().unwrap();
    black_box(sampler.capture(128).unwrap())
}

#[test]
fn a_thread_can_capture_itself() {
    let stack = own_stack();
    assert!(has(&stack, &["capture", "own_stack"]), "{stack:#?}");
}
