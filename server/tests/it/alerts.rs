//! Alerts, from creating a rule to reading its incidents.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::erasures::erase;
use crate::server::{Answer, Server, batch, span};
use crate::wait;

const PROJECT: &str = "/api/v1/projects/default";

/// A server with very short evaluation intervals, and the token of an editor.
pub(crate) struct Watched {
    pub(crate) server: Server,
    pub(crate) token: String,
}

impl Watched {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(arguments: &[&str]) -> Self {
        let arguments = [&["--alerts-interval-ms", "50"], arguments].concat();
        let server = Server::with(&arguments).await;
        server.ready().await;
        let token = server.token("editor --project default").await;
        Self { server, token }
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let path = format!("{PROJECT}/{path}");
        self.server.call(&self.token, method, &path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, None).await.body
    }

    pub(crate) async fn send(&self, batch: Value) {
        let answer = self.server.send(&batch).await;
        assert_eq!(answer.status, 202, "{}", answer.body);
        assert_eq!(answer.body["rejected"], json!([]));
    }

    pub(crate) async fn rule(&self, rule: Value) -> Value {
        let made = self.call(Method::POST, "alert-rules", Some(rule)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.body
    }

    /// Waits until the incidents are as expected.
    pub(crate) async fn incidents(&self, expected: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let mut last = Vec::new();
        let found = wait::holds(async || {
            let body = self.get("incidents").await;
            last = body["incidents"].as_array().unwrap().clone();
            expected(&last)
        });
        assert!(found.await, "{last:#?}");
        last
    }

    /// Waits for two more evaluation rounds.
    pub(crate) async fn two_rounds(&self) {
        let rounds = "unjank_alert_rounds_total";
        let before = self.server.metric(rounds).await;
        while self.server.metric(rounds).await < before + 2.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A batch of an install with spans of these durations, a minute ago.
pub(crate) fn spans(version: &str, durations_ms: &[u64]) -> Value {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    batch["resource"]["install_id"] = json!(Uuid::new_v4());
    batch["spans"] = durations_ms
        .iter()
        .map(|ms| {
            let mut span = span();
            span["start"] = json!("2026-11-20T11:59:00Z");
            span["duration_us"] = json!(ms * 1_000);
            span
        })
        .collect();
    batch
}

pub(crate) fn slow_checkout() -> Value {
    json!({
        "name": "Checkout is slow", "severity": "critical", "owner": "shop",
        "metric": {"signal": "spans", "measure": "p95_us", "by": ["name"], "filters": {"app_id": ["com.example.shop"]}},
        "window_minutes": 30,
        "condition": {"kind": "threshold", "above": 500_000, "recover": 300_000},
        "for_minutes": 0, "least_samples": 10,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_threshold_fires_with_its_evidence_and_ends_on_recovery() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    let rule = watched.rule(slow_checkout()).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let incident = &found[0];
    assert_eq!(incident["state"], "firing");
    assert_eq!(incident["rule"], rule["id"]);
    assert_eq!(incident["group"], json!({"name": "checkout"}));
    assert_eq!(incident["labels"]["alertname"], "Checkout is slow");
    assert_eq!(incident["labels"]["severity"], "critical");
    assert_eq!(incident["labels"]["name"], "checkout");
    let link = incident["link"].as_str().unwrap();
    assert!(link.starts_with("/spans?project=default&from="), "{link}");
    assert!(
        link.contains("&app_id=com.example.shop&name=checkout"),
        "{link}"
    );
    // The query in the evidence returns the number in the evidence.
    let evidence = &incident["evidence"];
    let question = evidence["question"].as_str().unwrap();
    let answer = watched
        .server
        .call(&watched.token, Method::GET, question, None)
        .await;
    assert_eq!(
        answer.body["rows"][0]["values"][0],
        evidence["numbers"]["value"]
    );
    // Between the two bounds nothing changes.
    watched.send(spans("4.12.0", &[400; 2_000])).await;
    watched.server.drained().await;
    watched.two_rounds().await;
    watched.incidents(|all| all[0]["state"] == "firing").await;
    watched.send(spans("4.12.0", &[100; 5_000])).await;
    watched.send(spans("4.12.0", &[100; 5_000])).await;
    watched.send(spans("4.12.0", &[100; 5_000])).await;
    watched.send(spans("4.12.0", &[100; 5_000])).await;
    watched.send(spans("4.12.0", &[100; 5_000])).await;
    watched.send(spans("4.12.0", &[100; 5_000])).await;
    watched.send(spans("4.12.0", &[100; 5_000])).await;
    watched.send(spans("4.12.0", &[100; 5_000])).await;
    let ended = watched.incidents(|all| all[0]["state"] == "resolved").await;
    assert_eq!(ended[0]["resolved_because"], "recovered");
    let path = format!("incidents/{}/acknowledge", ended[0]["id"].as_str().unwrap());
    let acknowledged = watched.call(Method::POST, &path, None).await.body;
    assert!(acknowledged["acknowledged_by"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_rule_name_their_fields() {
    let watched = Watched::start().await;
    for (change, path) in [
        (
            json!({"metric": {"signal": "spams", "measure": "p95_us"}}),
            "metric.signal",
        ),
        (
            json!({"metric": {"signal": "spans", "measure": "p96_us"}}),
            "metric.measure",
        ),
        (
            json!({"metric": {"signal": "spans", "measure": "p95_us", "by": ["colour"]}}),
            "metric.by[0]",
        ),
        (
            json!({"metric": {"signal": "spans", "measure": "p95_us", "filters": {"colour": ["red"]}}}),
            "metric.filters.colour",
        ),
        (json!({"window_minutes": 1}), "window_minutes"),
        (json!({"window_minutes": "an hour"}), "window_minutes"),
        (json!({"condition": {"kind": "threshold"}}), "condition"),
        (
            json!({"condition": {"kind": "regression", "effect": {"significance": 0.0}}}),
            "condition.effect.significance",
        ),
        (
            json!({"mute_windows": [{"from": "25:00", "to": "06:00"}]}),
            "mute_windows[0]",
        ),
    ] {
        let mut rule = slow_checkout();
        for (name, value) in change.as_object().unwrap() {
            rule[name] = value.clone();
        }
        let refused = watched
            .call(Method::POST, "alert-rules", Some(rule.clone()))
            .await;
        assert_eq!(refused.outcome(), (422, "alert_rule_invalid".to_owned()));
        assert_eq!(refused.body["faults"][0]["path"], path, "{}", refused.body);
        let checked = watched
            .call(Method::POST, "alert-rules/check", Some(rule))
            .await;
        assert_eq!(checked.body["faults"], refused.body["faults"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changing_disabling_or_deleting_a_rule_ends_its_incidents() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    let made = watched.rule(slow_checkout()).await;
    let path = format!("alert-rules/{}", made["id"].as_str().unwrap());
    let save = |revision: i64, change: Value| {
        let mut rule = slow_checkout();
        for (name, value) in change.as_object().unwrap() {
            rule[name] = value.clone();
        }
        json!({"expected_revision": revision, "rule": rule})
    };
    watched.incidents(|all| all.len() == 1).await;
    // A new owner does not end the incident.
    let saved = watched
        .call(Method::PUT, &path, Some(save(1, json!({"owner": "cart"}))))
        .await;
    assert_eq!(
        (saved.status.as_u16(), &saved.body["revision"]),
        (200, &json!(2))
    );
    let late = watched
        .call(Method::PUT, &path, Some(save(1, json!({}))))
        .await;
    assert_eq!(late.outcome(), (409, "conflict".to_owned()));
    watched.two_rounds().await;
    watched.incidents(|all| all[0]["state"] == "firing").await;
    watched.server.pass(Duration::from_secs(1));
    let changed = save(2, json!({"window_minutes": 45}));
    watched.call(Method::PUT, &path, Some(changed)).await;
    let found = watched.incidents(|all| all.len() == 2).await;
    assert_eq!(found[1]["resolved_because"], "the rule was changed");
    let off = save(3, json!({"window_minutes": 45, "enabled": false}));
    watched.call(Method::PUT, &path, Some(off)).await;
    let found = watched.incidents(|all| all[0]["state"] == "resolved").await;
    assert_eq!(found[0]["resolved_because"], "the rule was disabled");
    watched.two_rounds().await;
    watched.server.pass(Duration::from_secs(1));
    let on = save(4, json!({"window_minutes": 45}));
    watched.call(Method::PUT, &path, Some(on)).await;
    watched.incidents(|all| all.len() == 3).await;
    assert_eq!(watched.call(Method::DELETE, &path, None).await.status, 204);
    let found = watched.incidents(|all| all[0]["state"] == "resolved").await;
    assert_eq!(found[0]["resolved_because"], "the rule was deleted");
    watched.two_rounds().await;
    assert_eq!(watched.incidents(|_| true).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_is_withdrawn_and_both_are_audited() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    watched.rule(slow_checkout()).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let id = found[0]["id"].as_str().unwrap();
    let path = format!("incidents/{id}/acknowledge");
    let acknowledged = watched.call(Method::POST, &path, None).await.body;
    assert!(acknowledged["acknowledged_at"].is_i64());
    // The audit log sorts by time, and the clock of the test server is stopped.
    watched.server.pass(Duration::from_secs(1));
    for _ in 0..2 {
        let withdrawn = watched.call(Method::DELETE, &path, None).await;
        assert_eq!(withdrawn.status, 200, "{}", withdrawn.body);
        assert_eq!(withdrawn.body["acknowledged_by"], Value::Null);
        assert_eq!(withdrawn.body["acknowledged_at"], Value::Null);
    }
    let admin = watched.server.token("admin --project default").await;
    let audit = format!("{PROJECT}/audit");
    let audit = watched.server.call(&admin, Method::GET, &audit, None).await;
    let of_it = audit.body["entries"].as_array().unwrap().iter();
    let actions: Vec<_> = of_it
        .filter(|one| one["subject"] == id)
        .map(|one| one["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        [
            "incident.acknowledgement_withdrawn",
            "incident.acknowledged"
        ]
    );
    let other = format!("incidents/{}/acknowledge", Uuid::nil());
    let missing = watched.call(Method::DELETE, &other, None).await;
    assert_eq!(missing.outcome(), (404, "not_found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_of_slow_app_starts_leads_to_the_page_of_their_kind() {
    let watched = Watched::start().await;
    let mut slow = batch();
    let start = json!({"kind": "cold", "start": "2026-11-20T11:59:00Z", "duration_ms": 6_000, "phases": []});
    slow["app_starts"] = json!([start]);
    watched.send(slow).await;
    watched.server.drained().await;
    watched
        .rule(json!({
            "name": "Cold starts are slow",
            "metric": {"signal": "app_starts", "measure": "slow_start_share", "by": ["kind"]},
            "window_minutes": 30, "for_minutes": 0, "least_samples": 1,
            "condition": {"kind": "threshold", "above": 0.5},
        }))
        .await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let link = found[0]["link"].as_str().unwrap();
    assert!(link.starts_with("/app-starts?project=default&"), "{link}");
    assert!(link.contains("&kind=cold"), "{link}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_user_leaves_no_incident() {
    let watched = Watched::start().await;
    let mut slow = spans("4.12.0", &[800; 20]);
    slow["resource"]["user_id"] = json!("ann");
    watched.send(slow).await;
    watched.server.drained().await;
    let mut rule = slow_checkout();
    rule["metric"]["by"] = json!(["user_id"]);
    watched.rule(rule).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    assert_eq!(found[0]["group"], json!({"user_id": "ann"}));
    let path = format!("{PROJECT}/data?user_id=ann");
    let receipt = erase(&watched.server, &path).await;
    assert_eq!(receipt["receipt"]["rows"]["incidents"], 1, "{receipt}");
    watched.incidents(<[Value]>::is_empty).await;
}
