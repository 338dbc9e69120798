//! Resolves the names and values of a query string into a reading whose parts fit together.

use std::collections::HashSet;
use std::time::Duration;

use unjank_foundation::clock::{DAY, HOUR, UnixTime};

use super::InvalidQuery;
use super::group_filter::{GroupFilter, GroupStatus, groups_wanted};
use super::period::{DAYS_FROM, LONGEST, Period, grain_of, step_of};
use super::same_age::FirstSeen;
use super::stored_form::{stored_form, stored_part};
use crate::store::reads::{
    Base, Dimension, Filter, Grain, Measure, Reading, Sort, Span, Subject, Time, Wanted, subject,
};

const DEFAULT_PERIOD: Duration = Duration::from_secs(7 * 86_400);
const MOST_DIMENSIONS: usize = 3;
/// Maximum number of values of a filter.
pub const MOST_VALUES: usize = 200;
const MOST_CONTAINS: usize = 20;
/// Maximum number of dimensions that a query filters by.
const MOST_FILTERED: usize = 40;
const MOST_MEASURES: usize = 50;
const MOST_ROWS: u64 = 1_000;
const DEFAULT_ROWS: u64 = 50;

/// A query as names and values, not resolved yet.
#[derive(Clone, Debug, Default)]
pub struct NamedQuery {
    /// The default is the last seven days.
    pub from: Option<UnixTime>,
    pub to: Option<UnixTime>,
    pub base_from: Option<UnixTime>,
    pub base_to: Option<UnixTime>,
    pub base_version: Option<String>,
    /// Whether versions are compared at the same age instead of on the same days.
    pub same_age: bool,
    /// When the compared versions first appeared, from `KnownVersions`.
    pub first_seen: Option<FirstSeen>,
    pub by: Vec<String>,
    pub measures: Vec<String>,
    /// A measure. A leading `-` sorts in descending order; `change.` sorts by the change against the base.
    pub order: Option<String>,
    pub limit: Option<u64>,
    /// Minimum number of samples of a group, on both sides of a comparison.
    pub at_least_samples: Option<u64>,
    /// For a distribution: the field.
    pub field: Option<String>,
    /// For single spans: the minimum duration.
    pub at_least_us: Option<i64>,
    /// For single spans: selects the spans whose durations are nearest to this one.
    pub near_us: Option<i64>,
    /// For single spans: the position where the previous page ended.
    pub cursor: Option<String>,
    /// Selects by the time of arrival instead of the time of the event. This reads raw rows; their period is not widened.
    pub received: bool,
    /// Does not widen the period to whole hours or days. Finer roll-ups and raw rows cover its ends.
    pub exact: bool,
    /// For janks: the status of their groups.
    pub group_status: Option<GroupStatus>,
    /// The groups with that status. Required if `group_status` is set.
    pub groups: Option<GroupFilter>,
    /// Names of dimensions with a value. Repeating a name allows each of its values.
    pub filters: Vec<(String, String)>,
}

/// A resolved query.
#[derive(Clone, Debug)]
pub struct ResolvedQuery {
    pub reading: Reading,
    pub sort: Sort,
    pub limit: u64,
    pub step_s: u32,
}

impl NamedQuery {
    /// Resolves a query for a table.
    pub fn table(
        &self,
        project: &str,
        about: &str,
        now: UnixTime,
    ) -> Result<ResolvedQuery, InvalidQuery> {
        self.resolve(project, about, now, false)
    }

    /// Resolves a query for single events: raw rows, in a period that is not widened.
    pub fn single(
        &self,
        project: &str,
        about: &str,
        now: UnixTime,
    ) -> Result<Reading, InvalidQuery> {
        let mut reading = self.table(project, about, now)?.reading;
        (reading.grain, reading.span) = (Grain::Raw, self.span(now)?);
        Ok(reading)
    }

    /// Splits a comparison over single events into two queries: the head and, if there is one, the base.
    pub fn sides(&self, now: UnixTime) -> Result<(Self, Option<Self>), InvalidQuery> {
        if self.base_version.is_some()
            && !self.filters.iter().any(|(name, _)| name == "app_version")
        {
            return Err(InvalidQuery(
                "`base_app_version` requires `app_version`: set the version to compare with it"
                    .to_owned(),
            ));
        }
        let (span, base) = self.compared(now, false)?;
        let mut head = self.without_base();
        if let Some(Base::Version { .. }) = base {
            (head.from, head.to) = (Some(span.from), Some(span.to));
        }
        Ok((head, base.map(|base| self.of_base(&base))))
    }

    /// Returns the query for the base only.
    #[must_use]
    pub fn of_base(&self, base: &Base) -> Self {
        let mut asked = self.without_base();
        let span = base.span();
        (asked.from, asked.to) = (Some(span.from), Some(span.to));
        if let Base::Version { name, .. } = base {
            asked.filters.retain(|(name, _)| name != "app_version");
            asked.filters.push(("app_version".to_owned(), name.clone()));
        }
        asked
    }

    /// Returns the value of a filter if the filter allows exactly one.
    #[must_use]
    pub fn only(&self, name: &str) -> Option<&str> {
        let mut values = self.filters.iter().filter(|(of, _)| of == name);
        match (values.next(), values.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// Returns whether the filters allow a value of a dimension.
    #[must_use]
    pub fn may_have(&self, name: &str, value: &str) -> bool {
        let mut values = self.filters.iter().filter(|(of, _)| of == name);
        values.clone().next().is_none() || values.any(|(_, one)| one == value)
    }

    /// Returns the query without its base.
    fn without_base(&self) -> Self {
        Self {
            base_from: None,
            base_to: None,
            base_version: None,
            ..self.clone()
        }
    }

    /// Resolves a query for a series over time. A series has at most one dimension and no base.
    pub fn series(
        &self,
        project: &str,
        about: &str,
        now: UnixTime,
    ) -> Result<ResolvedQuery, InvalidQuery> {
        if self.by.len() > 1 {
            return Err(InvalidQuery(
                "a series may have at most one dimension in `by`".to_owned(),
            ));
        }
        if self.base_from.is_some() || self.base_to.is_some() || self.base_version.is_some() {
            return Err(InvalidQuery(
                "a series cannot have a base: query each side separately".to_owned(),
            ));
        }
        self.resolve(project, about, now, true)
    }

    fn resolve(
        &self,
        project: &str,
        about: &str,
        now: UnixTime,
        in_steps: bool,
    ) -> Result<ResolvedQuery, InvalidQuery> {
        let Some(subject) = subject(about) else {
            return Err(InvalidQuery(format!("there is no signal `{about}`")));
        };
        let (span, base) = self.compared(now, subject.is_by_day())?;
        let mut reading = Reading {
            project: project.to_owned(),
            subject,
            grain: Grain::Raw,
            span,
            base,
            by: self.dimensions(subject)?,
            filters: self.filters(subject)?,
            measures: self.measures(subject)?,
            at_least: None,
            received: self.received,
            exact: false,
        };
        if let Some(Base::Version { .. }) = reading.base {
            dimension(subject, "app_version")?;
        }
        // Compared periods keep their lengths: a widened period would contain more events than the other.
        let exact = self.exact || self.base_from.is_some();
        reading.exact = exact && !in_steps && matches!(subject.time, Time::Instant(_));
        if self.received && subject.arrival().is_none() {
            return Err(InvalidQuery(format!(
                "`received` is not available for {}: their time of arrival is not stored",
                subject.name
            )));
        }
        let sort = self.sort(&mut reading)?;
        reading.at_least = self.at_least(&mut reading)?;
        let of_one = subject.lead.is_some_and(|lead| {
            reading
                .filters
                .iter()
                .filter(|filter| filter.dimension.name() == lead)
                .any(|filter| matches!(&filter.wanted, Wanted::OneOf(values) if values.len() == 1))
        });
        let step_s = step_of(reading.span, subject.is_by_day(), of_one);
        if !reading.received {
            reading.grain = grain_of(&reading, in_steps.then_some(step_s));
        }
        if !reading.exact {
            reading.span = Period(reading.span).aligned(reading.grain);
            match &mut reading.base {
                Some(Base::Period(base)) => *base = Period(*base).before(reading.grain),
                Some(Base::Version { span, .. }) => *span = Period(*span).aligned(reading.grain),
                None => {}
            }
        }
        check_overlap(&reading)?;
        Ok(ResolvedQuery {
            reading,
            sort,
            limit: self.limit()?,
            step_s,
        })
    }

    /// Returns the period, not widened.
    pub fn span(&self, now: UnixTime) -> Result<Span, InvalidQuery> {
        let to = self.to.unwrap_or(now);
        span("from", "to", self.from.unwrap_or(to - DEFAULT_PERIOD), to)
    }

    /// Returns the period and its base. Compares versions at the same age if their ages are known. These periods have whole days or hours,
    /// so that all signals of a screen have the same periods.
    fn compared(&self, now: UnixTime, by_day: bool) -> Result<(Span, Option<Base>), InvalidQuery> {
        let of_head = self.span(now)?;
        let base = match (self.base_from, self.base_to) {
            (None, None) => None,
            (Some(from), Some(to)) => Some(span("base_from", "base_to", from, to)?),
            _ => {
                return Err(InvalidQuery(
                    "set both `base_from` and `base_to`".to_owned(),
                ));
            }
        };
        let Some(name) = self.base_version.clone() else {
            return Ok((of_head, base.map(Base::Period)));
        };
        let version = |span| Some(Base::Version { name, span });
        if let Some(base) = base {
            return Ok((of_head, version(base)));
        }
        let unit = if by_day || Period(of_head).length() >= DAYS_FROM {
            DAY
        } else {
            HOUR
        };
        let whole = Span {
            from: of_head.from.floor(unit),
            to: of_head.to.ceil(unit),
        };
        let seen = self.first_seen.map(|seen| seen.floor(unit));
        let lived = |span| seen.and_then(|seen| seen.periods(span, now.ceil(unit)));
        // The base has whole units, so the head must not end with an unfinished one. A version younger than a unit has only that one.
        let over = Span {
            to: whole.to.min(now.floor(unit)),
            ..whole
        };
        let periods = lived(over).or_else(|| lived(whole));
        Ok(match periods {
            Some(periods) => (periods.head, version(periods.base)),
            None => (of_head, version(of_head)),
        })
    }

    fn limit(&self) -> Result<u64, InvalidQuery> {
        match self.limit {
            None => Ok(DEFAULT_ROWS),
            Some(limit) if (1..=MOST_ROWS).contains(&limit) => Ok(limit),
            Some(_) => Err(InvalidQuery(format!("`limit` must be 1 to {MOST_ROWS}"))),
        }
    }

    fn dimensions(&self, subject: &'static Subject) -> Result<Vec<Dimension>, InvalidQuery> {
        if self.by.len() > MOST_DIMENSIONS {
            return Err(InvalidQuery(format!(
                "`by` may appear at most {MOST_DIMENSIONS} times"
            )));
        }
        let by = self.by.iter().map(|name| {
            let dimension = dimension(subject, name)?;
            if dimension.is_filter_only() {
                return Err(InvalidQuery(format!(
                    "`{name}` is a filter: groups by it are not available"
                )));
            }
            Ok(dimension)
        });
        by.collect()
    }

    fn measures(&self, subject: &'static Subject) -> Result<Vec<&'static Measure>, InvalidQuery> {
        if self.measures.is_empty() {
            return Ok(subject.measures.iter().collect());
        }
        if self.measures.len() > MOST_MEASURES {
            return Err(InvalidQuery(format!(
                "`measure` may appear at most {MOST_MEASURES} times"
            )));
        }
        self.measures
            .iter()
            .map(|name| measure(subject, name))
            .collect()
    }

    fn filters(&self, subject: &'static Subject) -> Result<Vec<Filter>, InvalidQuery> {
        let searched = |filter: &&(String, String)| filter.0.starts_with("contains.");
        if self.filters.iter().filter(searched).count() > MOST_CONTAINS {
            return Err(InvalidQuery(format!(
                "`contains.` filters may appear at most {MOST_CONTAINS} times"
            )));
        }
        let names: HashSet<&str> = self.filters.iter().map(|(name, _)| name.as_str()).collect();
        if names.len() > MOST_FILTERED {
            return Err(InvalidQuery(format!(
                "at most {MOST_FILTERED} different filters may appear"
            )));
        }
        let mut filters: Vec<Filter> = Vec::new();
        for (name, value) in &self.filters {
            if let Some(name) = name.strip_prefix("contains.") {
                filters.push(Filter {
                    dimension: searchable(subject, name)?,
                    wanted: Wanted::Contains(stored_part(name, value)),
                });
                continue;
            }
            let dimension = dimension(subject, name)?;
            let known = filters
                .iter_mut()
                .find_map(|filter| match &mut filter.wanted {
                    Wanted::OneOf(values) if filter.dimension.name() == dimension.name() => {
                        Some(values)
                    }
                    _ => None,
                });
            match known {
                Some(values) if values.len() == MOST_VALUES => {
                    return Err(InvalidQuery(format!(
                        "`{name}` may appear at most {MOST_VALUES} times"
                    )));
                }
                Some(values) => values.push(stored_form(name, value)),
                None => filters.push(Filter {
                    dimension,
                    wanted: Wanted::OneOf(vec![stored_form(name, value)]),
                }),
            }
        }
        if let Some(wanted) = groups_wanted(self.group_status, self.groups.as_ref())? {
            let dimension = dimension(subject, "group_id")?;
            filters.push(Filter { dimension, wanted });
        }
        Ok(filters)
    }

    /// Returns the place of `samples` in the reading and the number that a group needs.
    fn at_least(&self, reading: &mut Reading) -> Result<Option<(usize, u64)>, InvalidQuery> {
        let Some(least) = self.at_least_samples else {
            return Ok(None);
        };
        Ok(Some((measure_index(reading, "samples")?, least)))
    }

    /// Returns the sort order.
    fn sort(&self, reading: &mut Reading) -> Result<Sort, InvalidQuery> {
        let order = self.order.as_deref();
        let (name, descending) = match order {
            Some(order) => order
                .strip_prefix('-')
                .map_or((order, false), |name| (name, true)),
            None => (reading.subject.measures[0].name, true),
        };
        let (name, change) = name
            .strip_prefix("change.")
            .map_or((name, false), |name| (name, true));
        if change && reading.base.is_none() {
            return Err(InvalidQuery(
                "`order` by change requires a base: set `base_app_version`, or `base_from` and `base_to`".to_owned(),
            ));
        }
        let measure = measure_index(reading, name)?;
        Ok(Sort {
            measure,
            change,
            descending,
        })
    }
}

/// Returns the index of a measure in the reading. Appends the measure if the query does not name it.
fn measure_index(reading: &mut Reading, name: &str) -> Result<usize, InvalidQuery> {
    let place = reading.measures.iter().position(|one| one.name == name);
    if let Some(place) = place {
        return Ok(place);
    }
    reading.measures.push(measure(reading.subject, name)?);
    Ok(reading.measures.len() - 1)
}

fn span(
    from_name: &str,
    to_name: &str,
    from: UnixTime,
    to: UnixTime,
) -> Result<Span, InvalidQuery> {
    if from >= to {
        return Err(InvalidQuery(format!(
            "`{from_name}` must come before `{to_name}`"
        )));
    }
    if to.since(from) > LONGEST {
        let days = LONGEST.as_secs() / DAY.as_secs();
        return Err(InvalidQuery(format!(
            "`{from_name}` to `{to_name}` may span at most {days} days"
        )));
    }
    Ok(Span { from, to })
}

/// Rejects periods that overlap after they are widened to whole units: shared rows would count on one side only.
fn check_overlap(reading: &Reading) -> Result<(), InvalidQuery> {
    match &reading.base {
        Some(Base::Period(base)) if base.from < reading.span.to && reading.span.from < base.to => {
            Err(InvalidQuery(
                "the compared periods must not overlap; long periods are widened to whole days first"
                    .to_owned(),
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the dimension of a `contains.` filter.
fn searchable(subject: &'static Subject, name: &str) -> Result<Dimension, InvalidQuery> {
    let dimension = dimension(subject, name)?;
    if dimension.is_filter_only() {
        return Err(InvalidQuery(format!(
            "`contains.{name}` is not available: filter by whole values of `{name}`"
        )));
    }
    Ok(dimension)
}

fn dimension(subject: &'static Subject, name: &str) -> Result<Dimension, InvalidQuery> {
    subject.dimension(name).ok_or_else(|| {
        let own = subject
            .dimensions
            .iter()
            .chain(subject.common())
            .map(Dimension::name);
        InvalidQuery(format!(
            "{} have no dimension `{name}`: they have {}",
            subject.name,
            own.collect::<Vec<_>>().join(", ")
        ))
    })
}

fn measure(subject: &'static Subject, name: &str) -> Result<&'static Measure, InvalidQuery> {
    subject.measure(name).ok_or_else(|| {
        let own = subject.measures.iter().map(|one| one.name);
        InvalidQuery(format!(
            "{} have no measure `{name}`: they have {}",
            subject.name,
            own.collect::<Vec<_>>().join(", ")
        ))
    })
}
