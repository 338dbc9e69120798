//! Templates of alert rules. Each is an ordinary rule, whose metric and bounds users adjust.

use serde_json::{Value, json};

use crate::alerts::rule::Rule;

/// Returns the rules that most projects need.
#[must_use]
pub fn templates() -> Vec<Rule> {
    let rules = written().into_iter();
    rules
        .filter_map(|rule| Rule::from_value(rule).ok())
        .collect()
}

fn written() -> Vec<Value> {
    let regression = |relative: f64, absolute: f64| json!({"kind": "regression", "compare": "same_days", "effect": {"least_relative": relative, "least_absolute": absolute}});
    vec![
        // No `for_minutes`: a change is only significant once there are enough samples.
        json!({
            "name": "A span got slower (p75)", "severity": "warning",
            "metric": {"signal": "spans", "measure": "p75_us", "by": ["name"]},
            "window_minutes": 1440, "least_samples": 200, "for_minutes": 0, "condition": regression(0.05, 5_000.0),
        }),
        json!({
            "name": "A span got slower (p95)", "severity": "warning",
            "metric": {"signal": "spans", "measure": "p95_us", "by": ["name"]},
            "window_minutes": 1440, "least_samples": 200, "for_minutes": 10, "condition": regression(0.2, 10_000.0),
        }),
        json!({
            "name": "A page janks more", "severity": "warning",
            "metric": {"signal": "frame_windows", "measure": "jank_share", "by": ["page"]},
            "window_minutes": 1440, "least_samples": 200, "for_minutes": 10, "condition": regression(0.2, 0.005),
        }),
        json!({
            "name": "Frozen frames", "severity": "critical",
            "metric": {"signal": "frame_windows", "measure": "frozen_share", "by": ["app_id"]},
            "window_minutes": 60, "least_samples": 200, "for_minutes": 10,
            "condition": {"kind": "threshold", "above": 0.005, "recover": 0.003},
        }),
        json!({
            "name": "Pages draw later once their data is there (T3 p75)", "severity": "warning",
            "metric": {"signal": "page_loads", "measure": "t3_p75_ms", "by": ["page"]},
            "window_minutes": 1440, "least_samples": 200, "for_minutes": 10, "condition": regression(0.2, 50.0),
        }),
        json!({
            "name": "Cold starts got slower (p75)", "severity": "critical",
            "metric": {"signal": "app_starts", "measure": "p75_ms", "filters": {"kind": ["cold"]}},
            "window_minutes": 1440, "least_samples": 200, "for_minutes": 10, "condition": regression(0.1, 100.0),
        }),
        json!({
            "name": "More traffic per install than last week", "severity": "warning",
            "metric": {"signal": "traffic", "measure": "bytes_per_install", "by": ["source"]},
            "window_minutes": 1440, "least_samples": 100, "for_minutes": 0,
            "condition": {"kind": "last_week", "effect": {"least_relative": 0.3, "least_absolute": 102_400.0}},
        }),
        json!({
            "name": "Memory after an hour of use (p95)", "severity": "warning",
            "metric": {"signal": "metrics", "measure": "p95", "filters": {"name": ["memory_used_bytes"], "uptime": ["over_1h"]}},
            "window_minutes": 1440, "least_samples": 200, "for_minutes": 10,
            "condition": {"kind": "regression", "effect": {"worse": "up", "least_relative": 0.2}},
        }),
        json!({
            "name": "Devices lose events", "severity": "warning",
            "metric": {"signal": "sdk_drops", "measure": "count", "by": ["reason"]},
            "window_minutes": 1440, "least_samples": 100, "for_minutes": 0,
            "condition": {"kind": "last_week", "effect": {"least_relative": 1.0, "least_absolute": 1000.0}},
        }),
        json!({
            "name": "Nothing arrives", "severity": "critical",
            "metric": {"signal": "usage", "measure": "count", "by": ["app_id"]},
            "window_minutes": 30, "for_minutes": 10, "condition": {"kind": "absence"},
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_a_valid_rule() {
        for rule in written() {
            let read = Rule::from_value(rule.clone());
            assert!(read.is_ok(), "{rule}: {read:?}");
        }
        assert_eq!(templates().len(), written().len());
    }
}
