//! Why a whole batch is refused.

use unjank_columns::Unreadable;

use super::decode::LISTS_BYTES;

/// Why a whole batch is refused. `http::api::problem` has the status and code of each variant.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the body is not JSON: {detail} (line {line}, column {column})")]
    NotJson {
        detail: String,
        line: usize,
        column: usize,
    },
    #[error("the envelope is not valid: {0}")]
    Envelope(String),
    #[error("`resource` is not valid: {0}")]
    Resource(String),
    #[error("the batch has more than {limit} events: split it")]
    TooManyEvents { limit: usize },
    #[error(
        "the attributes, stacks and other lists of the batch take more than {limit} bytes once decoded: split it"
    )]
    ListsTooLarge { limit: usize },
    #[error("{0}: split the batch")]
    TextsTooLarge(Unreadable),
    #[error("{0}")]
    NotColumns(Unreadable),
    #[error("this ingest key is not for the app `{0}`")]
    WrongApp(String),
    #[error("the device token and the batch name different installs")]
    WrongInstall,
}

impl Refusal {
    /// Whether the batch is too large. Its parts may be accepted.
    #[must_use]
    pub fn is_for_size(&self) -> bool {
        matches!(
            self,
            Self::TooManyEvents { .. } | Self::ListsTooLarge { .. } | Self::TextsTooLarge(_)
        )
    }
}

impl From<Unreadable> for Refusal {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::NotColumnar
            | Unreadable::Damaged
            | Unreadable::NoText
            | Unreadable::Twice(_)
            | Unreadable::NoEnvelope => Self::NotColumns(error),
            Unreadable::Envelope(..) => Self::Envelope(error.to_string()),
            Unreadable::Resource(..) => Self::Resource(error.to_string()),
            Unreadable::TooManyEvents { limit } => Self::TooManyEvents { limit },
            Unreadable::ListsTooLarge => Self::ListsTooLarge { limit: LISTS_BYTES },
            Unreadable::TextsTooLarge { .. } | Unreadable::TooManyTexts { .. } => {
                Self::TextsTooLarge(error)
            }
        }
    }
}
