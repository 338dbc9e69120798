//! Tests whether two sides differ significantly. Events of one install are not independent, so each install counts as one value or
//! one pair of sums, from raw rows and without weights. Installs are compared within their stratum.

use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;
use std::ops::Range;

use clickhouse::Row;
use serde::Deserialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::erf::erfc;

use super::aggregate::{Aggregation, Formula, Measure};
use super::define::Dimension;
use super::parts::Part;
use super::reading::{Filter, Grain, Reading, Span, Wanted};
use super::statement::Statement;
use crate::store::clickhouse::{ClickHouse, Failure};

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    pub version: Option<String>,
    pub span: Span,
}

/// The comparison. The reading sets project, subject, dimensions and filters; the first of its measures is tested.
pub struct SignificanceTest<'c> {
    pub reading: &'c Reading,
    pub head: &'c Side,
    pub base: &'c Side,
    /// Whether a higher value is worse.
    pub up: bool,
    /// Only installs with equal values of these dimensions are compared with each other.
    pub strata: &'c [Dimension],
}

/// Minimum number of installs on either side of a comparison.
pub const LEAST_INSTALLS: u64 = 8;

/// Returns whether two measures have the same test, and so the same p-values. All percentiles of a histogram are tested by the medians of
/// installs.
#[must_use]
pub fn have_same_test(one: &Measure, other: &Measure) -> bool {
    let histogram = |formula: &Formula| match *formula {
        Formula::Percentile(name, _) | Formula::Maximum(name) => Some(name),
        _ => None,
    };
    one.name == other.name
        || histogram(&one.formula).is_some_and(|name| histogram(&other.formula) == Some(name))
}

/// Returns the probability that chance alone makes the ratio of the sums of two sides differ this much, in either direction. Each item has
/// the sums of one install: numerator and denominator. Returns `None` if either side has too few installs.
#[must_use]
pub fn ratio_p(head: &[(f64, f64)], base: &[(f64, f64)]) -> Option<f64> {
    if (head.len().min(base.len()) as u64) < LEAST_INSTALLS {
        return None;
    }
    let sums = [sums_of_pairs(head), sums_of_pairs(base)].concat();
    let Stratum {
        excess, variance, ..
    } = Stratum::of_ratios(&sums)?;
    if variance <= 0.0 {
        return Some(if excess == 0.0 { 1.0 } else { 0.0 });
    }
    // With few installs, the tails of the normal distribution would be too thin.
    #[expect(clippy::cast_precision_loss, reason = "a number of installs")]
    let freedom = (head.len() + base.len() - 2) as f64;
    let chances = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some((2.0 * chances.sf((excess / variance.sqrt()).abs())).min(1.0))
}

fn sums_of_pairs(pairs: &[(f64, f64)]) -> [f64; 6] {
    let of = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    [
        of(|_| 1.0),
        of(|pair| pair.0),
        of(|pair| pair.1),
        of(|pair| pair.0 * pair.0),
        of(|pair| pair.0 * pair.1),
        of(|pair| pair.1 * pair.1),
    ]
}

/// The result of a test for one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Tested {
    pub keys: Vec<String>,
    /// The probability that chance alone makes the head this much worse.
    pub p: f64,
    /// Number of installs of the head and of the base.
    pub installs: (u64, u64),
}

/// The sums of one stratum of a group.
#[derive(Row, Deserialize)]
struct StratumRow {
    keys: Vec<String>,
    sums: Vec<f64>,
}

/// The aggregate of one install.
enum PerInstall {
    /// One value.
    Value(String),
    /// Numerator and denominator.
    Ratio(String, String),
}

impl ClickHouse {
    /// Tests the first measure by group. Returns `None` if there is no test for the measure.
    pub async fn tested(
        &self,
        contest: &SignificanceTest<'_>,
    ) -> Result<Option<Vec<Tested>>, Failure> {
        let Some(statement) = contest.statement(self.database()) else {
            return Ok(None);
        };
        let query = self.question(&statement.sql)?;
        let (rows, _) = self
            .collect::<StratumRow>(statement.with_parameters(query))
            .await?;
        let mut groups: BTreeMap<Vec<String>, Vec<Stratum>> = BTreeMap::new();
        for row in rows {
            let stratum = Stratum::from_sums(&row.sums);
            groups.entry(row.keys).or_default().extend(stratum);
        }
        let up = contest.up;
        let tested = groups.into_iter().map(|(keys, strata)| Tested {
            keys,
            p: combined_p(&strata, up),
            installs: strata.iter().fold((0, 0), |(head, base), one| {
                (head + one.installs.0, base + one.installs.1)
            }),
        });
        Ok(Some(tested.collect()))
    }
}

impl SignificanceTest<'_> {
    fn statement(&self, database: &str) -> Option<Statement> {
        self.reading.subject.dimension("install_id")?;
        let measure = self.reading.measures.first()?;
        if let Formula::Ratio(above, below, _) = measure.formula
            && self.reading.subject.other_signal(above).is_some()
        {
            return self.rate(above, below, database);
        }
        let aggregate = self.per_install(measure)?;
        let (value, sums) = match aggregate {
            PerInstall::Value(value) => (format!("toFloat64({value}) AS x, 0. AS y"), false),
            PerInstall::Ratio(above, below) => (
                format!("toFloat64({above}) AS x, toFloat64({below}) AS y"),
                true,
            ),
        };
        let mut statement = Statement::default();
        let sides: Vec<_> = [(0, self.head), (1, self.base)]
            .into_iter()
            .map(|(side, contestant)| {
                self.installs(side, &value, contestant, database, &mut statement)
            })
            .collect();
        let installs = format!(
            "SELECT {} AS keys, {} AS stratum, side, x, y FROM ({}) WHERE isFinite(x)",
            list("k", 0..self.reading.by.len()),
            list("s", 0..self.strata.len()),
            sides.join(" UNION ALL ")
        );
        let (from, sums) = if sums {
            let sums = |side: u8| {
                ["1", "x", "y", "x * x", "x * y", "y * y"]
                    .map(|of| format!("sumIf(toFloat64({of}), side = {side})"))
                    .join(", ")
            };
            (installs, format!("{}, {}", sums(0), sums(1)))
        } else {
            // Tied values get the mean of their ranks.
            let ranked = format!(
                "SELECT keys, stratum, side, toFloat64(count() OVER (PARTITION BY keys, stratum, x)) AS tied, \
                 rank() OVER (PARTITION BY keys, stratum ORDER BY x) + (tied - 1) / 2 AS place FROM ({installs})"
            );
            let sums = "toFloat64(countIf(side = 0)), toFloat64(countIf(side = 1)), sumIf(place, side = 0), sum(tied * tied - 1)";
            (ranked, sums.to_owned())
        };
        statement.sql =
            format!("SELECT keys, [{sums}] AS sums FROM ({from}) GROUP BY keys, stratum");
        Some(statement)
    }

    /// Returns the reading of one side.
    pub(super) fn side(&self, contestant: &Side) -> Reading {
        let mut reading = self.reading.clone();
        (reading.span, reading.base) = (contestant.span, None);
        if let (Some(version), Some(dimension)) = (
            &contestant.version,
            reading.subject.dimension("app_version"),
        ) {
            reading.filters.push(Filter {
                dimension,
                wanted: Wanted::OneOf(vec![version.clone()]),
            });
        }
        reading
    }

    /// Selects one row per install of one side.
    pub(super) fn installs(
        &self,
        side: u8,
        value: &str,
        contestant: &Side,
        database: &str,
        statement: &mut Statement,
    ) -> String {
        let mut reading = self.side(contestant);
        (reading.grain, reading.exact) = (Grain::Raw, false);
        let mut own = Statement::default();
        let mut columns = Vec::new();
        let mut group = Vec::new();
        for (place, dimension) in reading.by.iter().enumerate() {
            let value = dimension.readable(&reading.value(dimension), database);
            columns.push(format!("{value} AS k{place}"));
            group.push(format!("k{place}"));
        }
        for (place, dimension) in self.strata.iter().enumerate() {
            let value = dimension.readable(&reading.value(dimension), database);
            columns.push(format!("{value} AS s{place}"));
            group.push(format!("s{place}"));
        }
        columns.push(format!("toUInt8({side}) AS side, {value}"));
        group.push("s.install_id".to_owned());
        let rows = reading.rows(&Part::whole(&reading), database, &mut own);
        let sql = format!(
            "SELECT {} FROM {} WHERE {rows} GROUP BY {}",
            columns.join(", "),
            reading.from(database),
            group.join(", ")
        );
        statement.take_sql(own, &sql, &format!("side{side}_"))
    }

    fn per_install(&self, measure: &Measure) -> Option<PerInstall> {
        let subject = self.reading.subject;
        let sum = |name: &str| {
            let aggregate = subject.aggregate(name)?;
            match aggregate.fold {
                Aggregation::Sum => Some(format!("sum({})", aggregate.raw)),
                // Each install counts as one.
                Aggregation::Distinct => Some("1".to_owned()),
                _ => None,
            }
        };
        match measure.formula {
            Formula::Percentile(name, _) | Formula::Maximum(name) => {
                let value = subject.aggregate(name)?.raw;
                let known = format!("assumeNotNull({value}), isNotNull({value})");
                Some(PerInstall::Value(format!(
                    "quantileExactInclusiveIf(0.5)({known})"
                )))
            }
            Formula::Ratio(above, below, _) => Some(PerInstall::Ratio(sum(above)?, sum(below)?)),
            Formula::PartOf(part, rest) => Some(PerInstall::Ratio(
                sum(part)?,
                format!("{} + {}", sum(part)?, sum(rest)?),
            )),
            Formula::SumOver([one, other], _) | Formula::Plus(one, other) => Some(
                PerInstall::Value(format!("{} + {}", sum(one)?, sum(other)?)),
            ),
            Formula::Is(name) => match subject.aggregate(name)?.fold {
                Aggregation::Sum => Some(PerInstall::Value(sum(name)?)),
                _ => None,
            },
        }
    }
}

/// Returns columns with a letter and a number as a list of texts, in SQL.
pub(super) fn list(letter: &str, numbers: Range<usize>) -> String {
    let all: Vec<_> = numbers.map(|at| format!("{letter}{at}")).collect();
    format!("CAST([{}], 'Array(String)')", all.join(", "))
}

/// How much worse the head is than expected in a stratum, and the variance of that excess. Both are weighted by the stratum.
struct Stratum {
    excess: f64,
    variance: f64,
    installs: (u64, u64),
}

impl Stratum {
    fn from_sums(sums: &[f64]) -> Option<Self> {
        match sums {
            [head, base, places, ties] => Self::of_ranks(*head, *base, *places, *ties),
            sums => Self::of_ratios(sums),
        }
    }

    /// The Mann–Whitney U statistic of the head, with the stratum's weight by van Elteren (1960).
    fn of_ranks(head: f64, base: f64, places: f64, ties: f64) -> Option<Self> {
        let all = head + base;
        if head < 1.0 || base < 1.0 {
            return None;
        }
        let weight = 1.0 / (all + 1.0);
        let u = places - head * (head + 1.0) / 2.0;
        let tied = ties / (all * (all - 1.0));
        Some(Self {
            excess: weight * (u - head * base / 2.0),
            variance: weight * weight * head * base / 12.0 * (all + 1.0 - tied),
            installs: (to_count(head), to_count(base)),
        })
    }

    /// The difference of two ratios of sums, where each install is one draw (the linearized variance of a ratio).
    fn of_ratios(sums: &[f64]) -> Option<Self> {
        let side = |of: &[f64]| {
            let [n, x, y, xx, xy, yy] = of else {
                return None;
            };
            let ratio = x / y;
            let spread = xx - 2.0 * ratio * xy + ratio * ratio * yy;
            let spread = spread.max(0.0) * n / (n - 1.0);
            (*n > 1.0 && *y > 0.0).then_some((*n, ratio, spread, yy / (y * y), *yy))
        };
        let (head, base) = sums.split_at_checked(6)?;
        let (head, now, of_now, one, size) = side(head)?;
        let (base, before, of_before, other, other_size) = side(base)?;
        // The variance is pooled: a few installs without a single error do not prove that the error rate is zero.
        let spread = (of_now + of_before) / (size + other_size);
        let weight = head * base / (head + base);
        Some(Self {
            excess: weight * (now - before),
            variance: weight * weight * spread * (one + other),
            installs: (to_count(head), to_count(base)),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of installs"
)]
fn to_count(installs: f64) -> u64 {
    installs as u64
}

/// Returns the probability that chance alone makes the group this much worse, over all strata.
fn combined_p(strata: &[Stratum], up: bool) -> f64 {
    let excess: f64 = strata.iter().map(|one| one.excess).sum();
    let variance: f64 = strata.iter().map(|one| one.variance).sum();
    let z = excess / variance.sqrt();
    if z.is_nan() {
        return 1.0;
    }
    let z = if up { z } else { -z };
    erfc(z / SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_are_not_significant_and_different_ratios_are() {
        let few: Vec<_> = (0..50).map(|i| (f64::from(i % 3), 10.0)).collect();
        let many: Vec<_> = (0..50).map(|i| (f64::from(i % 3 + 3), 10.0)).collect();
        let p = |head, base, up| {
            let sums = [sums_of_pairs(head), sums_of_pairs(base)].concat();
            combined_p(&[Stratum::from_sums(&sums).unwrap()], up)
        };
        assert!((p(&few, &few, true) - 0.5).abs() < 1e-6);
        assert!(p(&many, &few, true) < 1e-6);
        assert!(p(&many, &few, false) > 0.99);
        // 8 in 1,000 against 0 in 60 is not significant: 0.008 over sqrt(0.0075 / 1,000 + 0.0075 / 60) is 0.7.
        let rare: Vec<_> = (0..1_000)
            .map(|i| (f64::from(u8::from(i < 8)), 1.0))
            .collect();
        let none = vec![(0.0, 1.0); 60];
        assert!((0.2..0.3).contains(&p(&rare, &none, true)));
    }

    #[test]
    fn a_few_installs_need_a_larger_difference_and_fewer_are_not_tested() {
        let of = |from: u32, installs: u32| -> Vec<_> {
            (0..installs)
                .map(|i| (f64::from(from + i % 3), 1.0))
                .collect()
        };
        assert_eq!(ratio_p(&of(5, 7), &of(1, 100)), None);
        let few = ratio_p(&of(2, 8), &of(1, 8)).unwrap();
        let many = ratio_p(&of(2, 80), &of(1, 80)).unwrap();
        assert!((0.01..0.1).contains(&few) && many < 1e-6, "{few} {many}");
        let down = ratio_p(&of(1, 8), &of(2, 8)).unwrap();
        assert!((few - down).abs() < 1e-12, "{few} {down}");
        // All installs of a side have the same value, so the variance is 0.
        assert_eq!(ratio_p(&[(0.0, 1.0); 9], &[(0.0, 1.0); 9]), Some(1.0));
        assert_eq!(ratio_p(&[(3.0, 1.0); 9], &[(0.0, 1.0); 9]), Some(0.0));
    }

    #[test]
    fn installs_are_compared_within_their_stratum() {
        // The head is larger in neither stratum, but more of its installs are in the stratum with larger values.
        let of = |sums: [f64; 4]| Stratum::from_sums(&sums).unwrap();
        let even = |head: f64, base: f64| of([head, base, head * (head + base + 1.0) / 2.0, 0.0]);
        assert!((combined_p(&[even(90.0, 10.0), even(10.0, 90.0)], true) - 0.5).abs() < 1e-6);
        // (10, 11, 12) against (1, 2): U = 6, z = 3 / sqrt(3).
        let larger = of([3.0, 2.0, 12.0, 0.0]);
        let p = combined_p(&[larger], true);
        assert!((p - 0.041_632).abs() < 1e-5, "{p}");
        // All values are tied: not significant, and no division by zero.
        let tied = of([3.0, 2.0, 9.0, 120.0]);
        assert!((combined_p(&[tied], true) - 1.0).abs() < 1e-9);
        assert!(Stratum::from_sums(&[3.0, 0.0, 6.0, 0.0]).is_none());
    }
}
