//! The evidence of an incident: a one-line summary and the full record.

use form_urlencoded::Serializer;
use serde::Serialize;
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use crate::alerts::judge::contributors::Moved;
use crate::alerts::judge::verdict::{Group, Numbers, Sides, Verdict};
use crate::alerts::judge::{Case, samples_of};
use crate::alerts::rule::{Condition, Metric, Rule};
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
pub(crate) fn evidence(case: &Case<'_>, verdict: &Verdict) -> Evidence {
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

/// Summarizes a verdict in one sentence, such as `p95 of checkout rose from 684 ms in 4.11.0 to 1.88 s in 4.12.0 (+180 %)`.
pub(crate) fn summary(rule: &Rule, verdict: &Verdict) -> String {
    let unit = unit(&rule.metric, &verdict.group);
    let (numbers, sides) = (&verdict.numbers, &verdict.sides);
    let format_value =
        |value: Option<f64>| value.map_or_else(|| "no value".to_owned(), |it| shown(it, unit));
    let watched = watched(&rule.metric, &verdict.group);
    let events = events(&rule.metric, &verdict.group);
    let text = match &rule.condition {
        Condition::Threshold { above, .. } => {
            let beyond = if above.is_some() { "above" } else { "below" };
            let (value, bound) = (format_value(numbers.value), format_value(numbers.bound));
            format!("{watched} is {value}, {beyond} the threshold of {bound}")
        }
        Condition::Absence {} => {
            let minutes = rule.window_minutes;
            format!("no {events} arrived for {minutes} minutes")
        }
        Condition::Appearance { unseen_days } => {
            let samples = numbers.samples;
            format!("new: {events}, {samples:.0} times, never in the {unseen_days} days before")
        }
        Condition::Regression { .. } | Condition::LastWeek { .. } => {
            let (value, base) = (format_value(numbers.value), format_value(numbers.base));
            let part = numbers.relative.unwrap_or_default();
            let verb = if part < 0.0 { "fell" } else { "rose" };
            let (now, before) = match (&sides.version, &sides.base_version) {
                (Some(version), Some(base)) => (format!(" in {version}"), format!("in {base}")),
                _ => (String::new(), "a week earlier".to_owned()),
            };
            let like_devices = numbers
                .standardised
                .filter(|like| differs(*like, part))
                .map(|like| format!("; between like devices {}", percent(like)))
                .unwrap_or_default();
            let change = percent(part);
            format!(
                "{watched} {verb} from {base} {before} to {value}{now} ({change}{like_devices})"
            )
        }
    };
    // Rows of earlier versions may have a NUL, which PostgreSQL cannot store.
    capitalized(text.replace('\0', "\u{fffd}"))
}

/// Returns a change with its sign and two digits, like the screens: `+190 %`, `-3.1 %`.
fn percent(part: f64) -> String {
    let percent = part * 100.0;
    let size = percent.abs().max(0.01).log10().floor();
    let step = 10_f64.powf(size - 1.0);
    let decimals = if size >= 1.0 {
        0
    } else if size >= 0.0 {
        1
    } else {
        2
    };
    format!("{:+.decimals$} %", (percent / step).round() * step)
}

/// Whether the mix of devices hides or causes much of a change.
fn differs(like_devices: f64, all: f64) -> bool {
    (like_devices - all).abs() > f64::max(0.05, all.abs() / 4.0)
}

/// Percentiles stay lowercase.
fn capitalized(text: String) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if !second.is_ascii_digit() => {
            first.to_uppercase().chain([second]).chain(chars).collect()
        }
        _ => text,
    }
}

/// Measures of frames and sessions, whose names do not fit into a sentence.
const MEASURES: [(&str, &str); 6] = [
    ("slow_share", "share of slow frames"),
    ("frozen_share", "share of frozen frames"),
    ("dropped_share", "share of dropped frames"),
    ("jank_share", "share of time in jank"),
    ("anr_share", "share of sessions with an ANR"),
    ("anr_sessions", "number of sessions with an ANR"),
];

/// Signals whose names are not the word for their events.
const EVENTS: [(&str, &str); 3] = [
    ("frame_windows", "frames"),
    ("usage", "batches"),
    ("outcomes", "received events"),
];

fn word_for<'a>(words: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let found = words.iter().find(|(known, _)| *known == name);
    found.map(|(_, word)| *word)
}

/// Returns the watched number in words, such as `p75 of checkout on Cart`.
fn watched(metric: &Metric, group: &Group) -> String {
    let is_named = ["frame_windows", "sessions"].contains(&metric.signal.as_str());
    if is_named && let Some(words) = word_for(&MEASURES, &metric.measure) {
        return format!("{words}{}", places(group));
    }
    let events = events(metric, group);
    match without_unit(&metric.measure) {
        "count" => format!("number of {events}"),
        measure => format!("{} of {events}", measure.replace('_', " ")),
    }
}

/// Returns the watched events in words, such as `checkout on Cart` or `frames in 4.12.0`.
fn events(metric: &Metric, group: &Group) -> String {
    let name = match metric_name(metric, group) {
        Some(name) => Some(without_unit(name).replace('_', " ")),
        None => group.get("title").or_else(|| group.get("name")).cloned(),
    };
    let noun = || match word_for(&EVENTS, &metric.signal) {
        Some(noun) => noun.to_owned(),
        None => metric.signal.replace('_', " "),
    };
    format!("{}{}", name.unwrap_or_else(noun), places(group))
}

fn places(group: &Group) -> String {
    // The title names the group of janks better than its number.
    let is_named = |name: &str| {
        matches!(name, "name" | "title") || (name == "group_id" && group.contains_key("title"))
    };
    let values = group.iter().filter(|(name, _)| !is_named(name));
    let values = values.map(|(name, value)| match name.as_str() {
        "page" => format!(" on {value}"),
        "app_id" | "app_version" => format!(" in {value}"),
        _ => format!(" with {} {value}", name.replace('_', " ")),
    });
    values.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_two_digits_like_on_the_screens() {
        let shown = [1.86, 0.144, -0.0311, 0.0054, 12.34, 0.0].map(percent);
        assert_eq!(
            shown,
            ["+190 %", "+14 %", "-3.1 %", "+0.54 %", "+1200 %", "+0.00 %"]
        );
    }
}
