//! Actions of alert rules: an incident raises the rates of its devices within a budget, and removes the override when it ends.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::alerts::{Watched, slow_checkout, spans};
use crate::server::{Answer, KEY};
use crate::wait;

/// The slow devices.
const COHORT: &str = "app_id=com.example.shop&app_version=4.12.0";
const OTHERS: &str = "app_id=com.example.shop&app_version=4.11.0";
/// The default rate of spans.
const ONE_PERCENT: f64 = 0.01;

fn acting(action: Value) -> Value {
    let mut rule = slow_checkout();
    rule["metric"]["by"] = json!(["name", "app_version"]);
    rule["action"] = action;
    rule
}

/// Starts a server with 20 slow spans, and a rule with an action that fires on them.
async fn fired(action: Value) -> Watched {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    watched.rule(acting(action)).await;
    watched
}

impl Watched {
    async fn config(&self, query: &str) -> Value {
        let url = format!("{}/v1/config?{query}", self.server.url);
        let request = self.server.client.get(url).bearer_auth(KEY);
        Answer::of(request.send().await.unwrap()).await.body
    }

    /// Returns the rate of `checkout` spans for a device.
    async fn rate(&self, query: &str) -> f64 {
        let document = self.config(query).await;
        let spans = &document["sampling"]["spans"];
        let named = spans["overrides"].as_array().unwrap().iter();
        let named = named.clone().find(|one| one["name"] == "checkout");
        let rate = named.map_or(&spans["default"], |one| &one["rate"]);
        rate.as_f64().unwrap()
    }

    async fn rate_becomes(&self, expected: f64) {
        let mut rate = 0.0;
        let became = wait::holds(async || {
            rate = self.rate(COHORT).await;
            (rate - expected).abs() < 1e-9
        });
        if !became.await {
            let incidents = self.get("incidents").await;
            panic!("{rate} is not {expected}: {incidents:#}");
        }
    }

    /// Waits until the action of the only incident is in a state, and returns it.
    async fn action(&self, state: &str) -> Value {
        let found = self.incidents(|all| all.len() == 1 && all[0]["action"]["state"] == state);
        found.await[0]["action"].clone()
    }

    async fn recovers(&self) {
        // Advance the clock, so that later entries of the audit log have a later time.
        self.server.pass(Duration::from_secs(1));
        self.send(spans("4.12.0", &[100; 2_000])).await;
        self.incidents(|all| all[0]["state"] == "resolved").await;
    }

    async fn saved(&self) -> Value {
        self.get("config").await
    }

    /// Makes an operator's change to the current revision. Retries on conflicts.
    async fn edit(&self, change: impl Fn(&mut Value)) {
        loop {
            let current = self.saved().await;
            let mut configuration = current["configuration"].clone();
            change(&mut configuration);
            let body =
                json!({"expected_revision": current["revision"], "configuration": configuration});
            let answer = self.call(Method::PUT, "config", Some(body)).await;
            match answer.status.as_u16() {
                201 => return,
                409 => {}
                _ => panic!("{}", answer.body),
            }
        }
    }
}

fn overrides(revision: &Value) -> &Vec<Value> {
    revision["configuration"]["overrides"].as_array().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_raises_the_rates_of_its_devices_until_it_ends() {
    let watched = fired(json!({"sampling": {"spans": 1.0, "janks": 1.0}})).await;
    watched.rate_becomes(1.0).await;
    assert!((watched.rate(OTHERS).await - ONE_PERCENT).abs() < 1e-9);
    let action = watched.action("placed").await;
    assert_eq!(
        action["rates"],
        json!({"spans": 1.0}),
        "all janks are sent by default"
    );
    assert_eq!(action["installs"], 1);
    let foreseen = action["foreseen_events_per_day"].as_f64().unwrap();
    assert!((foreseen - 19.8).abs() < 0.01, "{foreseen}");
    let day = 86_400_000_000;
    assert_eq!(
        action["until"].as_i64().unwrap(),
        action["at"].as_i64().unwrap() + day
    );
    assert_eq!(
        action["override"]["when"],
        json!({"all": [
        {"app_id": ["com.example.shop"]}, {"app_version": "=4.12.0.0"}]})
    );
    let saved = watched.saved().await;
    assert_eq!(
        (&saved["revision"], overrides(&saved).len()),
        (&json!(1), 1)
    );
    assert_eq!(saved["author"], "system:alerts");
    watched.two_rounds().await;
    assert_eq!(watched.saved().await["revision"], 1, "placed once");
    watched.recovers().await;
    watched.rate_becomes(ONE_PERCENT).await;
    let action = watched.action("ended").await;
    assert_eq!(action["because"], "the incident ended: recovered");
    let saved = watched.saved().await;
    assert_eq!(
        (&saved["revision"], overrides(&saved).len()),
        (&json!(2), 0)
    );
    let admin = watched.server.token("admin").await;
    let path = "/api/v1/projects/default/audit?action=configuration.saved";
    let audit = watched
        .server
        .call(&admin, Method::GET, path, None)
        .await
        .body;
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{audit:#}");
    let incident = watched.get("incidents").await["incidents"][0]["id"].clone();
    for (entry, what) in entries.iter().zip(["override removed", "override placed"]) {
        let text = entry.to_string();
        let id = incident.as_str().unwrap();
        assert!(
            text.contains(id) && text.contains(what) && text.contains("/spans?"),
            "{text}"
        );
        assert_eq!(entry["actor"], "system:alerts", "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_lowers_the_rate_and_an_override_that_does_not_fit_is_not_placed() {
    let watched = fired(json!({"sampling": {"spans": 1.0}, "events_per_day": 10})).await;
    let action = watched.action("placed").await;
    let foreseen = action["foreseen_events_per_day"].as_f64().unwrap();
    assert!((9.5..=10.0).contains(&foreseen), "{action:#}");
    let rate = action["rates"]["spans"].as_f64().unwrap();
    assert!((0.45..0.52).contains(&rate), "{rate}");
    watched.rate_becomes(rate).await;
    // Another rule has its own budget, and even the smallest raise of so many spans exceeds it.
    let mut many = spans("4.13.0", &[900; 50]);
    for span in many["spans"].as_array_mut().unwrap() {
        span["sample_rate"] = json!(0.0001);
    }
    watched.send(many).await;
    watched.server.drained().await;
    let mut rule = acting(json!({"sampling": {"spans": 1.0}, "events_per_day": 1}));
    rule["metric"]["filters"]["app_version"] = json!(["4.13.0"]);
    rule["name"] = json!("Many");
    watched.rule(rule).await;
    let refused = |all: &[Value]| all.iter().any(|one| one["action"]["state"] == "refused");
    let found = watched.incidents(refused).await;
    let refused = found.iter().find(|one| one["action"]["state"] == "refused");
    let because = refused.unwrap()["action"]["because"].as_str().unwrap();
    assert!(because.contains("budget"), "{because}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_an_operator_removes_is_not_placed_again() {
    let watched = fired(json!({"sampling": {"spans": 0.5}})).await;
    watched.rate_becomes(0.5).await;
    watched
        .edit(|configuration| configuration["overrides"] = json!([]))
        .await;
    let action = watched.action("ended").await;
    let because = action["because"].as_str().unwrap();
    assert!(because.contains("removed by hand"), "{because}");
    watched.two_rounds().await;
    assert!((watched.rate(COHORT).await - ONE_PERCENT).abs() < 1e-9);
    assert_eq!(overrides(&watched.saved().await).len(), 0);
    watched.incidents(|all| all[0]["state"] == "firing").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_an_operator_changes_is_no_longer_managed() {
    let watched = fired(json!({"sampling": {"spans": 0.5}})).await;
    watched.rate_becomes(0.5).await;
    // A save that changes only the formatting.
    watched.edit(|_| {}).await;
    watched.two_rounds().await;
    watched.action("placed").await;
    watched
        .edit(|configuration| configuration["overrides"][0]["enabled"] = json!(false))
        .await;
    watched.action("ended").await;
    watched.recovers().await;
    watched.two_rounds().await;
    let saved = watched.saved().await;
    assert_eq!(overrides(&saved)[0]["enabled"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_edits_are_not_lost_and_rates_are_never_lowered() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    watched
        .edit(|configuration| {
            configuration["overrides"] = json!([{"id": "testers", "when": {"device_class": ["low"]},
                "patch": {"sampling": {"spans": {"default": 0.9}}}}]);
        })
        .await;
    let edits = async {
        for number in 0..20 {
            let name = format!("t{number}");
            watched
                .edit(|configuration| configuration["base"]["toggles"][&name] = json!(true))
                .await;
        }
    };
    let rule = watched.rule(acting(json!({"sampling": {"spans": 0.5}})));
    tokio::join!(edits, rule);
    watched.rate_becomes(0.5).await;
    let saved = watched.saved().await;
    assert_eq!(overrides(&saved).len(), 2);
    let toggles = saved["configuration"]["base"]["toggles"]
        .as_object()
        .unwrap();
    assert_eq!(toggles.len(), 20);
    let tester = format!("{COHORT}&device_class=low");
    let default = &watched.config(&tester).await["sampling"]["spans"]["default"];
    assert_eq!(default, &json!(0.9));
    // A higher base makes the override unnecessary, and the override must not lower it.
    watched
        .edit(|configuration| configuration["base"]["sampling"]["spans"]["default"] = json!(0.8))
        .await;
    watched.rate_becomes(0.8).await;
    watched.action("ended").await;
    let ids: Vec<_> = overrides(&watched.saved().await)
        .iter()
        .map(|one| one["id"].clone())
        .collect();
    assert_eq!(ids, ["testers"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_later_override_takes_precedence() {
    let watched = fired(json!({"sampling": {"spans": 0.5}})).await;
    watched.rate_becomes(0.5).await;
    watched
        .edit(|configuration| {
            let all = json!({"id": "all", "when": {"all": []}, "patch": {"sampling": {"spans": {"default": 0.02, "overrides": []}}}});
            configuration["overrides"].as_array_mut().unwrap().push(all);
        })
        .await;
    watched.rate_becomes(0.02).await;
    watched.two_rounds().await;
    assert!((watched.rate(COHORT).await - 0.02).abs() < 1e-9);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_expires_even_if_the_incident_is_still_open() {
    let watched = fired(json!({"sampling": {"spans": 0.5}, "hours": 1})).await;
    watched.rate_becomes(0.5).await;
    watched.action("placed").await;
    watched.server.pass(Duration::from_mins(61));
    assert!(
        (watched.rate(COHORT).await - ONE_PERCENT).abs() < 1e-9,
        "the override expires at once"
    );
    let action = watched.action("ended").await;
    assert_eq!(action["because"], "the override expired");
    assert_eq!(overrides(&watched.saved().await).len(), 0);
    watched.two_rounds().await;
    watched.incidents(|all| all[0]["state"] == "firing").await;
    assert_eq!(overrides(&watched.saved().await).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_removes_an_override_that_the_first_placed() {
    let url = crate::postgres::postgres().database().await;
    let mut one = Watched::with(&["--database-url", &url]).await;
    one.send(spans("4.12.0", &[800; 20])).await;
    one.server.drained().await;
    let made = one.rule(acting(json!({"sampling": {"spans": 0.5}}))).await;
    one.rate_becomes(0.5).await;
    one.server.restart().await;
    one.server.ready().await;
    one.two_rounds().await;
    assert_eq!(
        one.saved().await["revision"],
        1,
        "a restart changes nothing"
    );
    let shared = [
        "--database-url",
        url.as_str(),
        "--clickhouse-database",
        one.server.database(),
    ];
    let other = Watched::with(&shared).await;
    one.server.end().await;
    other.rate_becomes(0.5).await;
    let path = format!("alert-rules/{}", made["id"].as_str().unwrap());
    assert_eq!(other.call(Method::DELETE, &path, None).await.status, 204);
    other.rate_becomes(ONE_PERCENT).await;
    let action = other.action("ended").await;
    assert_eq!(
        action["because"],
        "the incident ended: the rule was deleted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_an_action_name_their_fields() {
    let watched = Watched::start().await;
    for (action, path) in [
        (json!({}), "action"),
        (json!({"sampling": {"janks": 2}}), "action.sampling.janks"),
        (
            json!({"sampling": {"janks": 1}, "hours": 169}),
            "action.hours",
        ),
        (
            json!({"sampling": {"janks": 1}, "events_per_day": 0}),
            "action.events_per_day",
        ),
        (json!({"sampling": {"junk": 1}}), "action.sampling.junk"),
        (json!({"tracing": true}), "action.tracing"),
    ] {
        let mut rule = acting(action);
        if path == "action.tracing" {
            rule["metric"]["by"] = json!([]);
        }
        let refused = watched.call(Method::POST, "alert-rules", Some(rule)).await;
        assert_eq!(refused.outcome(), (422, "alert_rule_invalid".to_owned()));
        assert_eq!(refused.body["faults"][0]["path"], path, "{}", refused.body);
    }
}
