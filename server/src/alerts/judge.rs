//! What holds at a time. It keeps nothing: the same is answered of the past and of now, by this server and by another.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::rule::{Condition, Rule};
use super::verdict::{Group, Verdict};
use super::versions::Remembered;
use super::{absence, comparison, threshold};
use crate::query::{Ask, Unanswered};
use crate::store::ClickHouse;
use crate::store::reads::{Subject, TableRow, subject};

/// The largest groups of a rule that are watched.
const MOST_GROUPS: u64 = 200;
/// The most that a question answers.
pub(super) const MOST_ANSWERED: u64 = 1_000;

/// Where answers come from.
#[derive(Clone)]
pub struct Judge {
    pub(super) clickhouse: ClickHouse,
    pub(super) versions: Arc<Mutex<Remembered>>,
    /// How old what is known of the versions may be, in microseconds.
    pub(super) fresh: i64,
}

/// A group that has an incident, and which version it is compared with.
#[derive(Clone, Debug)]
pub struct Held {
    pub group: Group,
    pub base: Option<String>,
}

/// A rule to be evaluated.
pub struct Case<'c> {
    pub project: &'c str,
    pub rule: &'c Rule,
    /// Groups that have incidents.
    pub held: &'c [Held],
    /// Microseconds since the epoch; what happened after it is not looked at.
    pub now: i64,
}

/// What holds for the groups of a rule. A group that is not in the answer has too few samples.
pub async fn judge(judge: &Judge, case: &Case<'_>) -> Result<Vec<Verdict>, Unanswered> {
    match &case.rule.condition {
        Condition::Threshold { .. } => threshold::verdicts(judge, case).await,
        Condition::Absence {} => absence::verdicts(judge, case).await,
        Condition::Regression { compare, .. } => {
            comparison::with_version_before(judge, case, *compare).await
        }
        Condition::LastWeek { .. } => comparison::with_last_week(judge, case).await,
    }
}

impl Case<'_> {
    /// The question of the rule, for a stretch of time: the measure, then how many samples.
    pub(super) fn ask(&self, from: i64, to: i64) -> Ask {
        let metric = &self.rule.metric;
        let filters = metric.filters.iter();
        let filters =
            filters.flat_map(|(name, all)| all.iter().map(|one| (name.clone(), one.clone())));
        let samples = samples_of(&metric.signal).to_owned();
        Ask {
            from: Some(from),
            to: Some(to),
            by: metric.by.clone(),
            measures: vec![metric.measure.clone(), samples.clone()],
            order: Some(format!("-{samples}")),
            limit: Some(MOST_GROUPS),
            exact: true,
            filters: filters.collect(),
            ..Ask::default()
        }
    }

    /// Up to when is looked: now, or the end of the last whole day of what is kept by the day.
    pub(super) fn until(&self) -> i64 {
        const DAY: i64 = 86_400_000_000;
        match subject(&self.rule.metric.signal) {
            Some(subject) if subject.is_by_day() => self.now.div_euclid(DAY) * DAY,
            _ => self.now,
        }
    }

    pub(super) fn group(&self, keys: &[String]) -> Group {
        let names = self.rule.metric.by.iter().cloned();
        names.zip(keys.iter().cloned()).collect()
    }
}

impl Judge {
    #[must_use]
    pub fn new(clickhouse: ClickHouse) -> Self {
        Self {
            clickhouse,
            versions: Arc::default(),
            fresh: 5 * 60_000_000,
        }
    }

    /// For the past, in which no version appears unexpectedly: versions are asked for once an hour of it.
    #[must_use]
    pub fn of_the_past(clickhouse: ClickHouse) -> Self {
        Self {
            fresh: 60 * 60_000_000,
            ..Self::new(clickhouse)
        }
    }

    /// The groups of a question of the case.
    pub(super) async fn rows(
        &self,
        case: &Case<'_>,
        ask: &Ask,
    ) -> Result<Vec<TableRow>, Unanswered> {
        let asked = ask.table(case.project, &case.rule.metric.signal, case.now)?;
        let (rows, _) = self
            .clickhouse
            .read_table(&asked.reading, asked.sort, asked.limit)
            .await?;
        Ok(rows)
    }
}

/// The measure that says how many events a number stands on.
pub(super) fn samples_of(signal: &str) -> &'static str {
    let has = |subject: &Subject, name: &&str| subject.measure(name).is_some();
    let names = ["samples", "count", "installs"];
    let of = subject(signal).and_then(|subject| names.into_iter().find(|name| has(subject, name)));
    of.unwrap_or("count")
}
