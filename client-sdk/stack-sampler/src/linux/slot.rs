//! The one buffer that handlers write into, and the protocol that governs its ownership.
//!
//! The state is a number and a phase. The watching side *arms* the slot for a thread under a new number. The handler on that
//! thread moves `Armed` to `Writing` under the same number, writes, and ends with `Done`. The watching side may take `Armed`
//! back; from then on a late handler finds nothing to do. It never takes `Writing` back: the slot stays busy until the handler is
//! done. Numbers are never reused, so a handler cannot mistake a later capture for its own.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::copied_stack::Copied;
use super::registers::Registers;
use super::thread::Bounds;

/// Maximum number of bytes of stack that are copied.
pub(super) const MAX_STACK_BYTES: usize = 256 << 10;

const IDLE: u64 = 0;
const ARMED: u64 = 1;
const WRITING: u64 = 2;
const DONE: u64 = 3;
const PHASE: u64 = 3;
const PHASE_BITS: u32 = 2;

pub(super) static SLOT: Slot = Slot::new();

/// The result of a handler.
pub(super) struct Sample {
    pub(super) registers: Registers,
    /// When the handler started and ended, on the monotonic clock.
    pub(super) started: Duration,
    pub(super) ended: Duration,
    /// How many of the bytes belong to this sample. They start at the stack pointer.
    len: usize,
    bytes: [u8; MAX_STACK_BYTES],
}

impl Sample {
    /// Returns the copied stack, starting at the stack pointer.
    pub(super) fn stack(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) fn copied(&self) -> Copied<'_> {
        Copied {
            registers: self.registers,
            stack: self.stack(),
        }
    }

    /// Copies the memory between the stack pointer and the end of `bounds`, as far as it fits. Copies nothing if the stack
    /// pointer is outside `bounds`.
    ///
    /// Called in the handler: async-signal-safe.
    ///
    /// # Safety
    /// The memory between the stack pointer of `registers` and the end of `bounds` must be readable if the pointer
    /// lies within `bounds`.
    #[expect(unsafe_code, reason = "reads the stack of the interrupted code")]
    pub(super) unsafe fn copy(&mut self, registers: Registers, bounds: Option<Bounds>) {
        let sp = registers.sp;
        self.registers = registers;
        self.len = bounds.map_or(0, |bounds| bounds.above(sp).min(MAX_STACK_BYTES));
        let address = usize::try_from(sp).unwrap_or_default();
        if self.len == 0 {
            return;
        }
        let from = ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: `len` bytes from the stack pointer on are readable (the contract above) and fit into the buffer. The two do not
        // overlap, because the buffer is a static. The bytes belong to interrupted frames and cannot change, because this handler
        // runs on their thread. They are copied as bytes, never as values.
        unsafe { ptr::copy_nonoverlapping(from, self.bytes.as_mut_ptr(), self.len) }
    }
}

/// The slot that the module documentation describes.
pub(super) struct Slot {
    state: AtomicU64,
    thread: AtomicI32,
    low: AtomicUsize,
    high: AtomicUsize,
    sample: UnsafeCell<Sample>,
}

// SAFETY: only `sample` is not atomic. It is written by the handler that moved the state from `Armed` to `Writing`, of which
// there is one per number. It is read by the holder of `Watching` after that saw `Done`, which the handler stores last, with
// Release. The slot is not armed again before that reader has released its borrow.
#[expect(
    unsafe_code,
    reason = "a handler has no other way to return its result"
)]
unsafe impl Sync for Slot {}

/// The watching side's right to use the slot. There is only one, in a mutex.
pub(super) struct Watching {
    number: u64,
}

/// The slot cannot be armed, because a handler is still writing.
pub(super) struct StillWriting;

/// The progress of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// No handler has started yet.
    Waiting,
    /// A handler is copying.
    Writing,
    /// There is a sample.
    Done,
}

impl Slot {
    const fn new() -> Self {
        Self {
            state: AtomicU64::new(IDLE),
            thread: AtomicI32::new(0),
            low: AtomicUsize::new(0),
            high: AtomicUsize::new(0),
            sample: UnsafeCell::new(Sample {
                registers: Registers::ZERO,
                started: Duration::ZERO,
                ended: Duration::ZERO,
                len: 0,
                bytes: [0; MAX_STACK_BYTES],
            }),
        }
    }

    /// Lets `fill` write the sample if the slot is armed for `thread`. Returns whether it was.
    ///
    /// Called in the handler: async-signal-safe if `fill` is.
    #[expect(unsafe_code, reason = "hands out the buffer to its one writer")]
    pub(super) fn fill(&self, thread: i32, fill: impl FnOnce(Bounds, &mut Sample)) -> bool {
        let armed = self.state.load(Ordering::Acquire);
        if armed & PHASE != ARMED || self.thread.load(Ordering::Relaxed) != thread {
            return false;
        }
        let number = armed & !PHASE;
        // If the slot was armed again since the load above, the number differs and this fails. Otherwise, the thread that was
        // read belongs to this number.
        let writing = self.state.compare_exchange(
            armed,
            number | WRITING,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if writing.is_err() {
            return false;
        }
        let bounds = Bounds {
            low: self.low.load(Ordering::Relaxed),
            high: self.high.load(Ordering::Relaxed),
        };
        // SAFETY: this handler moved the state from `Armed` to `Writing`, so there is no other writer, and no reader before
        // `Done`. The signal is blocked while its handler runs, so the handler does not interrupt itself.
        fill(bounds, unsafe { &mut *self.sample.get() });
        self.state.store(number | DONE, Ordering::Release);
        true
    }
}

impl Watching {
    /// Creates the only instance; `super::sampler` keeps it in a mutex.
    pub(super) const fn new() -> Self {
        Self { number: 0 }
    }

    /// Creates the only instance of a child created by `fork`, which has none of the threads that may have used the slot.
    pub(super) fn in_a_child() -> Self {
        SLOT.state.store(IDLE, Ordering::Release);
        Self::new()
    }

    /// Opens the slot for one sample of `thread`.
    pub(super) fn arm(&mut self, thread: i32, bounds: Bounds) -> Result<(), StillWriting> {
        if SLOT.state.load(Ordering::Acquire) & PHASE == WRITING {
            return Err(StillWriting);
        }
        self.number = self.number.wrapping_add(1);
        SLOT.thread.store(thread, Ordering::Relaxed);
        SLOT.low.store(bounds.low, Ordering::Relaxed);
        SLOT.high.store(bounds.high, Ordering::Relaxed);
        SLOT.state.store(self.armed(), Ordering::Release);
        Ok(())
    }

    fn armed(&self) -> u64 {
        self.number << PHASE_BITS | ARMED
    }

    pub(super) fn progress(&self) -> Progress {
        match SLOT.state.load(Ordering::Acquire) & PHASE {
            WRITING => Progress::Writing,
            DONE => Progress::Done,
            _ => Progress::Waiting,
        }
    }

    /// Closes the slot to handlers that have not started. Returns the progress of the capture.
    pub(super) fn disarm(&mut self) -> Progress {
        let closed =
            SLOT.state
                .compare_exchange(self.armed(), IDLE, Ordering::Acquire, Ordering::Acquire);
        match closed {
            Ok(_) => Progress::Waiting,
            Err(_) => self.progress(),
        }
    }

    /// Returns the sample of the last capture once it is [`Progress::Done`].
    #[expect(unsafe_code, reason = "reads what the handler wrote")]
    pub(super) fn sample(&self) -> Option<&Sample> {
        if self.progress() != Progress::Done {
            return None;
        }
        // SAFETY: `Done` was read with Acquire, so the handler's writes are visible and complete. No handler writes again before
        // the slot is armed, which takes `&mut self` and so requires the end of this borrow.
        Some(unsafe { &*SLOT.sample.get() })
    }

    /// Touches every page of the buffer, so that the first handler does not wait for the kernel to allocate memory.
    #[expect(unsafe_code, reason = "writes to the buffer before any handler may")]
    pub(super) fn touch(&mut self) {
        if SLOT.state.load(Ordering::Acquire) & PHASE != IDLE {
            return;
        }
        // SAFETY: the slot is idle, and only the holder of `&mut self` can arm it, so no handler has access. The pointer is to
        // bytes of a static. The writes are volatile, because the compiler would remove writes of zeros over zeros.
        unsafe {
            let bytes = &raw mut (*SLOT.sample.get()).bytes;
            for page in (0..MAX_STACK_BYTES).step_by(4096) {
                bytes.cast::<u8>().add(page).write_volatile(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i32 = 7;
    const STACK: Bounds = Bounds {
        low: 0x1000,
        high: 0x2000,
    };

    fn fill_with(length: usize) -> bool {
        SLOT.fill(US, |bounds, sample| {
            assert_eq!(bounds, STACK);
            sample.len = length;
        })
    }

    /// A single test, because there is only one slot.
    #[test]
    fn a_sample_belongs_to_the_capture_that_requested_it() {
        let mut watching = Watching::new();
        watching.touch();
        assert!(!fill_with(1), "no capture is armed");

        assert!(watching.arm(US, STACK).is_ok());
        assert!(!SLOT.fill(US + 1, |_, _| unreachable!()), "another thread");
        assert_eq!(watching.progress(), Progress::Waiting);
        assert_eq!(watching.disarm(), Progress::Waiting);
        assert!(!fill_with(2), "too late");
        assert!(watching.sample().is_none());

        assert!(watching.arm(US, STACK).is_ok());
        assert!(fill_with(3));
        assert!(!fill_with(4), "a second handler of the same capture");
        assert_eq!(watching.disarm(), Progress::Done);
        assert_eq!(
            watching.sample().map(|sample| sample.stack().len()),
            Some(3)
        );

        assert!(watching.arm(US, STACK).is_ok());
        let filled = SLOT.fill(US, |_, sample| {
            assert_eq!(watching.disarm(), Progress::Writing);
            assert!(watching.sample().is_none(), "not before it is complete");
            assert!(watching.arm(US, STACK).is_err(), "not while it is written");
            sample.len = 5;
        });
        assert!(filled);
        assert!(watching.arm(US, STACK).is_ok());
        assert!(watching.sample().is_none(), "the sample of another capture");
        watching.disarm();
    }

    #[test]
    fn an_address_outside_the_stack_has_no_bytes_above_it() {
        assert_eq!(STACK.above(0x1000), 0x1000);
        assert_eq!(STACK.above(0x1fff), 1);
        for outside in [0, 0xfff, 0x2000, u64::MAX] {
            assert_eq!(STACK.above(outside), 0);
        }
    }
}
