//! The rules to evaluate: the server's templates, and rules that a project with several teams might add.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::server::Server;

/// Fetches the server's templates.
pub(super) async fn templates(server: &Server) -> Result<Vec<Value>> {
    let url = format!(
        "{}/api/v1/projects/default/alert-rules/templates",
        server.url()
    );
    let client = reqwest::Client::builder().no_proxy().build()?;
    let response = client
        .get(url)
        .bearer_auth(server.api_token()?)
        .send()
        .await?;
    let mut answer: Value = response.error_for_status()?.json().await?;
    match answer["templates"].take() {
        Value::Array(templates) if !templates.is_empty() => Ok(templates),
        _ => bail!("the server has no rule templates"),
    }
}

/// Returns the template for the p75 of spans. It compares the versions on the same days, because the fleets of the trials have no data
/// from the first days of the earlier version.
pub(super) fn of_spans(templates: &[Value]) -> Result<Value> {
    let of =
        |one: &&Value| one["metric"]["signal"] == "spans" && one["metric"]["measure"] == "p75_us";
    let rule = templates.iter().find(of).cloned();
    let mut rule = rule.context("the server has no template for the p75 of spans")?;
    rule["condition"]["compare"] = json!("same_days");
    rule["window_minutes"] = json!(1_440);
    Ok(rule)
}

/// Returns the templates and variants of them with other measures, dimensions and thresholds.
pub(super) fn fifty(templates: &[Value]) -> Vec<Value> {
    let mut rules = templates.to_vec();
    let mut regression =
        |signal: &str, measure: &str, by: &[&str], filters: Value, effect: Value| {
            rules.push(json!({
                "name": format!("{signal} {measure} by {by:?} {filters}"),
                "metric": {"signal": signal, "measure": measure, "by": by, "filters": filters},
                "window_minutes": 1440, "least_samples": 200, "for_minutes": 5,
                "condition": {"kind": "regression", "effect": effect},
            }));
        };
    let effect = |relative: f64| json!({"least_relative": relative});
    for name in [
        "checkout",
        "open_feed",
        "search",
        "add_to_cart",
        "profile",
        "pay",
        "settings",
        "share",
    ] {
        regression("spans", "p75_us", &[], json!({"name": [name]}), effect(0.1));
        regression("spans", "p95_us", &[], json!({"name": [name]}), effect(0.2));
    }
    for (measure, by) in [
        ("p75_us", vec![]),
        ("p95_us", vec![]),
        ("p75_us", vec!["device_class"]),
        ("p75_us", vec!["page"]),
        ("p95_us", vec!["name", "os_name"]),
    ] {
        regression("spans", measure, &by, json!({}), effect(0.1));
    }
    regression("spans", "error_share", &["name"], json!({}), effect(0.5));
    for measure in ["t1_p75_ms", "t2_p75_ms", "total_p75_ms", "total_p95_ms"] {
        regression("page_loads", measure, &["page"], json!({}), effect(0.1));
    }
    for (measure, kind) in [("p75_ms", "warm"), ("p95_ms", "cold")] {
        regression(
            "app_starts",
            measure,
            &[],
            json!({"kind": [kind]}),
            effect(0.1),
        );
    }
    for (measure, by) in [
        ("jank_share", vec![]),
        ("slow_share", vec!["page"]),
        ("dropped_share", vec!["device_class"]),
        ("frozen_share", vec!["page"]),
    ] {
        regression("frame_windows", measure, &by, json!({}), effect(0.2));
    }
    regression("janks", "p75_ms", &["page"], json!({}), effect(0.1));
    let mut last_week = |signal: &str, measure: &str, window: u64| {
        rules.push(json!({
            "name": format!("{signal} {measure}, {window} minutes against last week"),
            "metric": {"signal": signal, "measure": measure}, "window_minutes": window, "least_samples": 200, "for_minutes": 0,
            "condition": {"kind": "last_week", "effect": {"worse": "up", "least_relative": 0.2}},
        }));
    };
    last_week("spans", "p75_us", 1440);
    last_week("spans", "p95_us", 60);
    last_week("page_loads", "total_p75_ms", 180);
    last_week("traffic", "bytes", 1440);
    let mut threshold = |signal: &str, measure: &str, above: f64| {
        rules.push(json!({
            "name": format!("{signal} {measure} above {above}"),
            "metric": {"signal": signal, "measure": measure}, "window_minutes": 60, "least_samples": 100, "for_minutes": 10,
            "condition": {"kind": "threshold", "above": above},
        }));
    };
    threshold("spans", "error_share", 0.05);
    threshold("spans", "p95_us", 1_500_000.0);
    threshold("page_loads", "total_p95_ms", 5_000.0);
    threshold("frame_windows", "jank_share", 0.05);
    rules
}
