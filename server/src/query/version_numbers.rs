//! The compared numbers of two versions, computed from all events instead of a sample.

use std::collections::BTreeMap;

use unjank_foundation::clock::UnixTime;

use super::{NamedQuery, QueryError};
use crate::compare::{Metric, Statistic};
use crate::store::ClickHouse;
use crate::test_run::{Measurable, Quantity};

/// For each compared metric: its value and the number of events.
pub type Numbers = BTreeMap<(Measurable, Metric), (f64, f64)>;

/// Maximum number of groups of a signal.
const MOST_GROUPS: u64 = 1_000;

/// The query for one signal.
struct Question {
    signal: &'static str,
    of: fn(String) -> Measurable,
    by: &'static str,
    only: Option<(&'static str, &'static str)>,
    /// The name of the measure, the corresponding metric, and the factor between them.
    measures: &'static [(&'static str, Quantity, Statistic, f64)],
}

const MEAN: Statistic = Statistic::Mean;
const P50: Statistic = Statistic::Percentile(50);
const P95: Statistic = Statistic::Percentile(95);

const QUESTIONS: &[Question] = &[
    Question {
        signal: "frame_windows",
        of: Measurable::Page,
        by: "page",
        only: None,
        measures: &[
            ("fps", Quantity::Fps, MEAN, 1.0),
            ("slow_share", Quantity::SlowShare, MEAN, 1.0),
            ("frozen_share", Quantity::FrozenShare, MEAN, 1.0),
            ("jank_share", Quantity::JankPerMinute, MEAN, 60_000.0),
        ],
    },
    Question {
        signal: "page_loads",
        of: Measurable::Page,
        by: "page",
        only: None,
        measures: &[
            ("t1_p50_ms", Quantity::T1Ms, P50, 1.0),
            ("t2_p50_ms", Quantity::T2Ms, P50, 1.0),
            ("t3_p50_ms", Quantity::T3Ms, P50, 1.0),
            ("total_p50_ms", Quantity::TotalMs, P50, 1.0),
            ("total_p95_ms", Quantity::TotalMs, P95, 1.0),
            ("t1_p75_ms", Quantity::T1Ms, Statistic::Percentile(75), 1.0),
            ("t2_p75_ms", Quantity::T2Ms, Statistic::Percentile(75), 1.0),
            ("t3_p75_ms", Quantity::T3Ms, Statistic::Percentile(75), 1.0),
            (
                "total_p75_ms",
                Quantity::TotalMs,
                Statistic::Percentile(75),
                1.0,
            ),
        ],
    },
    Question {
        signal: "spans",
        of: Measurable::Span,
        by: "name",
        only: Some(("kind", "manual")),
        measures: &[
            ("p50_us", Quantity::DurationMs, P50, 0.001),
            (
                "p75_us",
                Quantity::DurationMs,
                Statistic::Percentile(75),
                0.001,
            ),
            ("p95_us", Quantity::DurationMs, P95, 0.001),
        ],
    },
    Question {
        signal: "app_starts",
        of: Measurable::Start,
        by: "kind",
        only: None,
        measures: &[
            ("p50_ms", Quantity::StartMs, P50, 1.0),
            ("p75_ms", Quantity::StartMs, Statistic::Percentile(75), 1.0),
            ("p95_ms", Quantity::StartMs, P95, 1.0),
        ],
    },
    Question {
        signal: "metrics",
        of: Measurable::Page,
        by: "page",
        only: Some(("name", "cpu_percent")),
        measures: &[("mean", Quantity::CpuPercent, MEAN, 1.0)],
    },
    Question {
        signal: "metrics",
        of: Measurable::Page,
        by: "page",
        only: Some(("name", "memory_used_bytes")),
        measures: &[("mean", Quantity::MemoryBytes, MEAN, 1.0)],
    },
];

/// Returns the numbers of the base and of the head.
pub async fn numbers_of_versions(
    clickhouse: &ClickHouse,
    project: &str,
    ask: &NamedQuery,
    (base, head): (&str, &str),
    now: UnixTime,
) -> Result<(Numbers, Numbers), QueryError> {
    let mut numbers = (Numbers::new(), Numbers::new());
    for question in QUESTIONS {
        let asked = question
            .ask(ask, base, head)
            .table(project, question.signal, now)?;
        let (rows, _) = clickhouse
            .read_table(&asked.reading, asked.sort, asked.limit)
            .await?;
        for row in rows {
            let name = row.keys.into_iter().next().unwrap_or_default();
            let of = (question.of)(name);
            question.note(&of, &row.base, &mut numbers.0);
            question.note(&of, &row.now, &mut numbers.1);
        }
    }
    Ok(numbers)
}

impl Question {
    fn ask(&self, ask: &NamedQuery, base: &str, head: &str) -> NamedQuery {
        let mut filters = ask.filters.clone();
        filters.push(("app_version".to_owned(), head.to_owned()));
        filters.extend(
            self.only
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let names = self.measures.iter().map(|(name, ..)| *name);
        NamedQuery {
            from: ask.from,
            to: ask.to,
            base_version: Some(base.to_owned()),
            by: vec![self.by.to_owned()],
            measures: names.chain(["samples"]).map(ToOwned::to_owned).collect(),
            order: Some("-samples".to_owned()),
            limit: Some(MOST_GROUPS),
            filters,
            ..NamedQuery::default()
        }
    }

    /// Adds the metrics of a group. The number of samples is the last value; a group that one side lacks has no values.
    fn note(&self, of: &Measurable, measured: &[f64], numbers: &mut Numbers) {
        let Some((count, values)) = measured.split_last() else {
            return;
        };
        for ((_, quantity, statistic, factor), value) in self.measures.iter().zip(values) {
            if value.is_finite() && *count > 0.0 {
                let metric = Metric {
                    quantity: *quantity,
                    statistic: *statistic,
                };
                numbers.insert((of.clone(), metric), (value * factor, *count));
            }
        }
    }
}
