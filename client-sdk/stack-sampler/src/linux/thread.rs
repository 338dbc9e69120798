//! Properties of the calling thread: its id, its stack, and its end.

use std::cell::RefCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_arch = "x86_64")]
use std::time::Duration;

use crate::SamplerError;

/// The bounds of a stack: from `low` (inclusive) to `high` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) low: usize,
    pub(super) high: usize,
}

impl Bounds {
    /// Returns how many bytes of the stack are at `address` and above; 0 if the address is not on this stack.
    pub(super) fn above(self, address: u64) -> usize {
        match usize::try_from(address) {
            Ok(address) if address >= self.low => self.high.saturating_sub(address),
            _ => 0,
        }
    }
}

/// Returns the kernel's id of the calling thread. Async-signal-safe.
#[expect(unsafe_code, reason = "a system call without a safe wrapper here")]
pub(super) fn this_thread() -> i32 {
    // SAFETY: takes no arguments, cannot fail, touches no memory. Not `libc::gettid`, which older systems lack.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    i32::try_from(id).unwrap_or_default()
}

/// Returns how long a thread of this process has had a processor, up to this moment.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "a call of the system without a safe wrapper here"
)]
pub(super) fn cpu_time(thread: i32) -> Option<Duration> {
    /// The kind of clock: of one thread, as the scheduler measures it.
    const OF_THREAD: i32 = 6;
    let clock = !thread << 3 | OF_THREAD;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes only to the local variable. The call fails if there is no such thread in this process.
    let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    (code == 0).then(|| Duration::new(seconds, nanos))
}

/// Returns the bounds of the calling thread's stack, without the guard page.
#[expect(unsafe_code, reason = "the C library knows where stacks are")]
pub(super) fn this_stack() -> Result<Bounds, SamplerError> {
    let failed = |code| SamplerError::System {
        doing: "get the bounds of the stack",
        source: io::Error::from_raw_os_error(code),
    };
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the calling thread is alive, and the attributes are written before anything reads them.
    let code = unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) };
    if code != 0 {
        return Err(failed(code));
    }
    let (mut start, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the call above succeeded, so the attributes are initialised. Both results are locals. The attributes are destroyed
    // once, after their last use.
    let code = unsafe {
        let code = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        code
    };
    if code != 0 {
        return Err(failed(code));
    }
    let low = start.expose_provenance();
    Ok(Bounds {
        low,
        high: low.saturating_add(size),
    })
}

/// Returns a flag that is set when the calling thread ends. The system reuses thread ids, so a signal sent to an id alone could
/// reach an unrelated thread.
pub(super) fn end_of_this_thread() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let kept = Arc::clone(&ended);
    let kept = ENDED.try_with(|all| match all.0.try_borrow_mut() {
        Ok(mut all) => {
            all.retain(|flag| Arc::strong_count(flag) > 1);
            all.push(kept);
            true
        }
        Err(_) => false,
    });
    // A thread that is already being torn down counts as ended.
    ended.store(!kept.unwrap_or(false), Ordering::Release);
    ended
}

thread_local! {
    static ENDED: EndFlags = const { EndFlags(RefCell::new(Vec::new())) };
}

struct EndFlags(RefCell<Vec<Arc<AtomicBool>>>);

impl Drop for EndFlags {
    fn drop(&mut self) {
        for flag in self.0.get_mut() {
            flag.store(true, Ordering::Release);
        }
    }
}
