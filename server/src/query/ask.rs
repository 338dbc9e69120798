//! From names and values, as they come in a query string, to a reading whose parts fit together.

use crate::store::reads::{
    Base, Dimension, Filter, Grain, Measure, Reading, Sort, Span, Subject, Time, Wanted, subject,
};

use super::period::{DAY, LONGEST, Period, grain_of, step_of};

const DEFAULT_PERIOD: i64 = 7 * DAY;
const MOST_DIMENSIONS: usize = 3;
const MOST_VALUES: usize = 200;
const MOST_CONTAINS: usize = 20;
const MOST_MEASURES: usize = 50;
const MOST_ROWS: u64 = 1_000;
const DEFAULT_ROWS: u64 = 50;

/// Why a question is not understood; the text says what would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AskError(pub String);

/// A question in words.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// In microseconds since the epoch; the last seven days when nothing is said.
    pub from: Option<i64>,
    pub to: Option<i64>,
    pub base_from: Option<i64>,
    pub base_to: Option<i64>,
    pub base_version: Option<String>,
    pub by: Vec<String>,
    pub measures: Vec<String>,
    /// A measure, with `-` in front for the largest first, and `change.` for its change against the base.
    pub order: Option<String>,
    pub limit: Option<u64>,
    /// Only groups with so many samples, on both sides of a comparison.
    pub at_least_samples: Option<u64>,
    /// Of a distribution: what is distributed.
    pub field: Option<String>,
    /// Of single spans: only those that took so long.
    pub at_least_us: Option<i64>,
    /// Of single spans: what an answer said of where it ended.
    pub cursor: Option<String>,
    /// By when rows arrived instead of when they happened; of raw rows, in a stretch of time that is not widened.
    pub received: bool,
    /// Not widened to whole hours or days: what a roll-up does not have in whole comes from finer ones and from raw rows.
    pub exact: bool,
    /// Names of dimensions with a value; one that repeats allows each of its values.
    pub filters: Vec<(String, String)>,
}

/// A question that can be answered.
#[derive(Clone, Debug)]
pub struct Asked {
    pub reading: Reading,
    pub sort: Sort,
    pub limit: u64,
    pub step_s: u32,
}

impl Ask {
    /// A table.
    pub fn table(&self, project: &str, about: &str, now: i64) -> Result<Asked, AskError> {
        self.understood(project, about, now, false)
    }

    /// Single events: raw rows, in a stretch of time that is not widened.
    pub fn single(&self, project: &str, about: &str, now: i64) -> Result<Reading, AskError> {
        let mut reading = self.table(project, about, now)?.reading;
        (reading.grain, reading.span) = (Grain::Raw, self.span(now)?);
        Ok(reading)
    }

    /// The two questions behind a comparison of what is read from single events: of what is asked for, and of the base.
    pub fn sides(&self) -> Result<(Self, Option<Self>), AskError> {
        let base = self.of_base()?;
        if self.base_version.is_some()
            && !self.filters.iter().any(|(name, _)| name == "app_version")
        {
            return Err(AskError(
                "`app_version` says what `base_app_version` is compared with".to_owned(),
            ));
        }
        Ok((self.alone(), base))
    }

    /// The same question of the base alone.
    pub fn of_base(&self) -> Result<Option<Self>, AskError> {
        let mut base = self.alone();
        match self.base()? {
            None => return Ok(None),
            Some(Base::Period(span)) => (base.from, base.to) = (Some(span.from), Some(span.to)),
            Some(Base::Version(version)) => {
                base.filters.retain(|(name, _)| name != "app_version");
                base.filters.push(("app_version".to_owned(), version));
            }
        }
        Ok(Some(base))
    }

    /// The same question without a base.
    fn alone(&self) -> Self {
        Self {
            base_from: None,
            base_to: None,
            base_version: None,
            ..self.clone()
        }
    }

    /// A series in steps of time: by one dimension at most, against no base.
    pub fn series(&self, project: &str, about: &str, now: i64) -> Result<Asked, AskError> {
        if self.by.len() > 1 {
            return Err(AskError(
                "a series goes `by` one dimension at most".to_owned(),
            ));
        }
        if self.base()?.is_some() {
            return Err(AskError("a series has no base: ask for both".to_owned()));
        }
        self.understood(project, about, now, true)
    }

    fn understood(
        &self,
        project: &str,
        about: &str,
        now: i64,
        in_steps: bool,
    ) -> Result<Asked, AskError> {
        let Some(subject) = subject(about) else {
            return Err(AskError(format!(
                "there is no signal `{about}` to ask about"
            )));
        };
        let mut reading = Reading {
            project: project.to_owned(),
            subject,
            grain: Grain::Raw,
            span: self.span(now)?,
            base: self.base_of(subject)?,
            by: self.dimensions(subject)?,
            filters: self.filters(subject)?,
            measures: self.measures(subject)?,
            at_least: None,
            received: self.received,
            exact: false,
        };
        // Periods that are compared stay as long as they are: a widened one would have more of everything.
        let exact = self.exact || matches!(reading.base, Some(Base::Period(_)));
        reading.exact = exact && !in_steps && matches!(subject.time, Time::Instant(_));
        if self.received && subject.arrival().is_none() {
            return Err(AskError(format!(
                "of {} it is not known when they arrived",
                subject.name
            )));
        }
        let sort = self.sort(&mut reading)?;
        reading.at_least = self.at_least(&mut reading)?;
        let of_one = subject.lead.is_some_and(|lead| {
            reading
                .filters
                .iter()
                .filter(|filter| filter.dimension.name == lead)
                .any(|filter| matches!(&filter.wanted, Wanted::OneOf(values) if values.len() == 1))
        });
        let step_s = step_of(reading.span, subject.is_by_day(), of_one);
        if !reading.received {
            reading.grain = grain_of(&reading, in_steps.then_some(step_s));
        }
        if !reading.exact {
            reading.span = Period(reading.span).aligned(reading.grain);
            if let Some(Base::Period(base)) = &mut reading.base {
                *base = Period(*base).before(reading.grain);
            }
        }
        separate(&reading)?;
        Ok(Asked {
            reading,
            sort,
            limit: self.limit()?,
            step_s,
        })
    }

    /// The stretch of time, not widened.
    pub fn span(&self, now: i64) -> Result<Span, AskError> {
        let to = self.to.unwrap_or(now);
        span("from", "to", self.from.unwrap_or(to - DEFAULT_PERIOD), to)
    }

    fn base(&self) -> Result<Option<Base>, AskError> {
        match (self.base_from, self.base_to, &self.base_version) {
            (None, None, None) => Ok(None),
            (None, None, Some(version)) => Ok(Some(Base::Version(version.clone()))),
            (Some(from), Some(to), None) => {
                Ok(Some(Base::Period(span("base_from", "base_to", from, to)?)))
            }
            _ => Err(AskError(
                "compare with `base_app_version`, or with `base_from` and `base_to`".to_owned(),
            )),
        }
    }

    fn base_of(&self, subject: &'static Subject) -> Result<Option<Base>, AskError> {
        let base = self.base()?;
        if let Some(Base::Version(_)) = base {
            dimension(subject, "app_version")?;
        }
        Ok(base)
    }

    fn limit(&self) -> Result<u64, AskError> {
        match self.limit {
            None => Ok(DEFAULT_ROWS),
            Some(limit) if (1..=MOST_ROWS).contains(&limit) => Ok(limit),
            Some(_) => Err(AskError(format!("`limit` is 1 to {MOST_ROWS}"))),
        }
    }

    fn dimensions(&self, subject: &'static Subject) -> Result<Vec<&'static Dimension>, AskError> {
        if self.by.len() > MOST_DIMENSIONS {
            return Err(AskError(format!("`by` may repeat {MOST_DIMENSIONS} times")));
        }
        self.by
            .iter()
            .map(|name| dimension(subject, name))
            .collect()
    }

    fn measures(&self, subject: &'static Subject) -> Result<Vec<&'static Measure>, AskError> {
        if self.measures.is_empty() {
            return Ok(subject.measures.iter().collect());
        }
        if self.measures.len() > MOST_MEASURES {
            return Err(AskError(format!(
                "`measure` may repeat {MOST_MEASURES} times"
            )));
        }
        self.measures
            .iter()
            .map(|name| measure(subject, name))
            .collect()
    }

    fn filters(&self, subject: &'static Subject) -> Result<Vec<Filter>, AskError> {
        let searched = |filter: &&(String, String)| filter.0.starts_with("contains.");
        if self.filters.iter().filter(searched).count() > MOST_CONTAINS {
            return Err(AskError(format!(
                "`contains.` may be used {MOST_CONTAINS} times"
            )));
        }
        let mut filters: Vec<Filter> = Vec::new();
        for (name, value) in &self.filters {
            if let Some(name) = name.strip_prefix("contains.") {
                filters.push(Filter {
                    dimension: dimension(subject, name)?,
                    wanted: Wanted::Contains(value.clone()),
                });
                continue;
            }
            let dimension = dimension(subject, name)?;
            let known = filters
                .iter_mut()
                .find_map(|filter| match &mut filter.wanted {
                    Wanted::OneOf(values) if filter.dimension.name == dimension.name => {
                        Some(values)
                    }
                    _ => None,
                });
            match known {
                Some(values) if values.len() == MOST_VALUES => {
                    return Err(AskError(format!("`{name}` may repeat {MOST_VALUES} times")));
                }
                Some(values) => values.push(value.clone()),
                None => filters.push(Filter {
                    dimension,
                    wanted: Wanted::OneOf(vec![value.clone()]),
                }),
            }
        }
        Ok(filters)
    }

    /// The number of samples that a group needs.
    fn at_least(&self, reading: &mut Reading) -> Result<Option<(usize, u64)>, AskError> {
        let Some(least) = self.at_least_samples else {
            return Ok(None);
        };
        Ok(Some((place_of(reading, "samples")?, least)))
    }

    /// What to sort by.
    fn sort(&self, reading: &mut Reading) -> Result<Sort, AskError> {
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
            return Err(AskError(
                "`order` by change needs something to compare with".to_owned(),
            ));
        }
        let measure = place_of(reading, name)?;
        Ok(Sort {
            measure,
            change,
            descending,
        })
    }
}

/// Where a measure stands; one that was not asked for is measured all the same, as the last.
fn place_of(reading: &mut Reading, name: &str) -> Result<usize, AskError> {
    let place = reading.measures.iter().position(|one| one.name == name);
    if let Some(place) = place {
        return Ok(place);
    }
    reading.measures.push(measure(reading.subject, name)?);
    Ok(reading.measures.len() - 1)
}

fn span(from_name: &str, to_name: &str, from: i64, to: i64) -> Result<Span, AskError> {
    if from >= to {
        return Err(AskError(format!(
            "`{from_name}` must come before `{to_name}`"
        )));
    }
    if to.saturating_sub(from) > LONGEST {
        let days = LONGEST / DAY;
        return Err(AskError(format!(
            "`{from_name}` to `{to_name}` may be {days} days"
        )));
    }
    Ok(Span { from, to })
}

/// Periods that overlap, once they are widened to whole steps, would count rows on one side only.
fn separate(reading: &Reading) -> Result<(), AskError> {
    match &reading.base {
        Some(Base::Period(base)) if base.from < reading.span.to && reading.span.from < base.to => {
            Err(AskError(
                "the periods that are compared must not overlap, in whole days when they are long"
                    .to_owned(),
            ))
        }
        _ => Ok(()),
    }
}

fn dimension(subject: &'static Subject, name: &str) -> Result<&'static Dimension, AskError> {
    subject.dimension(name).ok_or_else(|| {
        let own = subject
            .dimensions
            .iter()
            .chain(subject.common())
            .map(|one| one.name);
        AskError(format!(
            "{} have no dimension `{name}`: they have {}",
            subject.name,
            own.collect::<Vec<_>>().join(", ")
        ))
    })
}

fn measure(subject: &'static Subject, name: &str) -> Result<&'static Measure, AskError> {
    subject.measure(name).ok_or_else(|| {
        let own = subject.measures.iter().map(|one| one.name);
        AskError(format!(
            "{} have no measure `{name}`: they have {}",
            subject.name,
            own.collect::<Vec<_>>().join(", ")
        ))
    })
}
