//! The rejection of one event.

use unjank_protocol::{Rejected, Signal};

/// Why one event is rejected. The code is stable and machine-readable.
#[derive(Debug, PartialEq, Eq)]
pub struct Reject {
    pub code: &'static str,
    pub detail: String,
}

impl Reject {
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }

    pub(super) fn at(self, signal: Signal, index: u32) -> Rejected {
        Rejected {
            signal,
            index,
            code: self.code.to_owned(),
            detail: self.detail,
        }
    }
}
