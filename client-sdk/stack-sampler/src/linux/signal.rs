//! The signal: claiming an unused one, sending it, and its handler.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libc::{c_int, c_void};

use super::registers::Registers;
use super::slot::SLOT;
use super::thread::{Bounds, this_thread};
use crate::SamplerError;

/// Where the search for an unused signal starts. Other code often uses the first few without checking.
const FIRST_CHOICE: c_int = 8;

/// Signals that have our handler. Once installed, a handler stays as long as the process.
static OURS: Mutex<Vec<Signal>> = Mutex::new(Vec::new());

/// A signal whose handler is [`on_signal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signal(c_int);

impl Signal {
    /// Claims `SIGRTMIN + offset`, or any unused signal. Reuses a signal that was claimed before.
    pub(super) fn claim(offset: Option<u8>) -> Result<Self, SamplerError> {
        let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = (libc::SIGRTMIN(), libc::SIGRTMAX());
        let claimed = if let Some(offset) = offset {
            let signal = Self(first.saturating_add(c_int::from(offset)));
            if signal.0 > last {
                return Err(SamplerError::NoSuchSignal { offset });
            }
            if !ours.contains(&signal) && !signal.install()? {
                return Err(SamplerError::SignalTaken { offset });
            }
            signal
        } else if let Some(signal) = ours.first() {
            *signal
        } else {
            Self::first_free(first, last)?
        };
        if !ours.contains(&claimed) {
            ours.push(claimed);
        }
        Ok(claimed)
    }

    fn first_free(first: c_int, last: c_int) -> Result<Self, SamplerError> {
        let preferred = first.saturating_add(FIRST_CHOICE);
        for number in (preferred..last).chain(first..preferred.min(last)) {
            if Self(number).install()? {
                return Ok(Self(number));
            }
        }
        Err(SamplerError::NoFreeSignal)
    }

    /// Returns the bit of this signal in the masks of `/proc`.
    pub(super) fn bit(self) -> u64 {
        let place = u32::try_from(self.0.saturating_sub(1)).unwrap_or(u32::MAX);
        1u64.checked_shl(place).unwrap_or_default()
    }

    /// Returns whether the handler is currently ours.
    #[expect(unsafe_code, reason = "queries the handler of the signal")]
    pub(super) fn is_ours(self) -> bool {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: changes nothing. The kernel fills in the action; if it does not, zeros are a valid one.
        let action = unsafe {
            libc::sigaction(self.0, ptr::null(), action.as_mut_ptr());
            action.assume_init()
        };
        action.sa_sigaction == handler()
    }

    /// Installs the handler if the signal has none. Returns whether it did.
    #[expect(unsafe_code, reason = "installs a handler")]
    fn install(self) -> Result<bool, SamplerError> {
        let failed = || SamplerError::System {
            doing: "install a signal handler",
            source: io::Error::last_os_error(),
        };
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: zeros are a valid action (default, no flags, empty mask), and every field that matters is set. The handler is
        // async-signal-safe and has the type that SA_SIGINFO requires. The previous action is checked first, and restored if
        // other code installed a handler in between, so no handler is lost.
        unsafe {
            if libc::sigaction(self.0, ptr::null(), before.as_mut_ptr()) != 0 {
                return Err(failed());
            }
            if before.assume_init().sa_sigaction != libc::SIG_DFL {
                return Ok(false);
            }
            let mut ours = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            ours.sa_sigaction = handler();
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            if libc::sigaction(self.0, &raw const ours, before.as_mut_ptr()) != 0 {
                return Err(failed());
            }
            let taken = before.assume_init().sa_sigaction != libc::SIG_DFL;
            if taken {
                libc::sigaction(self.0, before.as_ptr(), ptr::null_mut());
            }
            Ok(!taken)
        }
    }

    /// Lets the calling thread receive the signal, which may be blocked by inheritance.
    #[expect(unsafe_code, reason = "changes the signal mask of the thread")]
    pub(super) fn unblock_here(self) -> Result<(), SamplerError> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set before it is used. The handler is installed, so a pending signal cannot end
        // the process.
        let code = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), self.0);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut())
        };
        if code == 0 {
            return Ok(());
        }
        Err(SamplerError::System {
            doing: "unblock the signal",
            source: io::Error::from_raw_os_error(code),
        })
    }

    /// Sends the signal to one thread of this process.
    #[expect(unsafe_code, reason = "a system call without a safe wrapper here")]
    pub(super) fn send(self, thread: i32) -> io::Result<()> {
        // SAFETY: touches no memory. If the thread no longer exists, the call fails. A thread of another process cannot be
        // reached, because the call names this process.
        let code = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, self.0) };
        if code == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

fn handler() -> libc::sighandler_t {
    let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_signal;
    function as libc::sighandler_t
}

/// Runs on the watched thread at any point of its execution. Everything in here must be async-signal-safe.
#[expect(unsafe_code, reason = "a signal handler receives raw pointers")]
extern "C" fn on_signal(_number: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    let errno = errno_place();
    // SAFETY: the C library's location of this thread's `errno`, which lives as long as the thread.
    let saved = unsafe { errno.read() };
    let started = now();
    // SAFETY: with SA_SIGINFO, the kernel passes a context that is valid until the handler returns, and no other code writes to
    // it until then.
    if let Some(context) = unsafe { context.cast::<libc::ucontext_t>().as_ref() } {
        SLOT.fill(this_thread(), |bounds, sample| {
            let registers = Registers::from_context(context);
            let bounds = stack_in_use(registers.sp, bounds, context);
            // SAFETY: the bounds belong to this thread, which runs this handler and so has not ended. The memory above the stack
            // pointer is mapped, on the thread's own stack as well as on the alternate stack it is using.
            unsafe { sample.copy(registers, bounds) };
            sample.started = started;
            sample.ended = now();
        });
    }
    // SAFETY: as above.
    unsafe { errno.write(saved) };
}

/// Returns the stack that the interrupted code is on: the thread's own, the alternate one, or `None` for any other.
fn stack_in_use(sp: u64, own: Bounds, context: &libc::ucontext_t) -> Option<Bounds> {
    let low = context.uc_stack.ss_sp.expose_provenance();
    let alternate = Bounds {
        low,
        high: low.saturating_add(context.uc_stack.ss_size),
    };
    // A disabled alternate stack may still have its old bounds, whose memory is gone.
    let enabled = context.uc_stack.ss_flags & libc::SS_DISABLE == 0;
    if own.above(sp) > 0 {
        Some(own)
    } else if enabled && alternate.above(sp) > 0 {
        Some(alternate)
    } else {
        None
    }
}

/// Reads the monotonic clock. Async-signal-safe.
#[expect(
    unsafe_code,
    reason = "std's Instant is not guaranteed to be async-signal-safe"
)]
pub(super) fn now() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes only to the local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = Duration::from_secs(time.tv_sec.cast_unsigned());
    let nanos = Duration::from_nanos(time.tv_nsec.cast_unsigned());
    seconds.saturating_add(nanos)
}

#[expect(unsafe_code, reason = "a function of the C library")]
fn errno_place() -> *mut c_int {
    // SAFETY: takes no arguments; the C library returns a valid location for every thread.
    #[cfg(target_os = "android")]
    unsafe {
        libc::__errno()
    }
    // SAFETY: takes no arguments; the C library returns a valid location for every thread.
    #[cfg(not(target_os = "android"))]
    unsafe {
        libc::__errno_location()
    }
}
