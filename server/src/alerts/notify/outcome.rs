//! The outcome of an attempt to send a message.

use super::back_off::Wait;

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    /// A retry can succeed.
    Later {
        error: String,
        retry_after: Option<Wait>,
    },
    /// A retry cannot succeed.
    Never(String),
}

impl Outcome {
    /// The name in metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Later { .. } => "later",
            Self::Never(_) => "refused",
        }
    }

    pub(super) fn later(error: impl Into<String>) -> Self {
        Self::Later {
            error: error.into(),
            retry_after: None,
        }
    }
}
