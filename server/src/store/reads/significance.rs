//! How sure it is that two sides differ. Events of one install are not independent, so each install is one value, or one pair of
//! sums; of raw rows, without weights.

use clickhouse::Row;
use serde::Deserialize;

use super::aggregate::{Fold, Formula, Measure};
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

#[derive(Row, Deserialize)]
struct TestedRow {
    keys: Vec<String>,
    p: f64,
    head: u64,
    base: u64,
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
            .collect::<TestedRow>(statement.with_parameters(query))
            .await?;
        let up = contest.up;
        let tested = rows.into_iter().map(|row| {
            let p = match row.sums.as_slice() {
                [] => row.p,
                sums => ratio_p(sums, up),
            };
            Tested {
                keys: row.keys,
                p: if p.is_finite() { p } else { 1.0 },
                installs: (row.head, row.base),
            }
        });
        Ok(Some(tested.collect()))
    }
}

impl Contest<'_> {
    fn statement(&self, database: &str) -> Option<Statement> {
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
        // `greater`: the values of side 0 are.
        let alternative = if self.up { "greater" } else { "less" };
        let answer = if sums {
            let sums = |side: u8| {
                ["1", "x", "y", "x * x", "x * y", "y * y"]
                    .map(|of| format!("sumIf(toFloat64({of}), side = {side})"))
                    .join(", ")
            };
            format!("1. AS p, [{}, {}] AS sums", sums(0), sums(1))
        } else {
            format!(
                "mannWhitneyUTest('{alternative}', 1)(x, side).2 AS p, CAST([], 'Array(Float64)') AS sums"
            )
        };
        let keys: Vec<_> = (0..self.reading.by.len())
            .map(|at| format!("k{at}"))
            .collect();
        let keys = keys.join(", ");
        // The test fails on a group that only one side has: such a group is left out before.
        let both: Vec<_> = [0, 1]
            .map(|side| format!("countIf(side = {side}) OVER (PARTITION BY [{keys}]) > 1"))
            .into();
        statement.sql = format!(
            "SELECT CAST([{keys}], 'Array(String)') AS keys, {answer}, countIf(side = 0) AS head, countIf(side = 1) AS base \
             FROM (SELECT *, {} AS both FROM ({}) WHERE isFinite(x)) WHERE both GROUP BY keys",
            both.join(" AND "),
            sides.join(" UNION ALL ")
        );
        // The order of the columns is that of the row.
        statement.sql = format!("SELECT keys, p, head, base, sums FROM ({})", statement.sql);
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

/// The chance that a ratio of sums is so much worse by accident: the difference of both sides over its standard error, where each
/// install is one draw (the linearised variance of a ratio).
fn ratio_p(sums: &[f64], up: bool) -> f64 {
    let side = |of: &[f64]| {
        let [n, x, y, xx, xy, yy] = of else {
            return None;
        };
        let ratio = x / y;
        let spread = xx - 2.0 * ratio * xy + ratio * ratio * yy;
        Some((ratio, spread.max(0.0) / (y * y) * n / (n - 1.0)))
    };
    let sides = sums
        .split_at_checked(6)
        .and_then(|(head, base)| Some((side(head)?, side(base)?)));
    let Some(((head, of_head), (base, of_base))) = sides else {
        return f64::NAN;
    };
    let z = (head - base) / (of_head + of_base).sqrt();
    upper_tail(if up { z } else { -z })
}

/// The chance that a standard normal value is above `z`: Abramowitz and Stegun 26.2.17, exact to 7.5e-8.
fn upper_tail(z: f64) -> f64 {
    const B: [f64; 5] = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    if z.is_nan() {
        return f64::NAN;
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let sum = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    let tail = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if z >= 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        for (z, expected) in [
            (0.0, 0.5),
            (1.644_853_6, 0.05),
            (2.326_347_9, 0.01),
            (-1.0, 0.841_344_7),
        ] {
            let actual = upper_tail(z);
            assert!((actual - expected).abs() < 2e-7, "{z}: {actual}");
        }
    }

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
        let p = |head, base, up| ratio_p(&[side(head), side(base)].concat(), up);
        assert!((p(&few, &few, true) - 0.5).abs() < 1e-6);
        assert!(p(&many, &few, true) < 1e-6);
        assert!(p(&many, &few, false) > 0.99);
    }
}
