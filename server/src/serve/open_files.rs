//! The system's limit of open files, and the share of it that devices cannot use.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for the ingest log, the control database, ClickHouse, channels and the admin listener.
const RESERVED: u64 = 512;

/// Raises the limit as far as the system allows. Returns how many client connections fit, at most `wanted`.
pub(super) fn connections(wanted: u64) -> u64 {
    let limit = raised();
    let fit = limit.map_or(wanted, |limit| limit.saturating_sub(RESERVED).max(16));
    if fit < wanted {
        tracing::warn!(
            wanted,
            fit,
            limit,
            "the limit of open files is too low for this many connections: raise it (ulimit -n, LimitNOFILE)"
        );
    }
    fit.min(wanted)
}

/// Raises the limit of open files. Returns the new limit, or `None` if there is no limit.
fn raised() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum,
        ..limit
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            limit.current
        }
    }
}
