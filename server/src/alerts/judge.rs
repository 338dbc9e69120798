//! Evaluates a rule at a given time. Stateless, so every server returns the same verdicts for a time, past or present.

pub(crate) mod absence;
pub(crate) mod appearance;
pub(crate) mod comparison;
mod comparison_sides;
pub(crate) mod contributors;
pub(crate) mod evidence;
pub(crate) mod like_devices;
pub(crate) mod threshold;
pub(crate) mod verdict;

use std::time::Duration;

use unjank_foundation::clock::{DAY, UnixTime};

use crate::alerts::judge::verdict::{Group, Verdict};
use crate::alerts::rule::{Condition, Rule};
use crate::query::{KnownVersions, NamedQuery, QueryError};
use crate::store::ClickHouse;
use crate::store::reads::{Subject, TableRow, subject};

/// The maximum number of groups that a rule watches: the largest ones or, of single devices and people, the worst ones.
pub(crate) const MOST_GROUPS: u64 = 200;
/// The maximum number of rows that a query returns.
pub(crate) const MAX_ROWS: u64 = 1_000;

/// Runs the queries of rules.
#[derive(Clone)]
pub struct Judge {
    pub(crate) clickhouse: ClickHouse,
    pub(crate) versions: KnownVersions,
}

/// A group with an open incident, and the version it is compared with.
#[derive(Clone, Debug)]
pub struct OpenGroup {
    pub group: Group,
    pub base: Option<String>,
}

/// A rule to evaluate.
pub struct Case<'c> {
    pub project: &'c str,
    pub rule: &'c Rule,
    /// Groups with open incidents.
    pub held: &'c [OpenGroup],
    /// Later events are ignored.
    pub now: UnixTime,
}

/// Evaluates the groups of a rule. A group without a verdict has too few samples.
pub async fn judge(judge: &Judge, case: &Case<'_>) -> Result<Vec<Verdict>, QueryError> {
    match &case.rule.condition {
        Condition::Threshold { .. } => threshold::verdicts(judge, case).await,
        Condition::Absence {} => absence::verdicts(judge, case).await,
        Condition::Appearance { unseen_days } => {
            appearance::verdicts(judge, case, *unseen_days).await
        }
        Condition::Regression { compare, .. } => {
            comparison::with_version_before(judge, case, *compare).await
        }
        Condition::LastWeek { .. } => comparison::with_last_week(judge, case).await,
    }
}

impl Case<'_> {
    /// Returns the rule's query for a period: the measure, then the number of samples.
    pub(crate) fn ask(&self, from: UnixTime, to: UnixTime) -> NamedQuery {
        let metric = &self.rule.metric;
        let filters = metric.filters.iter();
        let filters =
            filters.flat_map(|(name, all)| all.iter().map(|one| (name.clone(), one.clone())));
        let samples = samples_of(&metric.signal).to_owned();
        NamedQuery {
            from: Some(from),
            to: Some(to),
            by: metric.by.clone(),
            measures: vec![metric.measure.clone(), samples.clone()],
            order: Some(format!("-{samples}")),
            limit: Some(MOST_GROUPS),
            exact: true,
            filters: filters.collect(),
            ..NamedQuery::default()
        }
    }

    /// Returns the end of the window: now, or the last midnight if the signal is stored per day.
    pub(crate) fn until(&self) -> UnixTime {
        match subject(&self.rule.metric.signal) {
            Some(subject) if subject.is_by_day() => self.now.floor(DAY),
            _ => self.now,
        }
    }

    pub(crate) fn group(&self, keys: &[String]) -> Group {
        let names = self.rule.metric.by.iter().cloned();
        names.zip(keys.iter().cloned()).collect()
    }
}

impl Judge {
    #[must_use]
    pub fn new(clickhouse: ClickHouse) -> Self {
        Self {
            versions: KnownVersions::new(clickhouse.clone()),
            clickhouse,
        }
    }

    /// A judge for past data, where no version appears unexpectedly. It reads the versions once per hour of the past.
    #[must_use]
    pub fn for_past(clickhouse: ClickHouse) -> Self {
        Self {
            versions: KnownVersions::fresh_for(clickhouse.clone(), Duration::from_secs(60 * 60)),
            clickhouse,
        }
    }

    /// Runs a query of the case and returns its groups.
    pub(crate) async fn rows(
        &self,
        case: &Case<'_>,
        ask: &NamedQuery,
    ) -> Result<Vec<TableRow>, QueryError> {
        let asked = ask.table(case.project, &case.rule.metric.signal, case.now)?;
        let (rows, _) = self
            .clickhouse
            .read_table(&asked.reading, asked.sort, asked.limit)
            .await?;
        Ok(rows)
    }
}

/// Returns the measure that counts the events behind a number.
pub(crate) fn samples_of(signal: &str) -> &'static str {
    let has = |subject: &Subject, name: &&str| subject.measure(name).is_some();
    let names = ["samples", "count", "installs"];
    let of = subject(signal).and_then(|subject| names.into_iter().find(|name| has(subject, name)));
    of.unwrap_or("count")
}
