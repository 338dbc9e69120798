//! Performance budgets: a TOML file in the app's repository with limits, allowed changes, and the outcomes that fail the gate.

use serde::{Deserialize, Deserializer, Serialize, de};

use super::metric::{Metric, Statistic, fits, nature, quantity};
use crate::test_run::{Measurable, Quantity};

/// Matches any page, span or kind of start.
const ANY: &str = "*";

/// A budget file. The default applies if there is no file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budgets {
    pub(super) defaults: Defaults,
    #[serde(rename = "budget")]
    pub(super) budgets: Vec<Budget>,
}

/// What an outcome means for the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// The exit code is 1.
    Fail,
    /// The report shows a warning; the exit code is 0.
    Warn,
    #[default]
    Pass,
}

/// Settings that apply to all metrics.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Defaults {
    /// The probability of one or more false findings in a report on two equal sides.
    #[serde(deserialize_with = "chance")]
    pub(super) significance: f64,
    /// Minimum number of values per side.
    pub(super) least_samples: u32,
    /// Minimum number of runs per side to compare runs instead of single values.
    pub(super) least_runs: u32,
    #[serde(deserialize_with = "amount")]
    pub(super) allow_percent: f64,
    pub(super) on_regression: Gate,
    pub(super) on_budget: Gate,
    /// When the head did not measure a metric that has a budget.
    pub(super) on_missing: Gate,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            significance: 0.01,
            least_samples: 20,
            least_runs: 5,
            allow_percent: 10.0,
            on_regression: Gate::Fail,
            on_budget: Gate::Fail,
            on_missing: Gate::Warn,
        }
    }
}

/// The budget of one metric.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "BudgetTable")]
pub(super) struct Budget {
    pub(super) of: Measurable,
    quantity: Quantity,
    statistic: Option<Statistic>,
    limit: Option<Limit>,
    allow_percent: Option<f64>,
    allow: Option<f64>,
    least_samples: Option<u32>,
    gate: Option<Gate>,
}

/// An absolute bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// A budget as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetTable {
    page: Option<String>,
    span: Option<String>,
    start: Option<String>,
    run: Option<bool>,
    #[serde(deserialize_with = "quantity")]
    metric: Quantity,
    statistic: Option<Statistic>,
    #[serde(default, deserialize_with = "optional_amount")]
    at_most: Option<f64>,
    #[serde(default, deserialize_with = "optional_amount")]
    at_least: Option<f64>,
    #[serde(default, deserialize_with = "optional_amount")]
    allow_percent: Option<f64>,
    #[serde(default, deserialize_with = "optional_amount")]
    allow: Option<f64>,
    least_samples: Option<u32>,
    gate: Option<Gate>,
}

impl TryFrom<BudgetTable> for Budget {
    type Error = String;

    fn try_from(written: BudgetTable) -> Result<Self, String> {
        let run = written.run.filter(|run| *run).map(|_| Measurable::Run);
        let named = [
            written.page.map(Measurable::Page),
            written.span.map(Measurable::Span),
            written.start.map(Measurable::Start),
            run,
        ];
        let mut named = named.into_iter().flatten();
        let (Some(of), None) = (named.next(), named.next()) else {
            return Err("a budget needs exactly one of `page`, `span` or `start` with a name or \"*\", or `run = true`".to_owned());
        };
        let name = nature(written.metric).name;
        if !fits(written.metric, &of) {
            return Err(format!(
                "`{name}` does not apply here: spans have `duration_ms`, starts `start_ms`, runs `traffic_bytes`, and pages all other metrics"
            ));
        }
        let limit = match (written.at_most, written.at_least) {
            (Some(_), Some(_)) => {
                return Err("a budget can set `at_most` or `at_least`, not both".to_owned());
            }
            (Some(most), None) => Some(Limit::AtMost(most)),
            (None, least) => least.map(Limit::AtLeast),
        };
        if written.metric.is_of_run() && matches!(written.statistic, Some(Statistic::Percentile(_)))
        {
            return Err(format!(
                "`{name}` has one value per run, so it has no percentiles"
            ));
        }
        Ok(Self {
            of,
            quantity: written.metric,
            statistic: written.statistic,
            limit,
            allow_percent: written.allow_percent,
            allow: written.allow,
            least_samples: written.least_samples,
            gate: written.gate,
        })
    }
}

/// The effective settings for one metric.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) limit: Option<Limit>,
    pub(super) allow_percent: f64,
    pub(super) allow: f64,
    pub(super) least_samples: u32,
    pub(super) on_regression: Gate,
    pub(super) on_budget: Gate,
}

impl Budgets {
    /// Reads a budget file.
    ///
    /// # Errors
    /// Returns an error with the line of an unknown key or invalid value.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns the statistics to compare for a quantity: the usual ones, and those that a budget names.
    pub(super) fn statistics(&self, of: &Measurable, quantity: Quantity) -> Vec<Statistic> {
        let mut all = nature(quantity).usual.to_vec();
        for budget in &self.budgets {
            if budget.is_of(of, quantity) {
                all.extend(budget.statistic);
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the effective settings of a metric. Later budgets override earlier ones.
    pub(super) fn policy(&self, of: &Measurable, metric: Metric) -> Policy {
        let defaults = &self.defaults;
        let mut policy = Policy {
            limit: None,
            allow_percent: defaults.allow_percent,
            allow: metric.nature().least_change,
            least_samples: defaults.least_samples,
            on_regression: defaults.on_regression,
            on_budget: defaults.on_budget,
        };
        let matches_metric = |budget: &&Budget| {
            budget.is_of(of, metric.quantity)
                && budget
                    .statistic
                    .is_none_or(|statistic| statistic == metric.statistic)
        };
        for budget in self.budgets.iter().filter(matches_metric) {
            policy.limit = budget.limit.or(policy.limit);
            policy.allow_percent = budget.allow_percent.unwrap_or(policy.allow_percent);
            policy.allow = budget.allow.unwrap_or(policy.allow);
            policy.least_samples = budget.least_samples.unwrap_or(policy.least_samples);
            if let Some(gate) = budget.gate {
                (policy.on_regression, policy.on_budget) = (gate, gate);
            }
        }
        policy
    }

    /// Returns the budgets with a limit for named things that were not measured, as text.
    pub(super) fn missing(
        &self,
        is_measured: impl Fn(&Measurable, Quantity) -> bool,
    ) -> Vec<String> {
        let limited = self.budgets.iter().filter(|one| one.limit.is_some());
        let named = limited.filter(|one| name_of(&one.of) != Some(ANY));
        named
            .filter(|one| !is_measured(&one.of, one.quantity))
            .map(|one| {
                let metric = nature(one.quantity).name;
                format!("{metric} of {}", name_of(&one.of).unwrap_or("the run"))
            })
            .collect()
    }
}

impl Budget {
    fn is_of(&self, of: &Measurable, quantity: Quantity) -> bool {
        let same_kind = std::mem::discriminant(&self.of) == std::mem::discriminant(of);
        self.quantity == quantity && same_kind && (name_of(&self.of) == Some(ANY) || self.of == *of)
    }
}

fn name_of(of: &Measurable) -> Option<&str> {
    match of {
        Measurable::Page(name) | Measurable::Span(name) | Measurable::Start(name) => Some(name),
        Measurable::Run => None,
    }
}

/// Accepts whole numbers as well.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(i32),
    Fraction(f64),
}

fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = match Number::deserialize(from) {
        Ok(Number::Whole(whole)) => f64::from(whole),
        Ok(Number::Fraction(fraction)) => fraction,
        Err(_) => return Err(de::Error::custom("expected a number of 0 or more")),
    };
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(de::Error::custom(format!(
        "expected a number of 0 or more, not {value}"
    )))
}

fn optional_amount<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    amount(from).map(Some)
}

fn chance<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    Err(de::Error::custom(format!(
        "`significance` must be between 0 and 1, such as 0.01, not {value}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Budgets::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_invalid_budget_file_is_rejected_with_the_line() {
        let budget = "[[budget]]\npage = \"Cart\"\nmetric = \"t3_ms\"\n";
        for (text, line, says) in [
            (
                "[defaults]\nallow_pct = 5\n",
                2,
                "unknown field `allow_pct`",
            ),
            ("[defaults]\nsignificance = 5.0\n", 2, "between 0 and 1"),
            (
                "[defaults]\non_budget = \"explode\"\n",
                2,
                "unknown variant",
            ),
            (
                &format!("{budget}at_mots = 8\n"),
                1,
                "unknown field `at_mots`",
            ),
            (&format!("{budget}at_most = -1\n"), 1, "0 or more"),
            (
                &format!("{budget}at_most = 1\nat_least = 1\n"),
                1,
                "not both",
            ),
            (&format!("{budget}span = \"pay\"\n"), 1, "exactly one"),
            (
                &format!("{budget}statistic = \"p100\"\n"),
                1,
                "`p1` to `p99`",
            ),
            (
                "[[budget]]\npage = \"*\"\nmetric = \"duration_ms\"\n",
                1,
                "spans have",
            ),
            (
                "[[budget]]\npage = \"*\"\nmetric = \"speed\"\n",
                1,
                "one of fps,",
            ),
            ("[[budget]]\nmetric = \"fps\"\n", 1, "exactly one"),
        ] {
            let error = refused(text);
            assert!(error.contains(says), "{text}\n{error}");
            let least = format!("line {line}");
            let named = (line..9).any(|line| error.contains(&format!("line {line},")));
            assert!(named, "{error} names neither {least} nor a later line");
        }
    }

    #[test]
    fn later_budgets_refine_earlier_ones() {
        let budgets = Budgets::parse(
            r#"
            [defaults]
            allow_percent = 5
            [[budget]]
            page = "*"
            metric = "t3_ms"
            allow = 50
            gate = "warn"
            [[budget]]
            page = "Cart"
            metric = "t3_ms"
            statistic = "p75"
            at_most = 800
            gate = "fail"
            "#,
        )
        .unwrap();
        let metric = |percent| Metric {
            quantity: Quantity::T3Ms,
            statistic: Statistic::Percentile(percent),
        };
        let cart = Measurable::Page("Cart".to_owned());
        let p75 = budgets.policy(&cart, metric(75));
        assert_eq!(
            (p75.limit, p75.allow, p75.allow_percent, p75.on_budget),
            (Some(Limit::AtMost(800.0)), 50.0, 5.0, Gate::Fail)
        );
        let median = budgets.policy(&cart, metric(50));
        assert_eq!((median.limit, median.on_regression), (None, Gate::Warn));
        assert_eq!(
            budgets.statistics(&cart, Quantity::T3Ms),
            [Statistic::Percentile(50), Statistic::Percentile(75)]
        );
        assert_eq!(budgets.missing(|_, _| false), ["t3_ms of Cart"]);
    }
}
