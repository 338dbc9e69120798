//! The evidence of an incident: a one-line summary and the full record.

use form_urlencoded::Serializer;
use serde::Serialize;
use utoipa::ToSchema;

use crate::alerts::judge::contributors::Moved;
use crate::alerts::judge::verdict::{Group, Numbers, Sides, Verdict};
use crate::alerts::judge::{Case, samples_of};
use crate::alerts::rule::{Condition, Metric, Rule};
use crate::clock::UnixTime;
use crate::store::reads::{Unit, subject};

/// Why an incident was opened.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AlertEvidence)]
pub struct Evidence {
    pub metric: Metric,
    pub condition: Condition,
    pub window_minutes: u32,
    /// The unit of `value`, `base` and `change`: `us`, `ms`, `bytes`, `share`, …
    pub unit: &'static str,
    pub group: Group,
    pub numbers: Numbers,
    pub sides: Sides,
    /// Path and query of the API request that returns `value`.
    pub question: String,
    /// The values that changed most, by dimension.
    pub moved: Vec<Moved>,
}

/// Returns the evidence of a verdict, with `moved` still empty.
pub(in crate::alerts) fn evidence(case: &Case<'_>, verdict: &Verdict) -> Evidence {
    let rule = case.rule;
    Evidence {
        metric: rule.metric.clone(),
        condition: rule.condition.clone(),
        window_minutes: rule.window_minutes,
        unit: unit(&rule.metric, &verdict.group).as_str(),
        group: verdict.group.clone(),
        numbers: verdict.numbers.clone(),
        sides: verdict.sides.clone(),
        question: question(case.project, rule, verdict),
        moved: Vec::new(),
    }
}

/// Summarizes a verdict in one line.
pub(in crate::alerts) fn summary(rule: &Rule, verdict: &Verdict) -> String {
    let unit = unit(&rule.metric, &verdict.group);
    let (numbers, sides) = (&verdict.numbers, &verdict.sides);
    let format_value =
        |value: Option<f64>| value.map_or_else(|| "no value".to_owned(), |it| shown(it, unit));
    let signal = match metric_name(&rule.metric, &verdict.group) {
        Some(name) => without_unit(name).replace('_', " "),
        None => rule.metric.signal.replace('_', " "),
    };
    let what = measure_of(&rule.metric.measure, &signal);
    let of = of_group(&verdict.group);
    let samples = numbers.samples;
    match &rule.condition {
        Condition::Threshold { above, .. } => {
            let beyond = if above.is_some() { "above" } else { "below" };
            let (value, bound) = (format_value(numbers.value), format_value(numbers.bound));
            format!("{what}{of}: {value}, {beyond} {bound} ({samples:.0} samples)")
        }
        Condition::Absence {} => {
            let minutes = rule.window_minutes;
            format!("no {signal}{of} arrived for {minutes} minutes")
        }
        Condition::Appearance { unseen_days } => {
            format!("new {signal}{of}: {samples:.0} samples, none in the {unseen_days} days before")
        }
        Condition::Regression { .. } | Condition::LastWeek { .. } => {
            let (value, base) = (format_value(numbers.value), format_value(numbers.base));
            let percent = numbers.relative.unwrap_or_default() * 100.0;
            let (now, before) = match (&sides.version, &sides.base_version) {
                (Some(version), Some(base)) => (format!(" in {version}"), format!("in {base}")),
                _ => (String::new(), "a week earlier".to_owned()),
            };
            // Said only where the mix of devices hides or causes much of the change.
            let like_devices = numbers.standardised.map(|part| part * 100.0);
            let like_devices = like_devices
                .filter(|part| (part - percent).abs() > 5.0)
                .map(|part| format!(", {part:+.1} % between like devices"))
                .unwrap_or_default();
            format!("{what}{of}: {value}{now}, {base} {before} ({percent:+.1} %{like_devices})")
        }
    }
}

/// Returns a measure of a signal in words, such as `p75 of spans`.
fn measure_of(measure: &str, signal: &str) -> String {
    match without_unit(measure) {
        "count" => format!("number of {signal}"),
        measure => format!("{} of {signal}", measure.replace('_', " ")),
    }
}

fn of_group(group: &Group) -> String {
    if group.is_empty() {
        return String::new();
    }
    // The title names the group of janks better than its number.
    let is_named = |name: &str| name == "group_id" && group.contains_key("title");
    let values: Vec<_> = group
        .iter()
        .filter(|(name, _)| !is_named(name))
        .map(|(name, value)| match name.as_str() {
            "name" | "title" | "page" => value.clone(),
            _ => format!("{} {value}", name.replace('_', " ")),
        })
        .collect();
    format!(" for {}", values.join(", "))
}

fn unit(metric: &Metric, group: &Group) -> Unit {
    let unit = subject(&metric.signal)
        .and_then(|subject| subject.measure(&metric.measure))
        .map_or(Unit::Value, |measure| measure.unit);
    let name = metric_name(metric, group).unwrap_or_default();
    let of_name = UNITS.iter().find(|(ending, _)| name.ends_with(ending));
    match (unit, of_name) {
        (Unit::Value, Some((_, of_name))) => *of_name,
        _ => unit,
    }
}

/// Names of metrics and measures end with their unit.
const UNITS: [(&str, Unit); 3] = [
    ("_us", Unit::Microseconds),
    ("_ms", Unit::Milliseconds),
    ("_bytes", Unit::Bytes),
];

fn without_unit(name: &str) -> &str {
    let stripped = UNITS.iter().find_map(|(unit, _)| name.strip_suffix(unit));
    stripped.unwrap_or(name)
}

/// Returns the name of the metric that a rule about metrics watches, if the rule watches one name.
fn metric_name<'m>(metric: &'m Metric, group: &'m Group) -> Option<&'m str> {
    if metric.signal != "metrics" {
        return None;
    }
    let filtered = metric
        .filters
        .iter()
        .find(|(dimension, _)| *dimension == "name");
    match (group.get("name"), filtered.map(|(_, values)| &values[..])) {
        (Some(name), _) | (None, Some([name])) => Some(name.as_str()),
        _ => None,
    }
}

/// Formats a number with its unit.
fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Microseconds if value.abs() >= 1_000_000.0 => format!("{:.2} s", value / 1e6),
        Unit::Microseconds => format!("{:.1} ms", value / 1e3),
        Unit::Milliseconds if value.abs() >= 10_000.0 => format!("{:.1} s", value / 1e3),
        Unit::Milliseconds => format!("{value:.1} ms"),
        // Decimal, as the web interface shows bytes.
        Unit::Bytes if value.abs() >= 1e6 => format!("{:.1} MB", value / 1e6),
        Unit::Bytes => format!("{:.1} kB", value / 1e3),
        Unit::Share => format!("{:.2} %", value * 100.0),
        Unit::PerSecond => format!("{value:.1}/s"),
        Unit::PerMinute => format!("{value:.1}/min"),
        Unit::Count => format!("{value:.0}"),
        Unit::Value => format!("{value:.2}"),
    }
}

/// Returns the API request for the numbers of the group alone.
fn question(project: &str, rule: &Rule, verdict: &Verdict) -> String {
    let (metric, sides) = (&rule.metric, &verdict.sides);
    let mut query = Serializer::new(String::new());
    let mut time = |name: &str, time: UnixTime| {
        query.append_pair(name, &time.to_string());
    };
    time("from", sides.from);
    time("to", sides.to);
    if sides.base_version.is_none() {
        sides
            .base_from
            .iter()
            .for_each(|from| time("base_from", *from));
        sides.base_to.iter().for_each(|to| time("base_to", *to));
    }
    query.append_pair("measure", &metric.measure);
    query.append_pair("measure", samples_of(&metric.signal));
    query.append_pair("exact", "true");
    if matches!(rule.condition, Condition::Absence {}) {
        query.append_pair("received", "true");
    }
    for (name, values) in &metric.filters {
        if !verdict.group.contains_key(name) {
            for value in values {
                query.append_pair(name, value);
            }
        }
    }
    for (name, value) in &verdict.group {
        query.append_pair(name, value);
    }
    if let Some(version) = &sides.version {
        query.append_pair("app_version", version);
    }
    if let Some(version) = &sides.base_version {
        query.append_pair("base_app_version", version);
    }
    format!(
        "/api/v1/projects/{project}/query/{}?{}",
        metric.signal,
        query.finish()
    )
}
