//! What an app allows itself: a TOML file in its repository, with limits, allowed changes, and what fails the gate.

use serde::{Deserialize, Deserializer, Serialize, de};

use super::metric::{Metric, Statistic, fits, nature, quantity};
use crate::test_run::{Measurable, Quantity};

/// Any page, span or kind of start.
const ANY: &str = "*";

/// A budget file. The default is what holds without one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budgets {
    pub(super) defaults: Defaults,
    #[serde(rename = "budget")]
    pub(super) budgets: Vec<Budget>,
}

/// What an outcome means to the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// The exit code is 1.
    Fail,
    /// It is told, and the exit code is 0.
    Warn,
    #[default]
    Pass,
}

/// What holds for everything.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Defaults {
    /// The chance of even one false finding in a report without a change.
    #[serde(deserialize_with = "chance")]
    pub(super) significance: f64,
    /// Values a side.
    pub(super) least_samples: u32,
    /// Runs a side from which runs are compared instead of the values in them.
    pub(super) least_runs: u32,
    #[serde(deserialize_with = "amount")]
    pub(super) allow_percent: f64,
    pub(super) on_regression: Gate,
    pub(super) on_budget: Gate,
    /// A budget names what the head did not measure.
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

/// What one thing is allowed.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
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

/// A budget as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
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

impl TryFrom<Written> for Budget {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let run = written.run.filter(|run| *run).map(|_| Measurable::Run);
        let named = [
            written.page.map(Measurable::Page),
            written.span.map(Measurable::Span),
            written.start.map(Measurable::Start),
            run,
        ];
        let mut named = named.into_iter().flatten();
        let (Some(of), None) = (named.next(), named.next()) else {
            return Err("a budget is of one thing: `page`, `span` or `start` with a name or \"*\", or `run = true`".to_owned());
        };
        let name = nature(written.metric).name;
        if !fits(written.metric, &of) {
            return Err(format!(
                "`{name}` is not measured of that: pages have no durations, spans have `duration_ms`, starts `start_ms`, runs `traffic_bytes`"
            ));
        }
        let limit = match (written.at_most, written.at_least) {
            (Some(_), Some(_)) => {
                return Err("a budget has `at_most` or `at_least`, not both".to_owned());
            }
            (Some(most), None) => Some(Limit::AtMost(most)),
            (None, least) => least.map(Limit::AtLeast),
        };
        if written.metric.is_of_run() && matches!(written.statistic, Some(Statistic::Percentile(_)))
        {
            return Err(format!(
                "`{name}` is one number a run and has no percentiles"
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

/// What holds for one metric of one thing.
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
    /// When a key or a value is not known; the text has the line.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The statistics of a quantity that are looked at: the usual ones, and those a budget names.
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

    /// Of budgets that say different things, the later one holds.
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
        let meant = |budget: &&Budget| {
            budget.is_of(of, metric.quantity)
                && budget
                    .statistic
                    .is_none_or(|statistic| statistic == metric.statistic)
        };
        for budget in self.budgets.iter().filter(meant) {
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

    /// Limits of what is named and was not measured, as they are told.
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

/// Whole numbers are numbers too.
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
        Err(_) => return Err(de::Error::custom("a number, 0 or more")),
    };
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(de::Error::custom(format!(
        "{value} is no number of 0 or more"
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
        "`significance` is between 0 and 1, such as 0.01, not {value}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Budgets::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
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
            (&format!("{budget}span = \"pay\"\n"), 1, "one thing"),
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
            ("[[budget]]\nmetric = \"fps\"\n", 1, "one thing"),
        ] {
            let said = refused(text);
            assert!(said.contains(says), "{text}\n{said}");
            let least = format!("line {line}");
            let named = (line..9).any(|line| said.contains(&format!("line {line},")));
            assert!(named, "{said} does not say {least} or a line of it");
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
