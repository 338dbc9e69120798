//! Adds up the own time of spans by package.

use std::collections::HashMap;

use serde::Serialize;

use super::nesting::{Covering, Nesting, Timing};
use super::span_breakdown::rounded;
use crate::store::reads::{NestedSpan, NestedSpans};

/// The spans whose code is in one package. The numbers other than `recorded` are estimates for all spans of the period, recorded or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct PackageRow {
    /// Three segments of a Java package, or the crate of a Rust path. Empty for spans without a class.
    pub package: String,
    pub calls: u64,
    /// The number of recorded spans that the estimates are based on.
    pub recorded: u64,
    /// The time of the spans without their children on the same thread, in microseconds.
    pub self_us: u64,
    /// The part of `self_us` that ran on the main thread.
    pub main_thread_us: u64,
    /// The same numbers in the base, if the package ran there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<PackageTimes>,
}

/// The numbers of a package in the base of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct PackageTimes {
    pub calls: u64,
    pub recorded: u64,
    pub self_us: u64,
    pub main_thread_us: u64,
}

/// All packages of a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Packages {
    /// The share of the sessions that was read: above 0, at most 1.
    pub share: f64,
    /// Sorted by own time, at most 1,000. In a comparison, packages of the base alone come last.
    pub rows: Vec<PackageRow>,
}

#[derive(Default)]
struct Sums {
    calls: f64,
    recorded: u64,
    self_us: f64,
    main_thread_us: f64,
}

impl<'s> From<&'s NestedSpan> for Timing<'s> {
    fn from(span: &'s NestedSpan) -> Self {
        Self {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent_span_id: span.parent_span_id,
            session_id: span.session_id,
            thread: &span.thread,
            on_main_thread: span.on_main_thread,
            start: span.start,
            end: span.start.saturating_add_unsigned(span.duration_us),
            sample_rate: span.sample_rate,
        }
    }
}

/// Maximum number of packages in a response.
const MOST_ROWS: usize = 1_000;

/// Adds up the counted spans.
#[must_use]
pub fn packages(NestedSpans { spans, share }: &NestedSpans) -> Packages {
    let nesting = Nesting::new(spans.iter().map(Timing::from).collect());
    let mut sums: HashMap<&str, Sums> = HashMap::new();
    for (at, span) in spans.iter().enumerate().filter(|(_, span)| span.is_counted) {
        let weight = 1.0 / (span.sample_rate * share).max(f64::MIN_POSITIVE);
        let own = weight * nesting.own_us(at, nesting.recorded(at), Covering::SameThread);
        let sum = sums.entry(&span.package).or_default();
        sum.calls += weight;
        sum.recorded += 1;
        sum.self_us += own;
        sum.main_thread_us += if span.on_main_thread { own } else { 0.0 };
    }
    let rows = sums.into_iter().map(|(package, sum)| PackageRow {
        package: package.to_owned(),
        calls: rounded(sum.calls),
        recorded: sum.recorded,
        self_us: rounded(sum.self_us),
        main_thread_us: rounded(sum.main_thread_us),
        base: None,
    });
    let mut rows: Vec<PackageRow> = rows.collect();
    rows.sort_by(|one, other| {
        let by_time = other.self_us.cmp(&one.self_us);
        by_time.then_with(|| one.package.cmp(&other.package))
    });
    Packages {
        share: *share,
        rows,
    }
}

impl Packages {
    /// Leaves out the packages beyond the limit of a response.
    #[must_use]
    pub fn first(mut self) -> Self {
        self.rows.truncate(MOST_ROWS);
        self
    }

    /// Adds the numbers of the base.
    #[must_use]
    pub fn compared_with(mut self, base: Self) -> Self {
        let places: HashMap<String, usize> = (self.rows.iter().enumerate())
            .map(|(place, row)| (row.package.clone(), place))
            .collect();
        for row in base.rows {
            let times = PackageTimes {
                calls: row.calls,
                recorded: row.recorded,
                self_us: row.self_us,
                main_thread_us: row.main_thread_us,
            };
            let known = places.get(&row.package);
            match known.and_then(|place| self.rows.get_mut(*place)) {
                Some(known) => known.base = Some(times),
                None => self.rows.push(PackageRow {
                    package: row.package,
                    base: Some(times),
                    ..PackageRow::default()
                }),
            }
        }
        self
    }
}
