//! Regressions: a real slow-down is distinguished from chance and from a shift of the device mix.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::alerts::Watched;
use crate::server::{batch, span};

/// Starts a server at ten minutes past the hour. First sightings of versions are rounded down to the hour, so they are in the past.
async fn watched() -> Watched {
    let watched = Watched::start().await;
    watched.server.pass(Duration::from_mins(10));
    watched
}

/// The batch of an install: three spans of about this many milliseconds, five minutes ago.
fn install(version: &str, class: &str, millis: u64) -> Value {
    let mut batch = batch();
    batch["sent_at"] = json!("2026-11-20T12:10:00Z");
    let resource = &mut batch["resource"];
    resource["app_version"] = json!(version);
    resource["install_id"] = json!(Uuid::new_v4());
    resource["device_class"] = json!(class);
    resource["os_name"] = json!("android");
    resource["os_version"] = json!("15");
    batch["spans"] = [90, 100, 110]
        .map(|percent| {
            let mut span = span();
            span["start"] = json!("2026-11-20T12:05:00Z");
            span["duration_us"] = json!(millis * percent * 10);
            span
        })
        .into();
    batch
}

/// The batch of an install whose spans have this status.
fn ended(version: &str, status: &str) -> Value {
    let mut batch = install(version, "high", 100);
    let spans = batch["spans"].as_array_mut().unwrap();
    spans
        .iter_mut()
        .for_each(|span| span["status"] = json!(status));
    batch
}

impl Watched {
    /// Sends the batches of a version: for each device class, the number of installs and the approximate duration of spans.
    async fn fleet(&self, version: &str, classes: &[(&str, u64, u64)]) {
        for (class, installs, millis) in classes {
            for place in 0..*installs {
                let spread = millis * (80 + place * 37 % 41) / 100;
                self.send(install(version, class, spread)).await;
            }
        }
        self.server.drained().await;
    }

    /// Returns the outcome of the latest evaluation of the only rule.
    async fn outcome(&self) -> String {
        self.two_rounds().await;
        let rules = self.get("alert-rules").await;
        let rule = &rules["rules"][0];
        assert_eq!(rule["last_error"], Value::Null);
        rule["outcome"].as_str().unwrap().to_owned()
    }
}

fn slower(compare: &str) -> Value {
    json!({
        "name": "Spans got slower",
        "metric": {"signal": "spans", "measure": "p75_us", "by": ["name"]},
        "window_minutes": 1440, "for_minutes": 0, "least_samples": 100,
        "condition": {"kind": "regression", "compare": compare, "effect": {"least_relative": 0.1}},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slower_version_fires_with_both_versions_and_its_significance() {
    let watched = watched().await;
    // 4.11.5 has too few installs and is skipped.
    watched.fleet("4.11.5", &[("high", 3, 100)]).await;
    watched.fleet("4.11.0", &[("high", 100, 100)]).await;
    watched.fleet("4.12.0", &[("high", 100, 130)]).await;
    watched.rule(slower("same_days")).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let incident = &found[0];
    assert_eq!(
        (&incident["kind"], &incident["state"]),
        (&json!("alert"), &json!("firing"))
    );
    let group = json!({"app_id": "com.example.shop", "name": "checkout"});
    assert_eq!(incident["group"], group);
    let evidence = &incident["evidence"];
    assert_eq!(evidence["sides"]["version"], "4.12.0");
    assert_eq!(evidence["sides"]["base_version"], "4.11.0");
    let number = |name: &str| evidence["numbers"][name].as_f64().unwrap();
    assert!((number("relative") - 0.3).abs() < 0.05, "{evidence}");
    assert!((number("standardised") - 0.3).abs() < 0.05, "{evidence}");
    assert!(number("p_corrected") < 0.001, "{evidence}");
    assert_eq!(evidence["numbers"]["installs"], json!([100, 100]));
    assert_eq!(evidence["numbers"]["samples"], 300.0);
    let moved = &evidence["moved"][0];
    assert_eq!(
        (&moved["dimension"], &moved["key"]),
        (&json!("page"), &json!(""))
    );
    assert!(moved["value"].as_f64().unwrap() > moved["base"].as_f64().unwrap() * 1.2);
    let summary = incident["summary"].as_str().unwrap();
    assert!(
        summary.contains(" rose from ")
            && summary.contains(" in 4.11.0 to ")
            && summary.contains(" in 4.12.0 (+"),
        "{summary}"
    );
    let link = incident["link"].as_str().unwrap();
    assert!(
        link.contains("app_version=4.12.0&base_app_version=4.11.0"),
        "{link}"
    );
    // A newer version that is as slow does not end the incident: it is still slower than 4.11.0.
    watched.fleet("4.13.0", &[("high", 100, 130)]).await;
    watched.server.pass(Duration::from_mins(6));
    watched.two_rounds().await;
    watched
        .incidents(|all| all.len() == 1 && all[0]["state"] == "firing")
        .await;
    // A version that is as fast as 4.11.0 ends it.
    watched.fleet("4.14.0", &[("high", 100, 100)]).await;
    watched.server.pass(Duration::from_mins(6));
    let ended = watched.incidents(|all| all[0]["state"] == "resolved").await;
    assert_eq!(
        (ended.len(), &ended[0]["resolved_because"]),
        (1, &json!("recovered"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_with_a_build_is_compared_with_the_version_before_it() {
    let watched = watched().await;
    // The older version is seen last.
    watched.fleet("4.10.0 (41)", &[("high", 100, 130)]).await;
    watched.fleet("4.9.0 (40)", &[("high", 100, 100)]).await;
    watched.rule(slower("same_days")).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let sides = &found[0]["evidence"]["sides"];
    assert_eq!(sides["version"], "4.10.0 (41)");
    assert_eq!(sides["base_version"], "4.9.0 (40)");
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_speed_and_insignificant_changes_are_no_regressions() {
    let watched = watched().await;
    watched.fleet("4.11.0", &[("high", 100, 100)]).await;
    watched.fleet("4.12.0", &[("high", 100, 100)]).await;
    watched.rule(slower("same_days")).await;
    assert_eq!(watched.outcome().await, "ok");
    // Twenty of sixty installs are much slower. They send many events, but the difference is not significant.
    watched
        .fleet("4.13.0", &[("high", 40, 100), ("low", 20, 400)])
        .await;
    watched.server.pass(Duration::from_mins(6));
    let mut rule = slower("same_days");
    rule["condition"]["effect"]["significance"] = json!(0.000_000_000_1);
    watched.rule(rule).await;
    watched.two_rounds().await;
    let alerts = watched.incidents(|_| true).await;
    let alerts = alerts.iter().filter(|one| one["kind"] == "alert");
    assert_eq!(alerts.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shift_of_the_device_mix_is_recorded_once_as_a_resolved_incident() {
    let watched = watched().await;
    watched
        .fleet("4.11.0", &[("high", 100, 100), ("low", 20, 400)])
        .await;
    watched
        .fleet("4.12.0", &[("high", 20, 100), ("low", 100, 400)])
        .await;
    watched.rule(slower("same_days")).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let shift = &found[0];
    assert_eq!(
        (&shift["kind"], &shift["state"], &shift["severity"]),
        (&json!("mix_shift"), &json!("resolved"), &json!("info"))
    );
    let numbers = &shift["evidence"]["numbers"];
    assert!(numbers["relative"].as_f64().unwrap() > 1.0, "{numbers}");
    assert!(
        numbers["standardised"].as_f64().unwrap().abs() < 0.05,
        "{numbers}"
    );
    watched.two_rounds().await;
    assert_eq!(watched.incidents(|_| true).await.len(), 1, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_down_that_faster_devices_hide_fires() {
    let watched = watched().await;
    watched
        .fleet("4.11.0", &[("high", 20, 100), ("low", 100, 400)])
        .await;
    // The comparison excludes a device class that only one version has.
    let sooner = [("high", 100, 130), ("low", 20, 520), ("mid", 5, 200)];
    watched.fleet("4.12.0", &sooner).await;
    watched.rule(slower("same_days")).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    assert_eq!(found[0]["kind"], "alert");
    let numbers = &found[0]["evidence"]["numbers"];
    assert!(numbers["relative"].as_f64().unwrap() < 0.0, "{numbers}");
    let alike = numbers["standardised"].as_f64().unwrap();
    assert!((alike - 0.3).abs() < 0.05, "{numbers}");
    assert_eq!(numbers["installs"], json!([120, 120]));
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_are_tested_for_significance() {
    let watched = watched().await;
    for (version, status, installs) in [
        ("4.11.0", "error", 5),
        ("4.11.0", "ok", 95),
        ("4.12.0", "error", 25),
        ("4.12.0", "ok", 75),
    ] {
        for _ in 0..installs {
            watched.send(ended(version, status)).await;
        }
    }
    watched.server.drained().await;
    let mut rule = slower("same_age");
    rule["metric"]["measure"] = json!("error_share");
    rule["condition"]["effect"]["significance"] = json!(0.01);
    watched.rule(rule).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let numbers = &found[0]["evidence"]["numbers"];
    assert_eq!(
        (&numbers["value"], &numbers["base"]),
        (&json!(0.25), &json!(0.05))
    );
    // Two binomial shares of a hundred installs each: z = 4.1.
    let p = numbers["p"].as_f64().unwrap();
    assert!((1e-6..1e-4).contains(&p), "{p}");
}

/// Sends batches at noon with spans of half an hour before.
async fn noon(watched: &Watched, day: &str, fleet: (&str, u64, u64)) {
    let times = [format!("{day}T12:00:00Z"), format!("{day}T11:30:00Z")];
    sent(watched, &times, fleet).await;
}

/// Sends the batches of a version at the first time, with spans of the second.
async fn sent(
    watched: &Watched,
    [at, started]: &[String; 2],
    (version, installs, millis): (&str, u64, u64),
) {
    for place in 0..installs {
        let mut batch = install(version, "high", millis * (80 + place * 37 % 41) / 100);
        batch["sent_at"] = json!(at);
        let spans = batch["spans"].as_array_mut().unwrap();
        spans
            .iter_mut()
            .for_each(|span| span["start"] = json!(started));
        watched.send(batch).await;
    }
    watched.server.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_comparison_with_last_week_applies_the_filters_to_both_sides() {
    let watched = Watched::start().await;
    noon(&watched, "2026-11-20", ("4.11.0", 150, 100)).await;
    noon(&watched, "2026-11-20", ("4.12.0", 60, 100)).await;
    watched.server.pass(Duration::from_hours(7 * 24));
    // Most installs got faster, but not those that the rule watches.
    noon(&watched, "2026-11-27", ("4.11.0", 150, 60)).await;
    noon(&watched, "2026-11-27", ("4.12.0", 60, 130)).await;
    watched.server.pass(Duration::from_mins(10));
    watched
        .rule(json!({
            "name": "Slower than last week",
            "metric": {"signal": "spans", "measure": "p75_us", "filters": {"app_version": ["4.12.0"]}},
            "window_minutes": 60, "for_minutes": 0, "least_samples": 100,
            "condition": {"kind": "last_week", "effect": {"least_relative": 0.1}},
        }))
        .await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let numbers = &found[0]["evidence"]["numbers"];
    assert_eq!(numbers["installs"], json!([60, 60]), "{numbers}");
    assert!(numbers["p_corrected"].as_f64().unwrap() < 0.001);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_changes_have_the_periods_of_the_comparison() {
    let watched = watched().await;
    let on = |day| ["12:10", "12:05"].map(|time| format!("2026-11-{day}T{time}:00Z"));
    sent(&watched, &on(20), ("4.11.0", 100, 100)).await;
    watched.server.pass(Duration::from_hours(7 * 24));
    // The earlier version is slow by now. At this age, it was not.
    sent(&watched, &on(27), ("4.11.0", 100, 140)).await;
    sent(&watched, &on(27), ("4.12.0", 100, 130)).await;
    watched.server.pass(Duration::from_mins(70));
    watched.rule(slower("same_age")).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let evidence = &found[0]["evidence"];
    let base = evidence["numbers"]["base"].as_f64().unwrap();
    let moved = &evidence["moved"][0];
    assert_eq!(moved["dimension"], "page");
    let of_page = moved["base"].as_f64().unwrap();
    assert!((of_page / base - 1.0).abs() < 0.02, "{evidence}");
}
