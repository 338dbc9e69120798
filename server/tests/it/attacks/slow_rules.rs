//! Rules of a project that are slow to apply to a name: classification rules with large expressions, and many scrubbing rules.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::target::Target;
use crate::server::span;

const LASTS: Duration = Duration::from_secs(3);

/// Sends batches over several connections. Returns the statuses other than 202 and 503.
async fn send(target: &Target, batch: impl Fn() -> Value) -> Vec<u16> {
    let until = Instant::now() + LASTS;
    let senders = (0..6).map(|_| async {
        let mut wrong = Vec::new();
        while Instant::now() < until {
            let request = target.client.post(format!("{}/v1/ingest", target.url()));
            let request = request.bearer_auth(&target.key).json(&batch());
            let status = request.send().await.unwrap().status().as_u16();
            wrong.extend((![202, 503].contains(&status)).then_some(status));
        }
        wrong
    });
    join_all(senders).await.concat()
}

fn batch() -> Value {
    let now = unjank_protocol::Timestamp::from_micros(
        time::OffsetDateTime::now_utc().unix_timestamp() * 1_000_000,
    );
    json!({
        "batch_id": Uuid::new_v4(), "session_id": Uuid::new_v4(), "sent_at": now,
        "resource": {"app_id": "com.example.shop", "app_version": "1", "install_id": Uuid::new_v4()},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn classification_rules_with_large_expressions_do_not_disturb_others() {
    let target = Target::start().await;
    // Each byte of a name keeps thousands of states of the automaton alive.
    let rule = |index: usize| {
        format!("[[rule]]\nregex = '(?-u:[ab]*a[ab]{{200}}{index})'\nmeans = \"ignore\"\n")
    };
    let rules: String = (0..250).map(rule).collect();
    let saved = json!({"expected_revision": 0, "rules": rules});
    target
        .call(Method::PUT, "/api/v1/projects/attacked/rules", &saved)
        .await;
    let janks = || {
        let mut batch = batch();
        let start = batch["sent_at"].clone();
        let stack = || {
            (0..64)
                .map(|_| json!({"class": random_name()}))
                .collect::<Value>()
        };
        let jank = |_| json!({"start": start, "duration_ms": 900, "stack": stack()});
        batch["janks"] = (0..8).map(jank).collect();
        batch
    };
    let (wrong, others) = target.others_during(send(&target, janks)).await;
    assert!(wrong.is_empty(), "{wrong:?}");
    others.are_served();
}

#[tokio::test(flavor = "multi_thread")]
async fn scrubbing_rules_that_feed_each_other_do_not_disturb_others() {
    let target = Target::start().await;
    let grow = json!({"name": "a".repeat(32), "pattern": "a"});
    let search = json!({"name": "x", "pattern": "[a-z]*!|x"});
    for rule in [grow, search] {
        let rules = json!({"rules": vec![rule; 20]});
        target
            .call(Method::PUT, "/api/v1/projects/attacked/scrubbing", &rules)
            .await;
        let (wrong, others) = target.others_during(send(&target, long_names)).await;
        assert!(wrong.is_empty(), "{wrong:?}");
        others.are_served();
    }
}

/// Spans whose names have many matches.
fn long_names() -> Value {
    let mut batch = batch();
    let start = batch["sent_at"].clone();
    let span = |index: usize| {
        let mut span = span();
        span["start"] = start.clone();
        span["name"] = json!(format!("{index}{}", "ax".repeat(400)));
        span
    };
    batch["spans"] = (0..200).map(span).collect();
    batch
}

/// 256 letters, each a or b.
fn random_name() -> String {
    let bits = Uuid::new_v4().as_u128();
    let letter = |bit: u32| ["a", "b"][usize::from(bits >> (bit % 128) & 1 == 1)];
    (0..256).map(letter).collect()
}
