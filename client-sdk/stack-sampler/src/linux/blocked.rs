//! The stack of a thread that waits in the kernel, read from outside. The thread receives no signal, so its system call does not
//! return early.
//!
//! The kernel shows where such a thread will continue (`/proc/self/task/…/syscall`): the stack pointer and the program counter,
//! but no other register. A copy counts only if the thread did not run while it was made.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use super::copied_stack::Copied;
use super::registers::Registers;
use super::slot::MAX_STACK_BYTES;
use super::thread::{Bounds, cpu_time};

/// How often a copy is repeated because the thread ran meanwhile.
const TRIES: u32 = 8;

/// How long a thread has to run without waiting before a signal may be sent.
const STEADY: Duration = Duration::from_micros(500);

/// The number of the system call `futex`.
const FUTEX: u64 = 202;

/// How many bytes are copied of a stack whose bounds are unknown, such as that of a coroutine or of a signal handler.
const UNKNOWN_STACK_BYTES: usize = 64 << 10;

/// A thread that waits in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocked {
    sp: u64,
    pc: u64,
    /// Whether the kernel continues the call after a signal handler, so that the caller does not notice the signal.
    pub(super) continues_after_signal: bool,
}

/// Returns the place where the thread waits and copies its stack into `bytes`. Returns `None` if the thread is running, or if the
/// system does not show where it waits.
pub(super) fn copy(thread: i32, stack: Bounds, bytes: &mut Vec<u8>) -> Option<Blocked> {
    (0..TRIES).find_map(|_| match try_copy(thread, stack, bytes) {
        Tried::Copied(blocked) => Some(Some(blocked)),
        Tried::NotWaiting => Some(None),
        Tried::RanMeanwhile => None,
    })?
}

/// Returns whether the thread keeps running: it had a processor for most of the time since a moment ago, and has not waited. A
/// signal would cut short a call that a thread is about to make, or is making without a processor. Returns `true` if the system
/// does not show that.
pub(super) fn keeps_running(thread: i32) -> bool {
    let (Some(before), Some(ran_before)) = (Switches::read(thread), cpu_time(thread)) else {
        return true;
    };
    let since = Instant::now();
    thread::sleep(STEADY);
    let (Some(now), Some(ran)) = (Switches::read(thread), cpu_time(thread)) else {
        return true;
    };
    let (ran, passed) = (ran.saturating_sub(ran_before), since.elapsed());
    let most = passed.saturating_sub(passed.checked_div(4).unwrap_or_default());
    now.waits == before.waits && ran >= most && wait_of(thread).is_none()
}

enum Tried {
    Copied(Blocked),
    NotWaiting,
    RanMeanwhile,
}

fn try_copy(thread: i32, stack: Bounds, bytes: &mut Vec<u8>) -> Tried {
    let look = || {
        let blocked = wait_of(thread)?;
        Some((blocked, Switches::read(thread)?))
    };
    // The count of switches is read outermost: a thread that runs in between is switched out before it waits again.
    let Some(before) = Switches::read(thread) else {
        return Tried::NotWaiting;
    };
    let Some(blocked) = wait_of(thread) else {
        return Tried::NotWaiting;
    };
    if read_stack(blocked.sp, stack, bytes).is_none() {
        return Tried::NotWaiting;
    }
    if look() == Some((blocked, before)) {
        Tried::Copied(blocked)
    } else {
        Tried::RanMeanwhile
    }
}

/// Returns where the thread waits.
fn wait_of(thread: i32) -> Option<Blocked> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    Blocked::parse(&text)
}

/// How often a thread was switched out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Switches {
    /// Because it began to wait.
    waits: u64,
    /// Because another thread got the processor.
    preempted: u64,
}

impl Switches {
    fn read(thread: i32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
        Self::parse(&status)
    }

    fn parse(status: &str) -> Option<Self> {
        let count = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        Some(Self {
            waits: count("voluntary_ctxt_switches:")?,
            preempted: count("nonvoluntary_ctxt_switches:")?,
        })
    }
}

/// Copies the stack from the stack pointer on. Reads through the kernel, which refuses addresses that are not mapped.
fn read_stack(sp: u64, stack: Bounds, bytes: &mut Vec<u8>) -> Option<()> {
    let wanted = match stack.above(sp) {
        0 => UNKNOWN_STACK_BYTES,
        known => known.min(MAX_STACK_BYTES),
    };
    bytes.resize(wanted, 0);
    let read = File::open("/proc/self/mem").ok()?.read_at(bytes, sp).ok()?;
    bytes.truncate(read);
    Some(())
}

impl Blocked {
    /// Parses `35 0x7ffe… (five more arguments) 0x7ffe… 0x7f0c…`, or `-1 0x7ffe… 0x7f0c…` for a thread that waits outside a
    /// call, for example for a page. A thread that runs shows `running`.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let number = |place: usize| {
            let field = fields.get(place)?.strip_prefix("0x")?;
            u64::from_str_radix(field, 16).ok()
        };
        match fields.len() {
            3 => Some(Self {
                sp: number(1)?,
                pc: number(2)?,
                continues_after_signal: true,
            }),
            9 => Some(Self {
                sp: number(7)?,
                pc: number(8)?,
                // With a timeout, which is the fourth argument, the call fails with EINTR instead.
                continues_after_signal: *fields.first()? == FUTEX.to_string() && number(4)? == 0,
            }),
            _ => None,
        }
    }

    pub(super) fn copied(self, bytes: &[u8]) -> Copied<'_> {
        Copied {
            registers: Registers::without_frame_pointer(self.pc, self.sp),
            stack: bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_parsed() {
        let poll = "7 0x7ffc10 0x1 0x15e 0x0 0x0 0x0 0x7ffc00 0x7f55aa\n";
        let parsed = Blocked::parse(poll).unwrap();
        assert_eq!((parsed.sp, parsed.pc), (0x7ffc00, 0x7f55aa));
        assert!(!parsed.continues_after_signal);
        let waits = |timeout: &str| format!("202 0x5000 0x80 0x2 {timeout} 0x0 0x0 0x10 0x20\n");
        assert!(
            Blocked::parse(&waits("0x0"))
                .unwrap()
                .continues_after_signal
        );
        let timed = Blocked::parse(&waits("0x7ffc20")).unwrap();
        assert!(!timed.continues_after_signal);
        let page = Blocked::parse("-1 0x7ffc00 0x401000\n").unwrap();
        assert_eq!((page.sp, page.pc), (0x7ffc00, 0x40_1000));
        for other in ["running\n", "", "7 0x1\n", "-1 7ffc00 0x401000\n"] {
            assert_eq!(Blocked::parse(other), None, "{other}");
        }
    }

    #[test]
    fn both_kinds_of_switches_are_counted() {
        let status = "State:\tS\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t30\n";
        let (waits, preempted) = (12, 30);
        assert_eq!(Switches::parse(status), Some(Switches { waits, preempted }));
        assert_eq!(Switches::parse("State:\tS\n"), None);
    }
}
