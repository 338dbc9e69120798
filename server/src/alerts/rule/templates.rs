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

/// The window of comparisons between versions, in minutes: a week. Rare operations have enough samples in it, and all weekdays are
/// on both sides. A new version does not wait for the end of the window, which begins with its first batch.
const WEEK: u32 = 7 * 1_440;

fn written() -> Vec<Value> {
    [versions(), stalls(), traffic()].concat()
}

/// Comparisons with the previous version.
fn versions() -> Vec<Value> {
    // Versions are compared at the same age, because a week after a release few devices still have the previous version.
    let regression = |relative: f64, absolute: f64| json!({"kind": "regression", "compare": "same_age", "effect": {"least_relative": relative, "least_absolute": absolute}});
    vec![
        // No `for_minutes`: a change is only significant once there are enough samples.
        json!({
            "name": "A span got slower (p75)", "severity": "warning",
            "metric": {"signal": "spans", "measure": "p75_us", "by": ["name"]},
            "window_minutes": WEEK, "least_samples": 100, "for_minutes": 0, "condition": regression(0.05, 5_000.0),
        }),
        json!({
            "name": "A span got slower (p95)", "severity": "warning",
            "metric": {"signal": "spans", "measure": "p95_us", "by": ["name"]},
            "window_minutes": WEEK, "least_samples": 100, "for_minutes": 10, "condition": regression(0.2, 10_000.0),
        }),
        json!({
            "name": "More janks on a page", "severity": "warning",
            "metric": {"signal": "frame_windows", "measure": "jank_share", "by": ["page"]},
            "window_minutes": WEEK, "least_samples": 100, "for_minutes": 10, "condition": regression(0.2, 0.005),
        }),
        json!({
            "name": "Pages draw later once their data is there (T3 p75)", "severity": "warning",
            "metric": {"signal": "page_loads", "measure": "t3_p75_ms", "by": ["page"]},
            "window_minutes": WEEK, "least_samples": 100, "for_minutes": 10, "condition": regression(0.2, 50.0),
        }),
        json!({
            "name": "Cold starts got slower (p75)", "severity": "critical",
            "metric": {"signal": "app_starts", "measure": "p75_ms", "filters": {"kind": ["cold"]}},
            "window_minutes": WEEK, "least_samples": 100, "for_minutes": 10, "condition": regression(0.1, 100.0),
        }),
        json!({
            "name": "Memory after 15 minutes of use (p75)", "severity": "warning",
            "metric": {
                "signal": "metrics", "measure": "p75", "by": ["page"],
                "filters": {"name": ["memory_used_bytes"], "uptime": ["15m_1h", "over_1h"]},
            },
            "window_minutes": WEEK, "least_samples": 100, "for_minutes": 10,
            "condition": {"kind": "regression", "compare": "same_age", "effect": {"worse": "up", "least_relative": 0.2}},
        }),
    ]
}

/// Stalls of the main thread and frozen frames.
fn stalls() -> Vec<Value> {
    vec![
        json!({
            "name": "Frozen frames", "severity": "critical",
            "metric": {"signal": "frame_windows", "measure": "frozen_share", "by": ["app_id"]},
            "window_minutes": 60, "least_samples": 200, "for_minutes": 10,
            "condition": {"kind": "threshold", "above": 0.005, "recover": 0.003},
        }),
        json!({
            "name": "A higher ANR rate than last week", "severity": "critical",
            "metric": {"signal": "sessions", "measure": "anr_share", "by": ["app_id"]},
            "window_minutes": 1440, "least_samples": 100, "for_minutes": 0,
            "condition": {"kind": "last_week", "effect": {"least_relative": 0.3, "least_absolute": 0.001}},
        }),
        // The number of kills is not divided by use, so the comparison is with the same weekday.
        json!({
            "name": "More apps are killed during a stall than last week", "severity": "critical",
            "metric": {"signal": "janks", "measure": "count", "by": ["app_id"], "filters": {"ended": ["killed"]}},
            "window_minutes": 1440, "least_samples": 5, "for_minutes": 0,
            "condition": {"kind": "last_week", "effect": {"least_relative": 0.3, "least_absolute": 5.0}},
        }),
        json!({
            "name": "A new jank group", "severity": "warning",
            "metric": {"signal": "janks", "measure": "count", "by": ["group_id", "title"], "filters": {"not_a_cause": ["false"]}},
            "window_minutes": 1440, "least_samples": 10, "for_minutes": 0,
            "condition": {"kind": "appearance", "unseen_days": 28},
        }),
        json!({
            "name": "An install stalls unusually often", "severity": "info",
            "metric": {"signal": "janks", "measure": "count", "by": ["install_id"], "filters": {"kind": ["jank", "anr"]}},
            "window_minutes": 1440, "least_samples": 20, "for_minutes": 0,
            "condition": {"kind": "threshold", "above": 200.0, "recover": 100.0},
        }),
    ]
}

/// Traffic, and lost events.
fn traffic() -> Vec<Value> {
    vec![
        json!({
            "name": "More traffic per install than last week", "severity": "warning",
            "metric": {"signal": "traffic", "measure": "bytes_per_install", "by": ["source"]},
            "window_minutes": 1440, "least_samples": 100, "for_minutes": 0,
            "condition": {"kind": "last_week", "effect": {"least_relative": 0.3, "least_absolute": 102_400.0}},
        }),
        json!({
            "name": "An install uses unusually much traffic", "severity": "info",
            "metric": {"signal": "traffic", "measure": "bytes", "by": ["install_id"]},
            "window_minutes": 1440, "least_samples": 1, "for_minutes": 0,
            "condition": {"kind": "threshold", "above": 1e9, "recover": 5e8},
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
