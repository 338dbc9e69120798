//! Ends ClickHouse if a write to a file fails.
//!
//! The ClickHouse library ignores failed writes: on a full disk, it confirms INSERTs whose files are empty, and replaces parts with merged parts that
//! are empty. So the program defines its own `write`, which the library uses instead of libc's. A process that ends before it confirms an INSERT
//! loses nothing: at its next start, ClickHouse deletes unfinished parts.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a failed write ends this process. Only the process that becomes ClickHouse sets it.
static ENDS: AtomicBool = AtomicBool::new(false);

/// From now on, a failed write to a file ends the process.
pub(crate) fn exit_on_failed_write() {
    ENDS.store(true, Ordering::Relaxed);
}

/// `write(2)`.
///
/// The same as for libc's `write`.
/// As libc's.
#[expect(unsafe_code, reason = "the function replaces one of libc")]
#[expect(unreachable_pub, reason = "the linker exports the function")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: usize) -> isize {
    // SAFETY: the caller fulfils the contract of `write`.
    let written = unsafe { libc::syscall(libc::SYS_write, file, bytes, count) };
    if written < 0 && ENDS.load(Ordering::Relaxed) {
        end_if_lost(file);
    }
    written as isize
}

#[expect(
    unsafe_code,
    reason = "the function may run anywhere in ClickHouse, so it only calls functions that are safe in a signal handler"
)]
fn end_if_lost(file: c_int) {
    // SAFETY: plain calls of libc. `fstat` fills `found`. The caller's errno is restored.
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
            _ => b"the system rejected a write",
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
