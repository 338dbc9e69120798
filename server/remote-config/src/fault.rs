//! Faults of a configuration, reported so that an operator can fix them.

use std::fmt;

use serde::Serialize;
use unjank_foundation::expressions::Expressions;

/// A fault of a configuration. In a list of warnings: a probable mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Fault {
    /// The path, such as `overrides[2].patch.sampling.janks`. Empty if the fault concerns the whole configuration.
    pub path: String,
    /// The kind of fault, for programs.
    pub code: FaultCode,
    /// A description for people: the fault, and how to fix it.
    pub message: String,
}

/// The maximum number of reported faults. The check stops when it is reached.
const MOST_FAULTS: usize = 100;
/// The memory limit for all compiled regular expressions of a configuration, because devices compile them too.
const EXPRESSIONS_BYTES: usize = 4 << 20;

/// The faults found so far.
#[derive(Debug)]
pub(super) struct Faults {
    found: Vec<Fault>,
    pub(super) expressions: Expressions,
}

impl Faults {
    pub(super) fn new() -> Self {
        Self {
            found: Vec::new(),
            expressions: Expressions::new(EXPRESSIONS_BYTES),
        }
    }

    pub(super) fn push(&mut self, fault: Fault) {
        if !self.is_full() {
            self.found.push(fault);
        }
    }

    pub(super) fn extend(&mut self, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            self.push(fault);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether to stop looking for more faults.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MOST_FAULTS
    }

    pub(super) fn into_vec(self) -> Vec<Fault> {
        self.found
    }
}

/// The kinds of faults. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultCode {
    /// The text is not JSON, or not a configuration.
    Unreadable,
    /// An unknown key.
    UnknownKey,
    /// A value of the wrong type.
    WrongType,
    /// A required key is missing.
    Missing,
    /// A number outside its range.
    OutOfRange,
    /// A text, list or map that exceeds the size or depth limit.
    TooLarge,
    /// A list or text that must not be empty.
    Empty,
    /// Two entries with the same name.
    Duplicate,
    /// An override id that is not a slug.
    InvalidId,
    /// A regular expression that does not compile.
    InvalidRegex,
    /// An invalid version requirement.
    InvalidRequirement,
    /// An unknown name.
    UnknownName,
    /// Values that are valid individually but contradict each other.
    Inconsistent,
    /// A condition that matches no device.
    NeverMatches,
    /// An override whose keys are all set again by later overrides for all devices.
    Shadowed,
    /// An override that changes nothing.
    NoEffect,
    /// An override that has expired.
    Expired,
}

impl Fault {
    pub(super) fn new(
        path: impl Into<String>,
        code: FaultCode,
        message: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}
