//! What a subject is made of.

use super::aggregate::{Aggregate, Measure};

/// Something to ask about: a signal, or a part of one.
#[derive(Debug)]
pub struct Subject {
    /// Its name in the API.
    pub name: &'static str,
    /// Raw rows, as `s`.
    pub raw: &'static str,
    /// When a raw row happened.
    pub time: Time,
    /// The roll-up by the hour, as `s`.
    pub hourly: Option<&'static str>,
    /// The roll-up by the day.
    pub daily: Option<&'static str>,
    /// What roll-ups are joined with, to be read like the raw rows.
    pub rollup_join: &'static str,
    /// The roll-up is ordered by this dimension: asked for one value of it, it answers fast over long periods.
    pub lead: Option<&'static str>,
    pub dimensions: &'static [Dimension],
    pub aggregates: &'static [Aggregate],
    pub measures: &'static [Measure],
}

/// The column that says when a raw row happened.
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

/// Something to group by and to filter with.
#[derive(Clone, Copy, Debug)]
pub struct Dimension {
    /// Its name in the API, and its column in roll-ups.
    pub name: &'static str,
    /// Its value in a raw row, as SQL over `s`.
    pub raw: &'static str,
    pub kept: Kept,
}

/// Which roll-ups keep a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Always,
    ByDay,
    Never,
    /// It is what the project's rules say of a stack: joined to whatever has the stack.
    ByClass,
}

impl Subject {
    /// Whether the day is the finest that is known of its time.
    #[must_use]
    pub fn is_by_day(&self) -> bool {
        self.hourly.is_none() && self.daily.is_some()
    }

    #[must_use]
    pub fn dimension(&self, name: &str) -> Option<&'static Dimension> {
        let dimensions = self.dimensions.iter().chain(self.common());
        dimensions.into_iter().find(|one| one.name == name)
    }

    #[must_use]
    pub fn measure(&self, name: &str) -> Option<&'static Measure> {
        self.measures.iter().find(|one| one.name == name)
    }

    #[must_use]
    pub fn aggregate(&self, name: &str) -> Option<&'static Aggregate> {
        self.aggregates.iter().find(|one| one.name == name)
    }

    /// The column that says when a raw row arrived, where there is one.
    #[must_use]
    pub fn arrival(&self) -> Option<&'static str> {
        (!self.raw.starts_with("outcomes")).then_some("received_at")
    }

    /// The dimensions that every row of a device has.
    #[must_use]
    pub fn common(&self) -> &'static [Dimension] {
        if self.raw.starts_with("outcomes") {
            &[]
        } else {
            COMMON
        }
    }
}

const fn of(name: &'static str, raw: &'static str, kept: Kept) -> Dimension {
    Dimension { name, raw, kept }
}

impl Dimension {
    /// A dimension that roll-ups keep, with its raw value.
    pub(super) const fn kept(name: &'static str, raw: &'static str) -> Self {
        of(name, raw, Kept::Always)
    }

    pub(super) const fn by_day(name: &'static str, raw: &'static str) -> Self {
        of(name, raw, Kept::ByDay)
    }

    pub(super) const fn raw(name: &'static str, raw: &'static str) -> Self {
        of(name, raw, Kept::Never)
    }

    pub(super) const fn class(name: &'static str, raw: &'static str) -> Self {
        of(name, raw, Kept::ByClass)
    }
}

const COMMON: &[Dimension] = &[
    of("app_id", "s.app_id", Kept::Always),
    of("app_version", "s.app_version", Kept::Always),
    of("os_name", "s.os_name", Kept::Always),
    of("device_class", "s.device_class", Kept::Always),
    of("build", "toString(s.build)", Kept::Never),
    of("channel", "s.channel", Kept::Never),
    of("os_version", "s.os_version", Kept::Never),
    of("device_model", "s.device_model", Kept::Never),
    of("device_manufacturer", "s.device_manufacturer", Kept::Never),
    of("locale", "s.locale", Kept::Never),
    of("install_id", "toString(s.install_id)", Kept::Never),
    of("session_id", "toString(s.session_id)", Kept::Never),
    of("user_id", "s.user_id", Kept::Never),
    of(
        "config_revision",
        "toString(s.config_revision)",
        Kept::Never,
    ),
];
