//! Documents that are short and take long to compile.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::target::Target;

const LASTS: Duration = Duration::from_secs(3);

/// Sends a body again and again over several connections with a viewer's token. Returns the last response that is not a 503.
async fn send(target: &Target, path: &str, body: &Value) -> (u16, Value) {
    let until = Instant::now() + LASTS;
    let body = body.to_string();
    let senders = (0..6).map(|_| async {
        let mut last = (0, Value::Null);
        while Instant::now() < until {
            let url = format!("{}/api/v1/projects/attacked/{path}", target.url());
            let request = target.client.request(Method::POST, url);
            let request = request.bearer_auth(&target.viewer);
            let request = request.header("content-type", "application/json");
            let response = request.body(body.clone()).send().await.unwrap();
            let status = response.status().as_u16();
            let answer = response.json().await.unwrap();
            if status != 503 {
                last = (status, answer);
            }
        }
        last
    });
    let last = join_all(senders).await;
    last.into_iter().find(|last| last.0 != 0).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewers_regular_expressions_do_not_disturb_others() {
    let target = Target::start().await;
    let list = |count: usize| vec![r"\w{40}"; count];
    let configuration = json!({"base": {"tracing": {"allow": list(2_000)}}});
    let (answer, others) = target
        .others_during(send(&target, "config/check", &configuration))
        .await;
    assert_eq!((answer.0, &answer.1["valid"]), (200, &json!(false)));
    // The list is too long, so the server compiles none of its expressions.
    assert_eq!(answer.1["faults"].as_array().unwrap().len(), 1);
    others.are_served();

    let patch = |index: usize| {
        let patch = json!({"tracing": {"allow": list(900), "deny": list(900)}});
        json!({"id": format!("o{index}"), "when": {"all": []}, "patch": patch})
    };
    let overrides: Vec<Value> = (0..100).map(patch).collect();
    let configuration = json!({"base": {}, "overrides": overrides});
    assert!(configuration.to_string().len() < 2 << 20);
    for path in ["config/check", "config/preview"] {
        let (answer, others) = target
            .others_during(send(&target, path, &configuration))
            .await;
        let faults = answer.1["faults"].as_array().unwrap();
        assert_eq!(faults.len(), 100, "{answer:?}");
        others.are_served();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewers_classification_rules_do_not_disturb_others() {
    let target = Target::start().await;
    let rules = |regex: &str, count: usize| {
        let rule = format!("[[rule]]\nregex = '{regex}'\nmeans = \"ignore\"\n");
        json!({"rules": rule.repeat(count)})
    };
    // Many rules within the limits, and many rules beyond them.
    for (rules, valid) in [
        (rules(r"\w+x", 100), true),
        (rules(r"\w{12}", 5_000), false),
    ] {
        let attack = send(&target, "rules/check", &rules);
        let (answer, others) = target.others_during(attack).await;
        assert_eq!((answer.0, &answer.1["valid"]), (200, &json!(valid)));
        others.are_served();
        let attack = send(&target, "rules/dry-run", &rules);
        let (_, others) = target.others_during(attack).await;
        others.are_served();
    }
}
