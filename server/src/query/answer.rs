//! Answers that need more than one statement or further computation.

use std::collections::{BTreeMap, BTreeSet};

use super::named_query::ResolvedQuery;
use crate::store::reads::{Aggregation, Filter, Read, Wanted};
use crate::store::{ClickHouse, Failure, upper_bound};

const MOST_POINTS: u64 = 100_000;

/// Groups over time.
#[derive(Debug, Default)]
pub struct Steps {
    /// Start of each step, in seconds since the epoch.
    pub times: Vec<i64>,
    pub lines: Vec<Steady>,
}

/// One group over time.
#[derive(Debug)]
pub struct Steady {
    pub keys: Vec<String>,
    /// One value per measure and time; NaN where nothing was measured.
    pub values: Vec<Vec<f64>>,
}

/// Histograms of groups over the same bounds.
#[derive(Debug, Default)]
pub struct Shape {
    /// Upper bounds.
    pub bounds: Vec<f64>,
    pub groups: Vec<(Vec<String>, Vec<f64>)>,
}

/// Reads the largest groups over time. The groups become a filter of the reading.
pub async fn series(
    clickhouse: &ClickHouse,
    asked: &mut ResolvedQuery,
) -> Result<(Steps, Read), Failure> {
    let mut read = Read::default();
    let mut groups = vec![Vec::new()];
    if let Some(dimension) = asked.reading.by.first().copied() {
        let (rows, first) = clickhouse
            .read_table(&asked.reading, asked.sort, asked.limit.min(50))
            .await?;
        read = first;
        groups = rows.into_iter().map(|row| row.keys).collect();
        asked.reading.filters.push(Filter {
            dimension,
            wanted: Wanted::OneOf(groups.concat()),
        });
    }
    let (points, second) = clickhouse
        .read_series(&asked.reading, asked.step_s, MOST_POINTS)
        .await?;
    read.rows += second.rows;
    read.bytes += second.bytes;
    let step = i64::from(asked.step_s);
    let span = asked.reading.span;
    let first = span.from.as_secs().div_euclid(step) * step;
    let end = span.to.as_secs();
    let times: Vec<i64> = (0..)
        .map(|place| first + place * step)
        .take_while(|at| *at < end)
        .collect();
    let measures = asked.reading.measures.len();
    let empty = || vec![vec![f64::NAN; times.len()]; measures];
    let mut lines: Vec<Steady> = groups
        .into_iter()
        .map(|keys| Steady {
            keys,
            values: empty(),
        })
        .collect();
    for point in points {
        let line = lines.iter_mut().find(|line| line.keys == point.keys);
        let place = usize::try_from((point.at - first) / step).unwrap_or(usize::MAX);
        for (values, value) in line
            .into_iter()
            .flat_map(|line| &mut line.values)
            .zip(point.measured)
        {
            if let Some(slot) = values.get_mut(place) {
                *slot = value;
            }
        }
    }
    Ok((Steps { times, lines }, read))
}

/// Reads the distribution of a field in the largest groups.
pub async fn distribution(
    clickhouse: &ClickHouse,
    asked: &ResolvedQuery,
    field: &'static str,
) -> Result<(Shape, Read), Failure> {
    let mut reading = asked.reading.clone();
    reading.measures.clear();
    let fold = reading.subject.aggregate(field).map(|one| one.fold);
    let (rows, read) = clickhouse
        .read_histogram(&reading, field, asked.limit.min(50))
        .await?;
    let buckets: BTreeSet<i32> = rows.iter().flat_map(|row| &row.buckets).copied().collect();
    let groups = rows.into_iter().map(|row| {
        let weights: BTreeMap<i32, f64> = row.buckets.into_iter().zip(row.weights).collect();
        let counts = buckets
            .iter()
            .map(|bucket| weights.get(bucket).copied().unwrap_or(0.0));
        (row.keys, counts.collect())
    });
    let groups = groups.collect();
    let bounds = upper_bounds(&buckets, fold == Some(Aggregation::Bounds));
    Ok((Shape { bounds, groups }, read))
}

/// Each logarithmic bucket has its own upper bound. Buckets that devices name by their lower bounds end where the next one begins;
/// the last one ends at twice its lower bound.
fn upper_bounds(buckets: &BTreeSet<i32>, set_by_devices: bool) -> Vec<f64> {
    if !set_by_devices {
        return buckets.iter().copied().map(upper_bound).collect();
    }
    let lower: Vec<f64> = buckets.iter().copied().map(f64::from).collect();
    let next = lower.iter().skip(1).copied();
    let last = lower.last().map(|last| last * 2.0);
    next.chain(last).collect()
}
