//! Captures: copies the stack of the thread, from outside or by a signal, and unwinds the copy.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use unjank_protocol::Frame;

#[cfg(target_arch = "x86_64")]
use super::blocked;
use super::copied_stack::Copied;
use super::modules::Modules;
use super::signal::{Signal, now};
use super::slot::{Progress, Watching};
use super::thread::{Bounds, end_of_this_thread, this_stack, this_thread};
use super::unwinding::{Unwound, unwind};
use crate::fork::{clear_in_children, forks};
use crate::{CaptureError, Options, SamplerError, Stack, StackSource};

/// The first pause between checks for the end of the handler. Each pause is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Returns the state shared by all captures of the process, which use it one at a time.
fn shared() -> &'static Mutex<Capturing> {
    // A child created by `fork` has its own, because a thread that the child does not have may hold that of its parent.
    static OF_PROCESSES: [OnceLock<Mutex<Capturing>>; 4] = [const { OnceLock::new() }; 4];
    let generation = usize::try_from(forks()).unwrap_or(usize::MAX);
    let [first, .., last] = &OF_PROCESSES;
    let of_this = OF_PROCESSES.get(generation).unwrap_or(last);
    let first = ptr::eq(of_this, first);
    of_this.get_or_init(|| {
        Mutex::new(Capturing {
            watching: if first {
                Watching::new()
            } else {
                Watching::in_a_child()
            },
            modules: Modules::new(),
            #[cfg(target_arch = "x86_64")]
            bytes: Vec::new(),
        })
    })
}

struct Capturing {
    watching: Watching,
    modules: Modules,
    /// The copy of a stack that was read from outside.
    #[cfg(target_arch = "x86_64")]
    bytes: Vec<u8>,
}

/// A stack that was read from outside.
struct Seen {
    stack: Stack,
    /// Whether the stack is a guess, and the thread does not notice a signal.
    may_signal: bool,
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
        // `forks` counts from here on. Without memory for the hook, only captures in a child may wait for each other.
        static COUNTING: AtomicBool = AtomicBool::new(false);
        let _uncounted = clear_in_children(&COUNTING).is_err();
        let stack = this_stack()?;
        let signal = Signal::claim(options.signal)?;
        signal.unblock_here()?;
        // The watched thread must not wait here. If a capture is running, it has already touched the buffer.
        if let Ok(mut capturing) = shared().try_lock() {
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
    /// A thread that waits in the kernel is read from outside, where the system permits that; its system call continues
    /// undisturbed. A running thread is interrupted by the signal.
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
        let mut capturing = shared().lock().unwrap_or_else(PoisonError::into_inner);
        let asked = now();
        let mut seen = self.capture_from_outside(&mut capturing, depth, asked)?;
        // A thread that runs and waits in turn is looked at until it waits or keeps running.
        while seen.is_none() && !self.keeps_running() && now().saturating_sub(asked) < self.timeout
        {
            seen = self.capture_from_outside(&mut capturing, depth, asked)?;
        }
        match seen {
            None => self.capture_by_signal(&mut capturing, depth, asked),
            Some(seen) if seen.may_signal => {
                // The registers of the thread are better than a guess.
                let exact = self.capture_by_signal(&mut capturing, depth, asked);
                exact.or(Ok(seen.stack))
            }
            Some(seen) => Ok(seen.stack),
        }
    }

    /// Captures the stack of a thread that waits in the kernel, without a signal. Returns `None` if the thread is running or the
    /// system does not show where it waits.
    #[cfg(target_arch = "x86_64")]
    fn capture_from_outside(
        &self,
        capturing: &mut Capturing,
        depth: usize,
        asked: Duration,
    ) -> Result<Option<Seen>, CaptureError> {
        let Capturing { modules, bytes, .. } = capturing;
        let Some(blocked) = blocked::copy(self.thread, self.stack, bytes) else {
            return Ok(None);
        };
        // The system reuses the ids of threads.
        if self.ended.load(Ordering::Acquire) {
            return Err(CaptureError::ThreadEnded);
        }
        let reached_after = now().saturating_sub(asked);
        let (unwound, unwound_in) = self.unwind(&blocked.copied(bytes), modules, depth)?;
        let may_signal = unwound.is_guess && blocked.continues_after_signal;
        let stack = Stack {
            frames: unwound.frames,
            truncated: unwound.truncated,
            interrupted: false,
            suspended: Duration::ZERO,
            reached_after,
            unwound_in,
            copied_bytes: bytes.len(),
        };
        Ok(Some(Seen { stack, may_signal }))
    }

    #[cfg(target_arch = "x86_64")]
    fn keeps_running(&self) -> bool {
        // A thread that captures itself runs.
        self.thread == this_thread() || blocked::keeps_running(self.thread)
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[expect(
        clippy::unused_self,
        reason = "the same signature on all architectures"
    )]
    fn keeps_running(&self) -> bool {
        true
    }

    /// The registers that the kernel shows are not enough on this architecture: a return address may be in the link register.
    #[cfg(not(target_arch = "x86_64"))]
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the same signature on all architectures"
    )]
    fn capture_from_outside(
        &self,
        _capturing: &mut Capturing,
        _depth: usize,
        _asked: Duration,
    ) -> Result<Option<Seen>, CaptureError> {
        Ok(None)
    }

    fn capture_by_signal(
        &self,
        capturing: &mut Capturing,
        depth: usize,
        asked: Duration,
    ) -> Result<Stack, CaptureError> {
        let Capturing {
            watching, modules, ..
        } = capturing;
        // The thread of a capture that timed out may be inside its handler, waiting for CPU time.
        if !self.poll_until(|| watching.arm(self.thread, self.stack).is_ok()) {
            return Err(CaptureError::Busy);
        }
        if let Err(error) = self.send() {
            watching.disarm();
            return Err(error);
        }
        self.wait(watching)?;
        let sample = watching.sample().ok_or(CaptureError::Busy)?;
        let (unwound, unwound_in) = self.unwind(&sample.copied(), modules, depth)?;
        Ok(Stack {
            frames: unwound.frames,
            truncated: unwound.truncated,
            interrupted: true,
            suspended: sample.ended.saturating_sub(sample.started),
            reached_after: sample.started.saturating_sub(asked),
            unwound_in,
            copied_bytes: sample.stack().len(),
        })
    }

    /// Unwinds a copy, and returns how long that took.
    fn unwind(
        &self,
        copied: &Copied<'_>,
        modules: &mut Modules,
        depth: usize,
    ) -> Result<(Unwound, Duration), CaptureError> {
        let since = Instant::now();
        // The tables come from files of any origin. A defect in reading them costs this stack, not the calling thread.
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            modules.refresh();
            unwind(copied, self.stack, modules, depth)
        }));
        let Ok(unwound) = unwound else {
            *modules = Modules::new();
            return Err(CaptureError::Unwinding);
        };
        Ok((unwound, since.elapsed()))
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
