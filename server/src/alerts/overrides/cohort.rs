//! The devices of an incident, as a condition of the remote configuration.

use std::collections::BTreeMap;

use unjank_remote_config::{Condition, exact_requirement};

use crate::alerts::rule::Metric;

/// The dimensions that devices report when they poll. Pages and names are not among them.
const OF_DEVICES: [&str; 6] = [
    "app_id",
    "app_version",
    "os_name",
    "os_version",
    "device_model",
    "device_class",
];

/// Returns the condition for an incident with these labels. Filters of its rule count too if they name whole values.
///
/// # Errors
/// If a condition cannot express a value. The cohort is not widened instead.
pub(crate) fn cohort(
    labels: &BTreeMap<String, String>,
    metric: &Metric,
) -> Result<Condition, String> {
    let mut parts = Vec::new();
    for name in OF_DEVICES {
        let label = labels.get(name).map(std::slice::from_ref);
        let filter = metric.filters.get(name).map(Vec::as_slice);
        let Some(values) = label.or(filter) else {
            continue;
        };
        if values.iter().any(String::is_empty) {
            return Err(format!("no condition matches devices without `{name}`"));
        }
        parts.push(condition(name, values)?);
    }
    Ok(Condition::All(parts))
}

/// Returns the names of the incident's spans. Empty if its rule does not watch spans by name.
pub(crate) fn span_names(labels: &BTreeMap<String, String>, metric: &Metric) -> Vec<String> {
    if metric.signal != "spans" {
        return Vec::new();
    }
    let label = labels
        .get("name")
        .filter(|_| metric.by.iter().any(|name| name == "name"));
    match label {
        Some(name) => vec![name.clone()],
        None => metric.filters.get("name").cloned().unwrap_or_default(),
    }
}

fn condition(name: &str, values: &[String]) -> Result<Condition, String> {
    let all = values.to_vec();
    Ok(match name {
        "app_id" => Condition::AppId(all),
        "os_name" => Condition::OsName(all),
        "device_class" => Condition::DeviceClass(all),
        "device_model" => Condition::DeviceModel(all),
        "app_version" => any_version(values, Condition::AppVersion)?,
        _ => any_version(values, Condition::OsVersion)?,
    })
}

fn any_version(values: &[String], of: fn(String) -> Condition) -> Result<Condition, String> {
    let versions: Result<Vec<_>, _> = values.iter().map(|value| exactly(value).map(of)).collect();
    let mut versions = versions?;
    match versions.pop() {
        Some(only) if versions.is_empty() => Ok(only),
        last => Ok(Condition::Any(versions.into_iter().chain(last).collect())),
    }
}

fn exactly(version: &str) -> Result<String, String> {
    exact_requirement(version).ok_or_else(|| {
        format!("`{version}` is not a version number, so no condition matches it alone")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cohort_json(
        labels: serde_json::Value,
        filters: &serde_json::Value,
    ) -> Result<serde_json::Value, String> {
        let labels = serde_json::from_value(labels).unwrap();
        let metric =
            json!({"signal": "spans", "measure": "p95_us", "by": ["name"], "filters": filters});
        let metric = serde_json::from_value(metric).unwrap();
        cohort(&labels, &metric).map(|condition| serde_json::to_value(condition).unwrap())
    }

    #[test]
    fn only_labels_and_filters_of_devices_become_conditions() {
        let labels = json!({"alertname": "x", "name": "checkout", "page": "Cart", "app_version": "4.12", "os_name": "android"});
        let filters =
            json!({"app_id": ["a", "b"], "os_name": ["ios"], "contains.os_version": ["1"]});
        assert_eq!(
            cohort_json(labels, &filters).unwrap(),
            json!({"all": [{"app_id": ["a", "b"]}, {"app_version": "=4.12.0.0"}, {"os_name": ["android"]}]})
        );
    }

    #[test]
    fn several_versions_match_any_of_them_and_a_non_version_is_refused() {
        let two = cohort_json(json!({}), &json!({"os_version": ["17", "v18.1-beta.2+7"]})).unwrap();
        assert_eq!(
            two,
            json!({"all": [{"any": [{"os_version": "=17.0.0.0"}, {"os_version": "=18.1.0.0-beta.2+7"}]}]})
        );
        assert!(cohort_json(json!({"app_version": "nightly"}), &json!({})).is_err());
        assert!(cohort_json(json!({"device_class": ""}), &json!({})).is_err());
    }
}
