//! A resolved query: what is read, from which source, and how it is compared.

use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::aggregate::Measure;
use super::define::{Dimension, Subject};

/// A half-open period: `from` is included, `to` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: UnixTime,
    pub to: UnixTime,
}

/// The source of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    Raw,
    Hourly,
    Daily,
}

/// The other side of a comparison.
#[derive(Clone, Debug)]
pub enum Base {
    Period(Span),
    /// Another version, in the period of the head or in another period.
    Version {
        name: String,
        span: Span,
    },
}

impl Base {
    #[must_use]
    pub const fn span(&self) -> Span {
        match self {
            Self::Period(span) | Self::Version { span, .. } => *span,
        }
    }
}

/// Selects rows with one of these values, rows with none of them, or rows whose value contains this text, ignoring case.
#[derive(Clone, Debug)]
pub struct Filter {
    pub dimension: Dimension,
    pub wanted: Wanted,
}

impl Filter {
    /// Returns the ids of the selected sessions if the filter is by session. Values that are not ids match no row.
    pub(super) fn sessions(&self) -> Option<Vec<String>> {
        match &self.wanted {
            Wanted::OneOf(values) if self.dimension.name() == "session_id" => {
                let ids = values.iter().filter_map(|id| Uuid::try_parse(id).ok());
                Some(ids.map(|id| id.to_string()).collect())
            }
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Wanted {
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
    Contains(String),
}

/// The sort order of groups.
#[derive(Clone, Copy, Debug)]
pub struct Sort {
    /// The index of the measure in the reading.
    pub measure: usize,
    /// By the relative change against the base.
    pub change: bool,
    pub descending: bool,
}

/// A resolved query.
#[derive(Clone, Debug)]
pub struct Reading {
    pub project: String,
    pub subject: &'static Subject,
    pub grain: Grain,
    pub span: Span,
    pub base: Option<Base>,
    pub by: Vec<Dimension>,
    pub filters: Vec<Filter>,
    pub measures: Vec<&'static Measure>,
    /// Index and minimum of a measure that groups must reach on both sides.
    pub at_least: Option<(usize, u64)>,
    /// Selects raw rows by their time of arrival instead of the time of the event.
    pub received: bool,
    /// The periods do not match the units of the roll-up: finer sources cover the ends.
    pub exact: bool,
}
