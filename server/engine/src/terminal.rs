//! The terminal of ClickHouse. It hangs up when the supervisor ends for any reason.
//!
//! `clickhouse local` needs a terminal. Without one, an error of one connection ends the whole process. At a terminal it logs the error and
//! continues.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Opens a terminal. Returns the supervisor's end, which keeps ClickHouse running while it is open, and ClickHouse's standard input.
pub(crate) fn open() -> std::io::Result<(OwnedFd, File)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    // A process that is started at this moment must not inherit the terminal.
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    Ok((ours, File::from(theirs)))
}
