//! The only module that reads the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use unjank_protocol::Timestamp;

/// Returns the current time of this machine.
#[expect(
    clippy::disallowed_methods,
    reason = "the load test's own clock: everything else takes a time as a parameter"
)]
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}
