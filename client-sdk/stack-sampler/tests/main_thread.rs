//! The main thread, whose stack is created by the kernel rather than the C library. Runs without the test harness, which runs
//! tests on other threads.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use unjank_stack_sampler::{Sampler, SamplerError};

#[inline(never)]
fn blocked_on_the_main_thread(end: &Receiver<()>) -> bool {
    end.recv().is_ok()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sampler = match Sampler::for_this_thread() {
        Err(SamplerError::Unsupported) => return Ok(()),
        sampler => sampler?,
    };
    let (keep, end) = sync_channel::<()>(0);
    let watchdog = thread::spawn(move || {
        loop {
            let stack = sampler.capture(128);
            let names = stack.iter().flat_map(|stack| &stack.frames);
            let mut names = names.filter_map(|frame| frame.function.as_ref());
            if names.any(|name| name.contains("blocked_on_the_main_thread")) {
                drop(keep);
                return stack;
            }
        }
    });
    assert!(!blocked_on_the_main_thread(&end));
    let stack = watchdog.join().map_err(|_| "the watchdog panicked")??;
    assert!(!stack.truncated, "{stack:#?}");
    let outermost = stack
        .frames
        .last()
        .and_then(|frame| frame.function.as_deref());
    assert_eq!(outermost, Some("_start"), "{stack:#?}");
    Ok(())
}
