//! What can be wrong with an event, and with a batch.

use std::fmt;

use unjank_protocol::Signal;

/// An event that cannot be read. It costs no other event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The signal.
    pub signal: Signal,
    /// Its index among the events of the signal, from 0.
    pub index: u32,
    /// The name of the field.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: Fault,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.field, self.fault)
    }
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Larger or smaller than its type allows.
    #[error("the value is out of range")]
    OutOfRange,
    /// The column of a required value is left out.
    #[error("the column is missing")]
    Missing,
    /// Zero, or missing.
    #[error("the id is missing or zero")]
    ZeroId,
    /// A place in the pool where there is no id.
    #[error("the column refers to an id that is not in the batch")]
    UnknownId,
    /// A number that the dictionary does not have.
    #[error("the column refers to a text that is not in the batch")]
    UnknownText,
    /// A number that the table of shared structures does not have.
    #[error("the column refers to an entry that is not in the batch")]
    UnknownEntry,
}

/// Why a batch cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The first bytes are others.
    #[error("the body does not begin as a columnar batch does")]
    NotColumnar,
    /// A length or a number of rows is wrong, or bytes are missing.
    #[error("the body is damaged: a length or a number of rows does not match")]
    Damaged,
    /// A text is not UTF-8, or has a NUL. [`crate::mended`] replaces both.
    #[error("a text is not UTF-8, or has a NUL")]
    NoText,
    /// A section occurs twice.
    #[error("section {0} occurs twice")]
    Twice(u64),
    /// There is no envelope.
    #[error("the section of the envelope is missing")]
    NoEnvelope,
    /// This field of the envelope is malformed, or a value in this list of the envelope.
    #[error("`{0}`: {1}")]
    Envelope(&'static str, Fault),
    /// This field of the table `resource` is malformed.
    #[error("`{0}`: {1}")]
    Resource(&'static str, Fault),
    /// More than [`crate::Bounds::events`].
    #[error("the batch has more than {limit} events")]
    TooManyEvents {
        /// The largest allowed number.
        limit: usize,
    },
    /// More than [`crate::Bounds::list_bytes`] or [`crate::Bounds::list_rows`].
    #[error("the lists inside the events are too large")]
    ListsTooLarge,
    /// More than [`crate::Bounds::text_bytes`].
    #[error("the texts of the events have more than {limit} bytes")]
    TextsTooLarge {
        /// The largest allowed number of bytes.
        limit: usize,
    },
    /// More texts than a batch needs.
    #[error("the dictionary has more than {limit} texts")]
    TooManyTexts {
        /// The largest allowed number.
        limit: usize,
    },
}
