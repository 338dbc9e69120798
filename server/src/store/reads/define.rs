//! The definition of a subject.

use std::borrow::Cow;

use super::aggregate::{Aggregate, Measure, OtherSignal};
use super::attributes::{self, AttributeName, attribute};
use super::functions::OfFunction;
use super::janks_during_spans::During;

/// Something that can be queried: a signal, or a part of one.
#[derive(Debug)]
pub struct Subject {
    /// The name in the API.
    pub name: &'static str,
    /// The table of the raw rows, aliased `s`.
    pub raw: &'static str,
    /// Whether the raw rows come from devices, rather than from the server's own accounts.
    pub is_from_devices: bool,
    /// The time of a raw row.
    pub time: Time,
    /// The hourly roll-up, read as `s`.
    pub hourly: Option<&'static str>,
    /// The daily roll-up.
    pub daily: Option<&'static str>,
    /// A join that gives roll-ups the columns of the raw rows.
    pub rollup_join: &'static str,
    /// The leading column of the roll-up's sort order. Queries for one value of it are fast over long periods.
    pub lead: Option<&'static str>,
    pub dimensions: &'static [Dimension],
    pub aggregates: &'static [Aggregate],
    pub measures: &'static [Measure],
}

/// The column with the time of a raw row, and its resolution.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    Instant(&'static str),
    Hour(&'static str),
    Day(&'static str),
}

impl Time {
    #[must_use]
    pub(super) const fn column(self) -> &'static str {
        match self {
            Self::Instant(column) | Self::Hour(column) | Self::Day(column) => column,
        }
    }
}

/// A column or expression to group and filter by.
#[derive(Clone, Copy, Debug)]
pub struct Dimension {
    name: &'static str,
    raw: &'static str,
    /// The attribute, if the dimension is one of the app's.
    pub(super) attribute: Option<AttributeName>,
    pub kept: Kept,
    /// Whether `raw` only converts the column `name`, which roll-ups have with the same type.
    pub is_converted: bool,
    /// The part of a span's function that it names. The function may be obfuscated.
    pub(super) of_function: Option<OfFunction>,
    /// Selects rows by other events. Such a dimension has no value to group by.
    pub(super) during: Option<During>,
}

/// Which roll-ups keep a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Always,
    ByDay,
    Never,
    /// A property of a stack by the project's rules. Any table with a stack can be joined with it.
    ByClass,
}

impl Subject {
    /// Whether time is known by the day only.
    #[must_use]
    pub fn is_by_day(&self) -> bool {
        self.hourly.is_none() && self.daily.is_some()
    }

    #[must_use]
    pub fn dimension(&self, name: &str) -> Option<Dimension> {
        let mut dimensions = self.dimensions.iter().chain(self.common());
        let own = dimensions.find(|one| one.name == name);
        own.copied()
            .or_else(|| attribute(self.name, name).map(Dimension::of_attribute))
    }

    /// Whether the app gives attributes to its events.
    #[must_use]
    pub fn has_attributes(&self) -> bool {
        attributes::has_attributes(self.name)
    }

    #[must_use]
    pub fn measure(&self, name: &str) -> Option<&'static Measure> {
        self.measures.iter().find(|one| one.name == name)
    }

    #[must_use]
    pub fn aggregate(&self, name: &str) -> Option<&'static Aggregate> {
        self.aggregates.iter().find(|one| one.name == name)
    }

    /// Returns the other signal whose events an aggregate counts.
    pub(super) fn other_signal(&self, aggregate: &str) -> Option<&'static OtherSignal> {
        self.aggregate(aggregate)?.other
    }

    /// Whether the events are the rows of one table.
    #[must_use]
    pub fn is_one_table(&self) -> bool {
        !self.raw.contains("JOIN") && self.aggregates.iter().all(|one| one.other.is_none())
    }

    /// The column with the time at which a raw row arrived.
    #[must_use]
    pub fn arrival(&self) -> Option<&'static str> {
        self.is_from_devices.then_some("received_at")
    }

    /// The dimensions that all signals of devices have.
    #[must_use]
    pub fn common(&self) -> &'static [Dimension] {
        if self.is_from_devices { COMMON } else { &[] }
    }
}

const fn dimension(name: &'static str, raw: &'static str, kept: Kept) -> Dimension {
    Dimension {
        name,
        raw,
        attribute: None,
        kept,
        is_converted: false,
        of_function: None,
        during: None,
    }
}

impl Dimension {
    /// The name in the API and the column in roll-ups.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.attribute {
            Some(attribute) => attribute.of_dimension(),
            None => self.name,
        }
    }

    /// The value in a raw row, as SQL over `s`.
    #[must_use]
    pub(super) fn raw_value(&self) -> Cow<'static, str> {
        match &self.attribute {
            Some(attribute) => attribute.sql().into(),
            None => self.raw.into(),
        }
    }

    /// The dimension of an attribute.
    pub(super) const fn of_attribute(attribute: AttributeName) -> Self {
        Self {
            attribute: Some(attribute),
            ..dimension("attribute", "s.attributes", Kept::Never)
        }
    }

    /// A dimension that all roll-ups keep, with its raw value.
    pub(super) const fn kept(name: &'static str, raw: &'static str) -> Self {
        dimension(name, raw, Kept::Always)
    }

    /// The column `name` as a text, in raw rows and in roll-ups.
    pub(super) const fn converted(self) -> Self {
        Self {
            is_converted: true,
            ..self
        }
    }

    pub(super) const fn of_function(self, part: OfFunction) -> Self {
        Self {
            of_function: Some(part),
            ..self
        }
    }

    /// A filter by the spans during which an event happened.
    pub(super) const fn during(name: &'static str, during: During) -> Self {
        Self {
            during: Some(during),
            ..dimension(name, "''", Kept::Never)
        }
    }

    pub(super) fn is_of_function(&self) -> bool {
        self.of_function.is_some()
    }

    /// The value of a row as a text that people can read.
    pub(super) fn readable(&self, value: &str, database: &str) -> String {
        match self.of_function {
            Some(part) => part.of_row(value, database),
            None => format!("toString({value})"),
        }
    }

    /// Whether events can only be filtered by it.
    #[must_use]
    pub const fn is_filter_only(&self) -> bool {
        self.during.is_some()
    }

    pub(super) const fn by_day(name: &'static str, raw: &'static str) -> Self {
        dimension(name, raw, Kept::ByDay)
    }

    pub(super) const fn raw(name: &'static str, raw: &'static str) -> Self {
        dimension(name, raw, Kept::Never)
    }

    pub(super) const fn class(name: &'static str, raw: &'static str) -> Self {
        dimension(name, raw, Kept::ByClass)
    }
}

const COMMON: &[Dimension] = &[
    dimension("app_id", "s.app_id", Kept::Always),
    dimension("app_version", "s.app_version", Kept::Always),
    dimension("os_name", "s.os_name", Kept::Always),
    dimension("device_class", "s.device_class", Kept::Always),
    dimension("build", "toString(s.build)", Kept::Never),
    dimension("channel", "s.channel", Kept::Never),
    dimension("mode", "s.mode", Kept::Never),
    dimension("os_version", "s.os_version", Kept::Never),
    dimension("device_model", "s.device_model", Kept::Never),
    dimension("device_manufacturer", "s.device_manufacturer", Kept::Never),
    dimension("locale", "s.locale", Kept::Never),
    dimension("install_id", "toString(s.install_id)", Kept::Never),
    dimension("session_id", "toString(s.session_id)", Kept::Never),
    dimension("user_id", "s.user_id", Kept::Never),
    dimension(
        "config_revision",
        "toString(s.config_revision)",
        Kept::Never,
    ),
];
