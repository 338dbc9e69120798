//! Evaluation rounds: with several servers, across restarts, on missing data and under mutes.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::alerts::{Watched, slow_checkout, spans};

const ROUNDS: &str = "unjank_alert_rounds_total";

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_servers_evaluates_and_the_other_takes_over_when_it_ends() {
    let url = crate::postgres::postgres().database().await;
    let mut one = Watched::with(&["--database-url", &url]).await;
    one.send(spans("4.12.0", &[800; 20])).await;
    one.server.drained().await;
    let made = one.rule(slow_checkout()).await;
    one.incidents(|all| all.len() == 1).await;
    let shared = [
        "--database-url",
        url.as_str(),
        "--clickhouse-database",
        one.server.database(),
    ];
    let other = Watched::with(&shared).await;
    one.two_rounds().await;
    assert!(other.server.metric(ROUNDS).await < 1.0, "both evaluate");
    one.server.end().await;
    other.two_rounds().await;
    let found = other.incidents(|all| all.len() == 1).await;
    assert_eq!(found[0]["state"], "firing", "the incident is still open");
    let path = format!("alert-rules/{}", made["id"].as_str().unwrap());
    assert_eq!(other.get(&path).await["outcome"], "firing");
    // The lease of a dead server expires.
    other.server.pass(Duration::from_secs(100));
    other.two_rounds().await;
    assert_eq!(other.incidents(|_| true).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_between_two_rounds_changes_no_outcome() {
    let mut watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    let mut rule = slow_checkout();
    rule["for_minutes"] = json!(10);
    watched.rule(rule).await;
    watched.two_rounds().await;
    assert_eq!(
        watched.get("alert-rules").await["rules"][0]["outcome"],
        "pending"
    );
    watched.server.pass(Duration::from_mins(9));
    watched.server.restart().await;
    watched.server.ready().await;
    watched.two_rounds().await;
    assert_eq!(watched.incidents(|_| true).await.len(), 0, "not yet");
    // The wait began before the restart.
    watched.server.pass(Duration::from_mins(1));
    watched.incidents(|all| all.len() == 1).await;
    watched.server.restart().await;
    watched.server.ready().await;
    watched.two_rounds().await;
    let found = watched.incidents(|_| true).await;
    assert_eq!((found.len(), &found[0]["state"]), (1, &json!("firing")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absence_incident_stays_open_until_data_arrives() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[100; 20])).await;
    watched.server.drained().await;
    watched
        .rule(json!({
            "name": "Nothing arrives", "severity": "critical",
            "metric": {"signal": "spans", "measure": "count", "by": ["app_id"]},
            "window_minutes": 30, "for_minutes": 0, "condition": {"kind": "absence"},
        }))
        .await;
    watched.server.pass(Duration::from_mins(1));
    watched.two_rounds().await;
    assert_eq!(watched.incidents(|_| true).await.len(), 0);
    watched.server.pass(Duration::from_mins(31));
    let found = watched.incidents(|all| all.len() == 1).await;
    assert_eq!(found[0]["group"], json!({"app_id": "com.example.shop"}));
    assert!(found[0]["link"].as_str().unwrap().starts_with("/spans?"));
    // The incident stays open, however long it takes.
    watched.server.pass(Duration::from_hours(24 * 20));
    watched.two_rounds().await;
    watched.incidents(|all| all[0]["state"] == "firing").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_data_counts_from_its_arrival() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[100; 20])).await;
    watched.server.pass(Duration::from_mins(40));
    // The events of a device that was offline.
    let mut late = spans("4.12.0", &[100; 20]);
    late["sent_at"] = json!("2026-11-20T12:40:00Z");
    watched.send(late).await;
    watched.server.drained().await;
    watched.server.pass(Duration::from_mins(1));
    watched
        .rule(json!({
            "name": "Nothing arrives",
            "metric": {"signal": "spans", "measure": "count"},
            "window_minutes": 30, "for_minutes": 0, "condition": {"kind": "absence"},
        }))
        .await;
    watched.two_rounds().await;
    assert_eq!(
        watched.get("alert-rules").await["rules"][0]["outcome"],
        "ok"
    );
    assert_eq!(watched.incidents(|_| true).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_incident_is_opened_until_a_mute_ends() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    let mute = json!({"ends_at": 1_795_176_000_000_000_i64 + 600_000_000, "reason": "load test"});
    let made = watched.call(Method::POST, "mutes", Some(mute)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    watched.rule(slow_checkout()).await;
    watched.two_rounds().await;
    assert_eq!(watched.incidents(|_| true).await.len(), 0);
    let path = format!("mutes/{}", made.body["id"].as_str().unwrap());
    watched.server.pass(Duration::from_secs(1));
    assert_eq!(watched.call(Method::DELETE, &path, None).await.status, 204);
    watched.server.pass(Duration::from_secs(60));
    watched.incidents(|all| all.len() == 1).await;
    assert_eq!(watched.get("mutes").await["mutes"], json!([]));
}
