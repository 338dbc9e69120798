//! Derives verdicts from values.
//!
//! A regression requires all of the following: enough samples on both sides, a change beyond both the relative and the absolute
//! tolerance, the same change in the median of the runs if there are several, and a p below the significance level after correction
//! for the number of tests.
//!
//! Values within a run are correlated (a slow minute causes many slow windows), so fewer of them are independent than are counted,
//! and p is too small. If there are enough runs, each run therefore counts as one value.

use std::collections::BTreeSet;

use unjank_foundation::holm::holm;

use super::budgets::{Budgets, Gate, Limit, Policy};
use super::metric::{Metric, Statistic};
use super::significance::{Test, least_p, mann_whitney};
use super::{Comparison, Counted, Facts, Row, Side, Verdict};
use crate::test_run::{Measurable, Measured, Quantity};

/// Minimum number of values beyond a percentile on each side, so that no single value decides.
const LEAST_BEYOND: f64 = 5.0;

/// Compares two sides.
#[must_use]
pub fn compare(base: &Side, head: &Side, budgets: &Budgets) -> Comparison {
    let mut compared: Vec<Compared> = metrics(base, head, budgets)
        .into_iter()
        .map(|(of, metric)| Compared::gather(base, head, budgets, of, metric))
        .collect();
    choose_basis(&mut compared, budgets);
    let tests: Vec<Option<Test>> = compared.iter().map(Compared::test).collect();
    let raw: Vec<f64> = tests.iter().flatten().map(|test| test.p).collect();
    let mut corrected = holm(&raw, raw.len()).into_iter();
    let rows = compared.iter().zip(tests).map(|(one, test)| {
        let p = test.and_then(|_| corrected.next());
        one.row(test, p, budgets.defaults.significance)
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|one, other| {
        (one.verdict, &one.of, one.metric).cmp(&(other.verdict, &other.of, other.metric))
    });
    let measured = |of: &Measurable, quantity: Quantity| {
        let mut known = head.known.keys();
        head.runs.iter().any(|run| run.get(of, quantity).is_some())
            || known.any(|(other, metric)| other == of && metric.quantity == quantity)
    };
    Comparison {
        base: facts(base),
        head: facts(head),
        missing: budgets.missing(measured),
        on_missing: budgets.defaults.on_missing,
        significance: budgets.defaults.significance,
        rows,
    }
}

fn facts(side: &Side) -> Facts {
    Facts {
        label: side.label.clone(),
        runs: side.runs.len(),
    }
}

fn metrics(base: &Side, head: &Side, budgets: &Budgets) -> BTreeSet<(Measurable, Metric)> {
    let sides = [base, head];
    let mut all = BTreeSet::new();
    for ((of, quantity), _) in sides
        .iter()
        .flat_map(|side| &side.runs)
        .flat_map(Measured::iter)
    {
        for statistic in budgets.statistics(of, *quantity) {
            let metric = Metric {
                quantity: *quantity,
                statistic,
            };
            all.insert((of.clone(), metric));
        }
    }
    let known = sides.iter().flat_map(|side| side.known.keys());
    let budgeted = known.filter(|(of, metric)| {
        let statistics = budgets.statistics(of, metric.quantity);
        statistics.contains(&metric.statistic)
    });
    all.extend(budgeted.cloned());
    all
}

/// The values of one side for one metric.
struct Gathered {
    /// Values and weights from all runs.
    values: Vec<(f64, f64)>,
    /// The statistic of each run that has values.
    by_run: Vec<f64>,
    /// The statistic over all runs.
    whole: Option<f64>,
    count: u64,
}

impl Gathered {
    fn new(side: &Side, of: &Measurable, metric: Metric) -> Self {
        let series = side.runs.iter();
        let series: Vec<_> = series
            .filter_map(|run| run.get(of, metric.quantity))
            .collect();
        let values: Vec<(f64, f64)> = series.iter().flat_map(|one| &one.kept).copied().collect();
        let known = side.known.get(&(of.clone(), metric));
        let seen = series.iter().map(|one| one.seen).sum();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count"
        )]
        let count = known.map_or(seen, |(_, count)| count.round() as u64);
        Self {
            by_run: series
                .iter()
                .filter_map(|one| metric.statistic.compute(&one.kept))
                .collect(),
            whole: known
                .map(|(value, _)| *value)
                .or_else(|| metric.statistic.compute(&values)),
            count,
            values,
        }
    }

    fn plain(&self) -> Vec<f64> {
        self.values.iter().map(|(value, _)| *value).collect()
    }

    fn median_of_runs(&self) -> Option<f64> {
        let runs: Vec<(f64, f64)> = self.by_run.iter().map(|value| (*value, 1.0)).collect();
        Statistic::Percentile(50).compute(&runs)
    }
}

/// What the test compares, if there is enough of it.
#[derive(Clone, Copy, PartialEq)]
enum Basis {
    Runs,
    Values,
    TooFew,
}

struct Compared {
    of: Measurable,
    metric: Metric,
    base: Gathered,
    head: Gathered,
    policy: Policy,
    basis: Basis,
}

/// Compares runs if that many runs can be significant after the correction, otherwise the values in them.
fn choose_basis(all: &mut [Compared], budgets: &Budgets) {
    let least_runs = budgets.defaults.least_runs.max(2) as usize;
    let possible = |one: &Compared| one.has_runs(least_runs) || one.has_values();
    #[expect(clippy::cast_precision_loss, reason = "tests are some thousand")]
    let tests = all.iter().filter(|one| possible(one)).count() as f64;
    for one in all {
        let (base, head) = (one.base.by_run.len(), one.head.by_run.len());
        let can_be_significant = least_p(base, head) * tests <= budgets.defaults.significance;
        one.basis = if one.has_runs(least_runs) && can_be_significant {
            Basis::Runs
        } else if one.has_values() {
            Basis::Values
        } else {
            Basis::TooFew
        };
    }
}

impl Compared {
    fn gather(base: &Side, head: &Side, budgets: &Budgets, of: Measurable, metric: Metric) -> Self {
        Self {
            base: Gathered::new(base, &of, metric),
            head: Gathered::new(head, &of, metric),
            policy: budgets.policy(&of, metric),
            basis: Basis::TooFew,
            of,
            metric,
        }
    }

    fn has_runs(&self, least: usize) -> bool {
        self.base.by_run.len() >= least && self.head.by_run.len() >= least
    }

    fn has_values(&self) -> bool {
        if self.metric.quantity.is_of_run() {
            return false;
        }
        let beyond = match self.metric.statistic {
            Statistic::Percentile(percent) if percent != 50 => {
                f64::from(percent.min(100 - percent)) / 100.0
            }
            _ => 1.0,
        };
        let enough = |side: &Gathered| {
            #[expect(clippy::cast_precision_loss, reason = "values are bounded")]
            let count = side.values.len() as f64;
            count >= f64::from(self.policy.least_samples.max(2)) && count * beyond >= LEAST_BEYOND
        };
        enough(&self.base) && enough(&self.head)
    }

    fn test(&self) -> Option<Test> {
        match self.basis {
            Basis::TooFew => None,
            Basis::Runs => mann_whitney(&self.base.by_run, &self.head.by_run),
            Basis::Values => match self.metric.statistic {
                Statistic::Percentile(percent) if percent != 50 => self.tail_test(),
                _ => mann_whitney(&self.base.plain(), &self.head.plain()),
            },
        }
    }

    /// Tests a tail by the number of values on each side beyond the percentile of both sides together.
    fn tail_test(&self) -> Option<Test> {
        let both: Vec<(f64, f64)> = [&self.base, &self.head]
            .into_iter()
            .flat_map(|side| side.values.iter().map(|(value, _)| (*value, 1.0)))
            .collect();
        let bound = self.metric.statistic.compute(&both)?;
        let beyond = |side: &Gathered| -> Vec<f64> {
            let values = side.values.iter();
            values
                .map(|(value, _)| if *value > bound { 1.0 } else { 0.0 })
                .collect()
        };
        let tails = mann_whitney(&beyond(&self.base), &beyond(&self.head))?;
        Some(tails)
    }

    fn row(&self, test: Option<Test>, p: Option<f64>, significance: f64) -> Row {
        let verdict = self.verdict(test, p.is_some_and(|p| p <= significance));
        let (counted, base_count, head_count) =
            if self.basis == Basis::Runs || self.metric.quantity.is_of_run() {
                let runs = |side: &Gathered| side.by_run.len() as u64;
                (Counted::Runs, runs(&self.base), runs(&self.head))
            } else {
                (Counted::Values, self.base.count, self.head.count)
            };
        Row {
            of: self.of.clone(),
            metric: self.metric,
            base: self.base.whole,
            head: self.head.whole,
            counted,
            base_count,
            head_count,
            p,
            delta: test.map(|test| test.delta),
            limit: self.policy.limit,
            verdict,
            gate: match verdict {
                Verdict::Regressed => self.policy.on_regression,
                Verdict::OverBudget => self.policy.on_budget,
                _ => Gate::Pass,
            },
        }
    }

    fn verdict(&self, test: Option<Test>, is_significant: bool) -> Verdict {
        let over = |head: f64| match self.policy.limit {
            Some(Limit::AtMost(most)) => head > most,
            Some(Limit::AtLeast(least)) => head < least,
            None => false,
        };
        let (base, head) = match (self.base.whole, self.head.whole) {
            (_, Some(head)) if over(head) => return Verdict::OverBudget,
            (None, _) => return Verdict::New,
            (_, None) => return Verdict::Gone,
            (Some(base), Some(head)) => (base, head),
        };
        let Some(test) = test else {
            return Verdict::NotEnoughSamples;
        };
        // If the shape of the distribution changed, the test and the number may point in different directions.
        let agree = |shift: f64| shift * test.delta > 0.0;
        match self.effect(base, head) {
            Some(shift) if is_significant && agree(shift) => {
                if (shift > 0.0) == self.metric.nature().more_is_worse {
                    Verdict::Regressed
                } else {
                    Verdict::Improved
                }
            }
            _ => Verdict::Unchanged,
        }
    }

    /// Returns the change if it exceeds the tolerance, both overall and in the median of the runs.
    fn effect(&self, base: f64, head: f64) -> Option<f64> {
        let shift = self.beyond_tolerance(base, head)?;
        if self.base.by_run.len() < 2 || self.head.by_run.len() < 2 {
            return Some(shift);
        }
        let (base, head) = (self.base.median_of_runs()?, self.head.median_of_runs()?);
        self.beyond_tolerance(base, head)
            .filter(|other| other * shift > 0.0)
            .map(|_| shift)
    }

    /// Relative to the smaller value, so that swapping the sides turns a regression into an improvement.
    fn beyond_tolerance(&self, base: f64, head: f64) -> Option<f64> {
        let shift = head - base;
        let relative = base.abs().min(head.abs()) * self.policy.allow_percent / 100.0;
        let beyond = shift.abs() > relative && shift.abs() > self.policy.allow;
        beyond.then_some(shift)
    }
}
