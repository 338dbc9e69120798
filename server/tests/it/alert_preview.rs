//! Previews: when a rule would have fired on past data, the judged numbers, and the skipped groups.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::alerts::{Watched, slow_checkout, spans};

/// The spans of `spans` start here.
const STARTED: i64 = 1_795_176_000_000_000 - 60_000_000;
const STEP: i64 = 900_000_000;

impl Watched {
    async fn preview(&self, rule: &Value, days: u64) -> Value {
        let asked = json!({"rule": rule, "days": days});
        let preview = self.call(Method::POST, "alert-rules/preview", Some(asked));
        let preview = preview.await;
        assert_eq!(preview.status, 200, "{}", preview.body);
        preview.body
    }
}

fn whats(preview: &Value) -> Vec<&str> {
    let happened = preview["transitions"].as_array().unwrap();
    happened
        .iter()
        .map(|one| one["what"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_when_a_rule_would_have_fired_and_saves_nothing() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    watched.server.pass(Duration::from_hours(4));
    let preview = watched.preview(&slow_checkout(), 1).await;
    assert_eq!(
        (&preview["fired"], &preview["complete"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(whats(&preview), ["fired", "resolved"]);
    // The rule fires at the first step after the spans of 11:59. A step is a quarter of an hour.
    let at = preview["transitions"][0]["at"].as_i64().unwrap();
    assert!((STARTED..=STARTED + STEP).contains(&at), "{at}");
    assert_eq!(watched.incidents(|_| true).await.len(), 0);
    let templates = watched.get("alert-rules/templates").await;
    assert_eq!(templates["templates"].as_array().unwrap().len(), 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_ends_now_and_has_the_judged_numbers_and_their_bounds() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 20])).await;
    watched.server.drained().await;
    watched.server.pass(Duration::from_hours(4));
    let preview = watched.preview(&slow_checkout(), 1).await;
    let times: Vec<i64> = serde_json::from_value(preview["times"].clone()).unwrap();
    let day = 86_400_000_000;
    assert_eq!(preview["until"], json!(times.last().unwrap()));
    assert_eq!(preview["from"], json!(times[0]));
    assert_eq!(times.last().unwrap() - times[0], day);
    assert!(times.is_sorted(), "{times:?}");
    let line = &preview["lines"][0];
    assert_eq!(line["group"], json!({"name": "checkout"}));
    let number = |list: &Value, at: i64| {
        let place = times.iter().position(|time| *time == at).unwrap();
        list[place].as_f64()
    };
    let fired = preview["transitions"][0]["at"].as_i64().unwrap();
    let value = number(&line["values"], fired).unwrap();
    assert!((value / 800_000.0 - 1.0).abs() < 0.02, "{value}");
    assert_eq!(number(&line["bounds"], fired), Some(500_000.0));
    assert_eq!(
        number(&line["values"], times[0]),
        None,
        "nothing was judged"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_names_skipped_groups_with_the_reason() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[800; 5])).await;
    watched.server.drained().await;
    watched.server.pass(Duration::from_mins(1));
    let few = watched.preview(&slow_checkout(), 1).await;
    assert_eq!(whats(&few), [""; 0]);
    assert_eq!(few["groups"], 1);
    assert_eq!(
        few["skipped"],
        json!([{"group": {"name": "checkout"}, "reason": "too_few_samples", "evaluations": 1, "samples": 5.0}])
    );
    assert_eq!(few["skipped_groups"], 1);
    // With a single version, there is no base to compare it with.
    let mut regression = slow_checkout();
    regression["least_samples"] = json!(5);
    regression["condition"] = json!({"kind": "regression"});
    let alone = watched.preview(&regression, 1).await;
    assert_eq!(
        alone["skipped"],
        json!([{"group": {"app_id": "com.example.shop"}, "reason": "no_base", "evaluations": 1, "samples": 5.0}])
    );
    let mut muted = slow_checkout();
    muted["mute_windows"] = json!([{"from": "00:00", "to": "00:00"}]);
    let muted = watched.preview(&muted, 1).await;
    assert_eq!(muted["muted_evaluations"], muted["evaluations"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_finds_a_group_that_did_not_occur_before() {
    let watched = Watched::start().await;
    let appears = json!({
        "name": "A new span", "metric": {"signal": "spans", "measure": "count", "by": ["name"]},
        "window_minutes": 60, "for_minutes": 0, "least_samples": 10,
        "condition": {"kind": "appearance", "unseen_days": 7},
    });
    watched.send(spans("4.12.0", &[100; 20])).await;
    watched.server.drained().await;
    watched.server.pass(Duration::from_mins(1));
    // Nothing was stored before, so the preview cannot know which groups are new.
    let first = watched.preview(&appears, 1).await;
    assert_eq!(
        (first["fired"].as_u64(), &first["skipped"][0]["reason"]),
        (Some(0), &json!("no_base"))
    );
    watched.server.pass(Duration::from_hours(2));
    let mut both = spans("4.12.0", &[100; 40]);
    both["sent_at"] = json!("2026-11-20T14:01:00Z");
    for (place, span) in both["spans"].as_array_mut().unwrap().iter_mut().enumerate() {
        span["start"] = json!("2026-11-20T14:00:00Z");
        span["name"] = json!(["checkout", "refund"][place % 2]);
    }
    watched.send(both).await;
    watched.server.drained().await;
    watched.rule(appears).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    assert_eq!(found[0]["group"], json!({"name": "refund"}));
    let summary = found[0]["summary"].as_str().unwrap();
    assert_eq!(summary, "New: refund, 20 times, never in the 7 days before");
    // An hour later, the group is known.
    watched.server.pass(Duration::from_mins(70));
    watched.incidents(|all| all[0]["state"] == "resolved").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_new_groups_than_a_filter_has_values_are_found() {
    let watched = Watched::start().await;
    watched.send(spans("4.12.0", &[100; 20])).await;
    watched.server.drained().await;
    watched.server.pass(Duration::from_mins(121));
    let mut many = spans("4.12.0", &[100; 300]);
    many["sent_at"] = json!("2026-11-20T14:01:00Z");
    for (place, span) in many["spans"].as_array_mut().unwrap().iter_mut().enumerate() {
        span["start"] = json!("2026-11-20T14:00:00Z");
        span["name"] = json!(format!("screen {place}"));
    }
    watched.send(many).await;
    watched.server.drained().await;
    let appears = json!({
        "name": "A new span", "metric": {"signal": "spans", "measure": "count", "by": ["name"]},
        "window_minutes": 60, "for_minutes": 0, "least_samples": 1,
        "condition": {"kind": "appearance", "unseen_days": 7},
    });
    let found = watched.preview(&appears, 1).await;
    assert_eq!(found["fired"], 300);
}
