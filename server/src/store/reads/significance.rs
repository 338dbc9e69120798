//! How sure it is that two sides differ. Events of one install are not independent, so each install is one value, or one pair of
//! sums; of raw rows, without weights. Installs of one kind are compared with their like.

use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;

use clickhouse::Row;
use serde::Deserialize;
use statrs::function::erf::erfc;

use super::aggregate::{Fold, Formula, Measure};
use super::define::Dimension;
use super::parts::Part;
use super::statement::{Filter, Grain, Reading, Span, Statement, Wanted};
use crate::store::clickhouse::{ClickHouse, Failure};

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Contestant {
    pub version: Option<String>,
    pub span: Span,
}

/// What is compared: the reading says project, subject, dimensions and filters; the first of its measures is tested.
pub struct Contest<'c> {
    pub reading: &'c Reading,
    pub head: &'c Contestant,
    pub base: &'c Contestant,
    /// Whether more is worse.
    pub up: bool,
    /// Only installs with the same values of these are compared with one another.
    pub strata: &'c [&'static Dimension],
}

/// What a test says of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Tested {
    pub keys: Vec<String>,
    /// The chance, by accident alone, that the head is so much worse.
    pub p: f64,
    /// Installs on either side.
    pub installs: (u64, u64),
}

/// A stratum of a group.
#[derive(Row, Deserialize)]
struct StratumRow {
    keys: Vec<String>,
    sums: Vec<f64>,
}

/// What is made of the rows of an install.
enum Of {
    /// One value.
    Value(String),
    /// What is above and what is below the line.
    Ratio(String, String),
}

impl ClickHouse {
    /// Tests the first measure by group; nothing when there is no test for it.
    pub async fn tested(&self, contest: &Contest<'_>) -> Result<Option<Vec<Tested>>, Failure> {
        let Some(statement) = contest.statement(self.database()) else {
            return Ok(None);
        };
        let query = self.question(&statement.sql)?;
        let (rows, _) = self
            .collect::<StratumRow>(statement.with_parameters(query))
            .await?;
        let mut groups: BTreeMap<Vec<String>, Vec<Stratum>> = BTreeMap::new();
        for row in rows {
            let stratum = Stratum::of(&row.sums);
            groups.entry(row.keys).or_default().extend(stratum);
        }
        let up = contest.up;
        let tested = groups.into_iter().map(|(keys, strata)| Tested {
            keys,
            p: together(&strata, up),
            installs: strata.iter().fold((0, 0), |(head, base), one| {
                (head + one.installs.0, base + one.installs.1)
            }),
        });
        Ok(Some(tested.collect()))
    }
}

impl Contest<'_> {
    fn statement(&self, database: &str) -> Option<Statement> {
        self.reading.subject.dimension("install_id")?;
        let of = self.of(self.reading.measures.first()?)?;
        let (value, sums) = match of {
            Of::Value(value) => (format!("toFloat64({value}) AS x, 0. AS y"), false),
            Of::Ratio(above, below) => (
                format!("toFloat64({above}) AS x, toFloat64({below}) AS y"),
                true,
            ),
        };
        let mut statement = Statement::default();
        let sides: Vec<_> = [(0, self.head), (1, self.base)]
            .into_iter()
            .map(|(side, contestant)| {
                self.installs((side, &value), contestant, database, &mut statement)
            })
            .collect();
        let list = |name: &str, length: usize| {
            let all: Vec<_> = (0..length).map(|at| format!("{name}{at}")).collect();
            format!("CAST([{}], 'Array(String)')", all.join(", "))
        };
        let installs = format!(
            "SELECT {} AS keys, {} AS stratum, side, x, y FROM ({}) WHERE isFinite(x)",
            list("k", self.reading.by.len()),
            list("s", self.strata.len()),
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
            // Equal values share the mean of their ranks.
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

    /// A row for each install on one side.
    fn installs(
        &self,
        (side, value): (u8, &str),
        contestant: &Contestant,
        database: &str,
        statement: &mut Statement,
    ) -> String {
        let mut reading = self.reading.clone();
        (reading.grain, reading.exact) = (Grain::Raw, false);
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
        let mut own = Statement::default();
        let mut columns = Vec::new();
        let mut group = Vec::new();
        for (place, dimension) in reading.by.iter().enumerate() {
            columns.push(format!(
                "toString({}) AS k{place}",
                reading.value(dimension)
            ));
            group.push(format!("k{place}"));
        }
        for (place, dimension) in self.strata.iter().enumerate() {
            columns.push(format!(
                "toString({}) AS s{place}",
                reading.value(dimension)
            ));
            group.push(format!("s{place}"));
        }
        columns.push(format!("toUInt8({side}) AS side, {value}"));
        group.push("s.install_id".to_owned());
        let rows = reading.rows(&Part::whole(&reading), &mut own);
        let sql = format!(
            "SELECT {} FROM {} WHERE {rows} GROUP BY {}",
            columns.join(", "),
            reading.from(database),
            group.join(", ")
        );
        statement.take(own, &format!("side{side}_"));
        // All braces are those of parameters.
        sql.replace('{', &format!("{{side{side}_"))
    }

    fn of(&self, measure: &Measure) -> Option<Of> {
        let subject = self.reading.subject;
        let sum = |name: &str| {
            let aggregate = subject.aggregate(name)?;
            match aggregate.fold {
                Fold::Sum => Some(format!("sum({})", aggregate.raw)),
                // An install is one.
                Fold::Distinct => Some("1".to_owned()),
                _ => None,
            }
        };
        match measure.formula {
            Formula::Percentile(name, _) => {
                let raw = subject.aggregate(name)?.raw;
                let value = raw.split_once('@').map_or(raw, |(value, _)| value);
                let known = format!("assumeNotNull({value}), isNotNull({value})");
                Some(Of::Value(format!("quantileExactInclusiveIf(0.5)({known})")))
            }
            Formula::Ratio(above, below, _) => Some(Of::Ratio(sum(above)?, sum(below)?)),
            Formula::SumOver([one, other], _) | Formula::Plus(one, other) => {
                Some(Of::Value(format!("{} + {}", sum(one)?, sum(other)?)))
            }
            Formula::Is(name) => match subject.aggregate(name)?.fold {
                Fold::Sum => Some(Of::Value(sum(name)?)),
                _ => None,
            },
        }
    }
}

/// How much worse the head is than expected in a stratum, and how much of that is chance, both with the weight of the stratum.
struct Stratum {
    excess: f64,
    variance: f64,
    installs: (u64, u64),
}

impl Stratum {
    fn of(sums: &[f64]) -> Option<Self> {
        match sums {
            [head, base, places, ties] => Self::of_ranks((*head, *base), *places, *ties),
            sums => Self::of_ratios(sums),
        }
    }

    /// The Mann–Whitney U of the head, with a stratum's weight as van Elteren (1960) has it.
    fn of_ranks((head, base): (f64, f64), places: f64, ties: f64) -> Option<Self> {
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
            installs: (counted(head), counted(base)),
        })
    }

    /// The difference of two ratios of sums, where each install is one draw (the linearised variance of a ratio).
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
        // Both spread alike: a few installs without a single error do not say that there are none.
        let spread = (of_now + of_before) / (size + other_size);
        let weight = head * base / (head + base);
        Some(Self {
            excess: weight * (now - before),
            variance: weight * weight * spread * (one + other),
            installs: (counted(head), counted(base)),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of installs"
)]
fn counted(installs: f64) -> u64 {
    installs as u64
}

/// The chance that a group is so much worse by accident, over its strata.
fn together(strata: &[Stratum], up: bool) -> f64 {
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
    fn a_ratio_of_the_same_installs_is_no_news_and_of_others_is() {
        let side = |pairs: &[(f64, f64)]| {
            let of = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
            [
                of(|_| 1.0),
                of(|p| p.0),
                of(|p| p.1),
                of(|p| p.0 * p.0),
                of(|p| p.0 * p.1),
                of(|p| p.1 * p.1),
            ]
        };
        let few: Vec<_> = (0..50).map(|i| (f64::from(i % 3), 10.0)).collect();
        let many: Vec<_> = (0..50).map(|i| (f64::from(i % 3 + 3), 10.0)).collect();
        let p = |head, base, up| {
            let sums = [side(head), side(base)].concat();
            together(&[Stratum::of(&sums).unwrap()], up)
        };
        assert!((p(&few, &few, true) - 0.5).abs() < 1e-6);
        assert!(p(&many, &few, true) < 1e-6);
        assert!(p(&many, &few, false) > 0.99);
        // 8 in 1,000 against 0 in 60 is no news: 0.008 over sqrt(0.0075 / 1,000 + 0.0075 / 60) is 0.7.
        let rare: Vec<_> = (0..1_000)
            .map(|i| (f64::from(u8::from(i < 8)), 1.0))
            .collect();
        let none = vec![(0.0, 1.0); 60];
        assert!((0.2..0.3).contains(&p(&rare, &none, true)));
    }

    #[test]
    fn strata_are_compared_each_with_its_own() {
        // The head is larger in neither stratum, but has more of the larger one.
        let of = |sums: [f64; 4]| Stratum::of(&sums).unwrap();
        let even = |head: f64, base: f64| of([head, base, head * (head + base + 1.0) / 2.0, 0.0]);
        assert!((together(&[even(90.0, 10.0), even(10.0, 90.0)], true) - 0.5).abs() < 1e-6);
        // (10, 11, 12) against (1, 2): U = 6, z = 3 / sqrt(3).
        let larger = of([3.0, 2.0, 12.0, 0.0]);
        let p = together(&[larger], true);
        assert!((p - 0.041_632).abs() < 1e-5, "{p}");
        // All are equal: no news, and no division by nothing.
        let tied = of([3.0, 2.0, 9.0, 120.0]);
        assert!((together(&[tied], true) - 1.0).abs() < 1e-9);
        assert!(Stratum::of(&[3.0, 0.0, 6.0, 0.0]).is_none());
    }
}
