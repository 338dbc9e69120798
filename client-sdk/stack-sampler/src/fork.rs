//! Notices that this process was created by `fork`, with the hook of the C library. The child has a copy of the memory but none of the
//! other threads. Calls of the system that bypass the C library (`clone`) go unnoticed, and so does `vfork`, which shares the memory.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many flags there can be.
const MAX_FLAGS: usize = 8;

static FORKS: AtomicU32 = AtomicU32::new(0);
static FLAGS: [AtomicPtr<AtomicBool>; MAX_FLAGS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_FLAGS];

/// Returns how many calls of `fork` lie between the process that first called [`clear_in_children`] and this one: 0 there, 1 in
/// its children, 2 in theirs. Always 0 where the system has no `fork`.
///
/// ```
/// assert_eq!(unjank_stack_sampler::forks(), 0);
/// ```
#[must_use]
#[inline]
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Makes `fork` set this flag to `false` in each child, before it returns in the child. A flag can be given several times. At most 8
/// different flags are possible.
///
/// ```
/// use std::sync::atomic::AtomicBool;
///
/// static THREAD_IS_RUNNING: AtomicBool = AtomicBool::new(false);
/// unjank_stack_sampler::clear_in_children(&THREAD_IS_RUNNING)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the C library has no memory for the hook, or if there are more than 8 flags.
pub fn clear_in_children(flag: &'static AtomicBool) -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    let flag = ptr::from_ref(flag).cast_mut();
    let mut places = FLAGS.iter();
    let place = places.find(|place| {
        let known = place.load(Ordering::Relaxed);
        known.is_null() || known == flag
    });
    let Some(place) = place else {
        return Err(io::Error::other("too many flags"));
    };
    place.store(flag, Ordering::Release);
    if !*installed {
        install()?;
        *installed = true;
    }
    Ok(())
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "the hook is a function of the C library")]
fn install() -> io::Result<()> {
    // SAFETY: the handler lives as long as the process (the crate documents that it must not be unloaded), and does only what is
    // allowed in a child of a process with several threads.
    let code = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(code))
    }
}

#[cfg(not(unix))]
fn install() -> io::Result<()> {
    Ok(())
}

/// Runs in the child, before `fork` returns there. Everything in here must be async-signal-safe.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "the C library calls it, and flags are kept as pointers"
)]
unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    for place in &FLAGS {
        // SAFETY: null, or made from a reference that is valid as long as the process.
        if let Some(flag) = unsafe { place.load(Ordering::Acquire).as_ref() } {
            flag.store(false, Ordering::Relaxed);
        }
    }
}
