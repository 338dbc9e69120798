//! What is wrong with a configuration, said so that an operator can put it right.

use std::fmt;

use serde::Serialize;

use crate::expressions::Expressions;

/// One thing that is wrong, or in a warning: probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Fault {
    /// Where, such as `overrides[2].patch.sampling.janks`; empty for the whole configuration.
    pub path: String,
    /// What, for a machine.
    pub code: FaultCode,
    /// What, for a person, and what to do.
    pub message: String,
}

/// A configuration with more faults is not looked at any further.
const MOST_FAULTS: usize = 100;
/// Memory of all compiled regular expressions of a configuration: devices compile them too.
const EXPRESSIONS_BYTES: usize = 4 << 20;

/// What was found wrong so far.
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

/// The kinds of faults. Names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultCode {
    /// Not JSON, or not the JSON of a configuration.
    Unreadable,
    /// A key that means nothing here.
    UnknownKey,
    /// A value of another type than the key has.
    WrongType,
    /// A key that has to be there is not.
    Missing,
    /// A number outside its range.
    OutOfRange,
    /// A text, list or map that is longer or deeper than what is taken.
    TooLarge,
    /// A list or text without anything in it, where that would mean nothing.
    Empty,
    /// Two entries of the same name.
    Duplicate,
    /// An override's id that is not a slug.
    InvalidId,
    /// A regular expression that does not compile.
    InvalidRegex,
    /// A version requirement that does not read.
    InvalidRequirement,
    /// A name that is not one of those there are.
    UnknownName,
    /// Values that are fine one by one and make no sense together.
    Inconsistent,
    /// A condition that holds for no device.
    NeverMatches,
    /// An override whose every key is set again by a later one that holds for all devices.
    Shadowed,
    /// An override that changes nothing.
    NoEffect,
    /// An override whose time is over.
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
