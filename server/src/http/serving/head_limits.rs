//! The limits for the head of a request, in HTTP/1 and HTTP/2.

use std::time::Duration;

/// The largest head of a request. A connection reads ahead by at most this size.
pub(super) const HEAD_BYTES: usize = 16 << 10;
/// Timeout for the head of a request. Also ends idle connections.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
