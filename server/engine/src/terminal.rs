//! The terminal that ClickHouse sits at. It hangs up when the process that holds it ends, for whatever reason.
//!
//! `clickhouse local` has to believe that somebody is there. Without a terminal it ends when a connection breaks in a way that
//! it does not expect: one byte and a reset are enough, and need no password. At a terminal it logs the error and goes on.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Our end: as long as it is open, ClickHouse waits for a line that never comes.
#[derive(Debug)]
pub(crate) struct Terminal {
    _ours: OwnedFd,
}

/// Opens a terminal. Answers our end and ClickHouse's standard input.
pub(crate) fn open() -> std::io::Result<(Terminal, File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    Ok((Terminal { _ours: ours }, File::from(theirs)))
}
