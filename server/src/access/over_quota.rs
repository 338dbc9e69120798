//! Why a batch is refused for now: the quota that is used up, and the wait.

use std::time::Duration;

/// The quota that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    Events,
    Bytes,
    /// The project's rows use more disk space than its quota.
    Disk,
}

/// Why a batch is refused for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverQuota {
    pub exceeded: Exceeded,
    /// The time until a retry can succeed.
    pub wait: Duration,
}

impl OverQuota {
    /// Whole seconds, at least one.
    #[must_use]
    pub fn retry_after_s(&self) -> u64 {
        let begun = u64::from(self.wait.subsec_nanos() > 0);
        self.wait.as_secs().saturating_add(begun).max(1)
    }
}
