//! Ends ClickHouse when it cannot write to a file.
//!
//! The library of ClickHouse ignores failed writes: on a full disk it confirms INSERTs whose files are empty, and replaces parts by merged
//! ones that are empty. So the program defines `write` in place of libc's, and the library finds this one. A process that ends before it
//! confirms loses nothing: at its next start, ClickHouse removes what was not finished.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// Only the process that becomes ClickHouse ends.
static ENDS: AtomicBool = AtomicBool::new(false);

/// From now on, a failed write to a file ends the process.
pub(crate) fn end_the_process() {
    ENDS.store(true, Ordering::Relaxed);
}

/// `write(2)`.
///
/// # Safety
/// As libc's.
#[expect(unsafe_code, reason = "it takes the place of a function of libc")]
#[expect(unreachable_pub, reason = "the linker reaches it")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: usize) -> isize {
    // SAFETY: the caller keeps to the contract of `write`.
    let written = unsafe { libc::syscall(libc::SYS_write, file, bytes, count) };
    if written < 0 && ENDS.load(Ordering::Relaxed) {
        end_if_lost(file);
    }
    written as isize
}

#[expect(
    unsafe_code,
    reason = "it may run anywhere in ClickHouse, so it only calls what a signal handler may call"
)]
fn end_if_lost(file: c_int) {
    // SAFETY: plain calls of libc. `found` is written by `fstat`. errno is as before for the caller.
    unsafe {
        let errno = libc::__errno_location();
        let error = *errno;
        let mut found: libc::stat = std::mem::zeroed();
        let is_file =
            libc::fstat(file, &raw mut found) == 0 && found.st_mode & libc::S_IFMT == libc::S_IFREG;
        *errno = error;
        if !is_file || error == libc::EINTR || error == libc::EAGAIN {
            return;
        }
        let why: &[u8] = match error {
            libc::ENOSPC => b"the disk is full",
            libc::EDQUOT => b"the disk quota is used up",
            libc::EIO => b"the disk fails",
            libc::EROFS => b"the disk is read-only",
            libc::EFBIG => b"the file is too large",
            _ => b"the system refused a write",
        };
        for text in [
            b"{\"level\":\"Fatal\",\"message\":\"",
            why,
            b": ClickHouse ends before it confirms what is not stored\"}\n",
        ] {
            libc::syscall(libc::SYS_write, 2, text.as_ptr(), text.len());
        }
        libc::_exit(EXIT_CODE);
    }
}

/// `EX_IOERR` of `sysexits.h`.
const EXIT_CODE: c_int = 74;
