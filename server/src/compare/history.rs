//! The history of comparisons: one entry per commit, and since which commit a number is worse. This module is pure: the command
//! reads files and runs git.

use serde::{Deserialize, Serialize};

use super::markdown::{escaped, subject};
use super::{Comparison, Row, Verdict, numbers};
use crate::test_run::Measurable;

/// One comparison in a history file: a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The commit of the head.
    pub commit: String,
    /// Numbers that the head measured.
    pub rows: Vec<Kept>,
}

/// A number of the head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// `page`, `span`, `start` or `run`.
    pub of: String,
    /// Empty for `run`.
    pub name: String,
    pub metric: String,
    pub statistic: String,
    /// In the unit of the metric.
    pub head: f64,
}

/// Since when a number of the latest comparison is worse.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// What is measured, as Markdown.
    pub what: String,
    /// The values of the commits, oldest first, as text.
    pub values: Vec<String>,
    /// The first worse commit after the last better one.
    pub first_bad: String,
    /// The commit measured before it; `None` if the history begins with a worse one.
    pub last_good: Option<String>,
}

/// How many values an origin shows.
const MOST_VALUES: usize = 10;

impl Entry {
    /// Keeps what the head of a comparison measured.
    #[must_use]
    pub fn new(commit: &str, comparison: &Comparison) -> Self {
        let kept = |row: &Row| Some(Kept::new(row, row.head?));
        Self {
            commit: commit.to_owned(),
            rows: comparison.rows.iter().filter_map(kept).collect(),
        }
    }

    fn value(&self, row: &Row) -> Option<f64> {
        let wanted = Kept::new(row, 0.0);
        let found = self.rows.iter().find(|kept| kept.is_of(&wanted));
        found.map(|kept| kept.head)
    }
}

impl Kept {
    fn new(row: &Row, head: f64) -> Self {
        let (of, name) = match &row.of {
            Measurable::Page(name) => ("page", name.as_str()),
            Measurable::Span(name) => ("span", name.as_str()),
            Measurable::Start(kind) => ("start", kind.as_str()),
            Measurable::Run => ("run", ""),
        };
        Self {
            of: of.to_owned(),
            name: name.to_owned(),
            metric: row.metric.nature().name.to_owned(),
            statistic: row.metric.statistic.label(),
            head,
        }
    }

    fn is_of(&self, other: &Self) -> bool {
        self.of == other.of
            && self.name == other.name
            && self.metric == other.metric
            && self.statistic == other.statistic
    }
}

/// Adds an entry. An earlier one of the same commit is replaced, because a build is measured again after a flaky run.
#[must_use]
pub fn with(mut entries: Vec<Entry>, latest: Entry) -> Vec<Entry> {
    entries.retain(|entry| entry.commit != latest.commit);
    entries.push(latest);
    entries
}

/// Finds since which commit each regressed number of the latest comparison is worse. `entries` is in the order of measurement and
/// ends with the comparison itself. A value is worse if it is nearer to the head than to the base.
#[must_use]
pub fn origins(entries: &[Entry], comparison: &Comparison) -> Vec<Origin> {
    let regressed = |row: &&Row| row.verdict == Verdict::Regressed;
    let rows = comparison.rows.iter().filter(regressed);
    rows.filter_map(|row| origin(entries, row)).collect()
}

fn origin(entries: &[Entry], row: &Row) -> Option<Origin> {
    let (base, head) = (row.base?, row.head?);
    let values: Vec<(&str, f64)> = entries
        .iter()
        .filter_map(|entry| Some((entry.commit.as_str(), entry.value(row)?)))
        .collect();
    let is_worse = |value: f64| {
        (value - head).abs() <= (value - base).abs()
            || (value > head) == (head > base) && (value - base).abs() > (head - base).abs()
    };
    let good = values.iter().rposition(|(_, value)| !is_worse(*value));
    let first = good.map_or(0, |place| place + 1);
    let shown = values.len().saturating_sub(MOST_VALUES);
    Some(Origin {
        what: format!("{} {}", subject(&row.of), row.metric.label()),
        values: values
            .get(shown..)?
            .iter()
            .map(|(_, value)| numbers::value(row.metric, *value))
            .collect(),
        first_bad: values.get(first)?.0.to_owned(),
        last_good: good
            .and_then(|place| values.get(place))
            .map(|one| one.0.to_owned()),
    })
}

/// Returns the section of the report. `about` says more about the commits after the last good one up to the first bad one, as lines of
/// plain text.
#[must_use]
pub fn section(origins: &[Origin], about: impl Fn(&Origin) -> Vec<String>) -> String {
    let mut text = String::new();
    for origin in origins {
        let since = escaped(&origin.first_bad, 60);
        let after = origin.last_good.as_ref().map_or_else(
            || "the history has no better commit before it".to_owned(),
            |good| format!("the last better one is {}", escaped(good, 60)),
        );
        text += &format!(
            "**{}** is worse since commit {since}; {after}.\n\n{}\n\n",
            origin.what,
            origin.values.join(" → ")
        );
        for line in about(origin) {
            text += &format!("- {}\n", escaped(&line, 200));
        }
        text += "\n";
    }
    if text.is_empty() {
        return text;
    }
    format!("\n#### Since when\n\n{text}")
}
