//! How many files and connections the system lets the server open, and what is kept free of devices.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for the ingest log, the control database, ClickHouse, channels and the admin listener.
const RESERVED: u64 = 512;

/// Raises the limit as far as the system allows. Answers how many connections of clients then fit, at most `wanted`.
pub(super) fn connections(wanted: u64) -> u64 {
    let limit = raised();
    let fit = limit.map_or(wanted, |limit| limit.saturating_sub(RESERVED).max(16));
    if fit < wanted {
        tracing::warn!(
            wanted,
            fit,
            limit,
            "the system lets the server open too few files for that many connections: raise its limit (ulimit -n, LimitNOFILE)"
        );
    }
    fit.min(wanted)
}

/// The limit of open files; nothing when there is none.
fn raised() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum,
        ..limit
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files is not raised");
            limit.current
        }
    }
}
