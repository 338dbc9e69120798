//! Captures: signals the thread, waits for it, and unwinds the copy.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use unjank_protocol::Frame;

use super::modules::Modules;
use super::signal::{Signal, now};
use super::slot::{Progress, Watching};
use super::thread::{Bounds, end_of_this_thread, this_stack, this_thread};
use super::unwinding::unwind;
use crate::{CaptureError, Options, SamplerError, Stack, StackSource};

/// The first pause between checks for the end of the handler. Each pause is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// State shared by all captures of the process, which use it one at a time.
static CAPTURING: LazyLock<Mutex<Capturing>> = LazyLock::new(|| {
    Mutex::new(Capturing {
        watching: Watching::new(),
        modules: Modules::new(),
    })
});

struct Capturing {
    watching: Watching,
    modules: Modules,
}

/// Captures the stack of one thread. The documentation of the crate lists the guarantees.
#[derive(Debug)]
pub struct Sampler {
    process: u32,
    thread: i32,
    stack: Bounds,
    signal: Signal,
    timeout: Duration,
    ended: Arc<AtomicBool>,
    /// Whether the last signal may still be pending.
    unanswered: AtomicBool,
}

impl Sampler {
    /// Creates a sampler for the calling thread.
    ///
    /// # Errors
    /// If there is no unused signal, or the system does not report the bounds of the thread's stack.
    pub fn for_this_thread() -> Result<Self, SamplerError> {
        Self::with_options(Options::default())
    }

    /// Creates a sampler for the calling thread with the given signal and timeout.
    ///
    /// # Errors
    /// If the signal is in use, or the system does not report the bounds of the thread's stack.
    pub fn with_options(options: Options) -> Result<Self, SamplerError> {
        let stack = this_stack()?;
        let signal = Signal::claim(options.signal)?;
        signal.unblock_here()?;
        // The watched thread must not wait here. If a capture is running, it has already touched the buffer.
        if let Ok(mut capturing) = CAPTURING.try_lock() {
            capturing.watching.touch();
        }
        Ok(Self {
            process: process::id(),
            thread: this_thread(),
            stack,
            signal,
            timeout: options.timeout,
            ended: end_of_this_thread(),
            unanswered: AtomicBool::new(false),
        })
    }

    /// Captures the current stack of the thread: at most `depth` frames, innermost first.
    ///
    /// The first capture that encounters a module reads its unwind tables and symbols, which takes milliseconds on the calling
    /// thread.
    ///
    /// # Errors
    /// If the thread has ended or does not run the handler in time. See [`CaptureError`] for the other reasons.
    pub fn capture(&self, depth: usize) -> Result<Stack, CaptureError> {
        // In a child created by `fork`, the thread does not exist, and the mutex may stay locked forever.
        if self.process != process::id() || self.ended.load(Ordering::Acquire) {
            return Err(CaptureError::ThreadEnded);
        }
        let mut capturing = CAPTURING.lock().unwrap_or_else(PoisonError::into_inner);
        let Capturing { watching, modules } = &mut *capturing;
        // The thread of a capture that timed out may be inside its handler, waiting for CPU time.
        if !self.poll_until(|| watching.arm(self.thread, self.stack).is_ok()) {
            return Err(CaptureError::Busy);
        }
        let asked = now();
        if let Err(error) = self.send() {
            watching.disarm();
            return Err(error);
        }
        self.wait(watching)?;
        let sample = watching.sample().ok_or(CaptureError::Busy)?;
        let since = Instant::now();
        // The tables come from files of any origin. A defect in reading them costs this stack, not the calling thread.
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            modules.refresh();
            unwind(sample, self.stack, modules, depth)
        }));
        let Ok((frames, truncated)) = unwound else {
            *modules = Modules::new();
            return Err(CaptureError::Unwinding);
        };
        Ok(Stack {
            frames,
            truncated,
            suspended: sample.ended.saturating_sub(sample.started),
            reached_after: sample.started.saturating_sub(asked),
            unwound_in: since.elapsed(),
            copied_bytes: sample.stack().len(),
        })
    }

    fn send(&self) -> Result<(), CaptureError> {
        // Real-time signals queue up: a thread that blocks them for long would collect one per capture.
        if self.unanswered.load(Ordering::Relaxed) && self.is_pending() {
            return Ok(());
        }
        if !self.signal.is_ours() {
            return Err(CaptureError::HandlerReplaced);
        }
        if self.ended.load(Ordering::Acquire) {
            return Err(CaptureError::ThreadEnded);
        }
        self.signal.send(self.thread).map_err(|error| {
            if error.raw_os_error() == Some(libc::ESRCH) {
                CaptureError::ThreadEnded
            } else {
                CaptureError::Send(error)
            }
        })
    }

    /// Returns whether our signal is pending for the thread.
    fn is_pending(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/self/task/{}/status", self.thread));
        let pending = status.ok().and_then(|status| {
            let mask = status
                .lines()
                .find_map(|line| line.strip_prefix("SigPnd:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
        pending.is_some_and(|mask| mask & self.signal.bit() != 0)
    }

    /// Polls a condition until it holds or the timeout has passed. A wake-up would be faster, but it would add work to the
    /// handler, and the waiting thread is in no hurry.
    fn poll_until(&self, mut condition: impl FnMut() -> bool) -> bool {
        let since = Instant::now();
        let mut pause = FIRST_PAUSE;
        while !condition() {
            if since.elapsed() >= self.timeout {
                return false;
            }
            thread::sleep(pause);
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
        true
    }

    /// Waits until there is a sample.
    fn wait(&self, watching: &mut Watching) -> Result<(), CaptureError> {
        if self.poll_until(|| watching.progress() == Progress::Done) {
            self.unanswered.store(false, Ordering::Relaxed);
            return Ok(());
        }
        let progress = watching.disarm();
        self.unanswered
            .store(progress == Progress::Waiting, Ordering::Relaxed);
        if progress == Progress::Done {
            return Ok(());
        }
        if self.ended.load(Ordering::Acquire) {
            return Err(CaptureError::ThreadEnded);
        }
        Err(CaptureError::Timeout {
            waited: self.timeout,
        })
    }
}

impl StackSource for Sampler {
    fn capture(&self, depth: usize) -> Result<Vec<Frame<'static>>, CaptureError> {
        Self::capture(self, depth).map(|stack| stack.frames())
    }
}
