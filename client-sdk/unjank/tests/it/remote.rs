//! The remote configuration, from the server's response to its effect in the running app.

use std::time::Duration;

use serde_json::{Value, json};
use unjank::AppStartKind;

use crate::collector::{Running, receipt, refusal};

#[test]
fn a_receipt_announces_a_change_and_the_next_span_follows_it() {
    let running = Running::with(|config| config);
    running
        .collector
        .configure(json!({"sampling": {"spans": {"default": 0.0}, "metrics": 1.0}}));
    let etag = running.collector.etag();
    running.collector.answer(move |batch| {
        let body = json!({"batch_id": batch["batch_id"], "accepted": 1, "config_etag": etag});
        Ok(unjank::Response {
            body: body.to_string().into_bytes(),
            ..receipt(batch)
        })
    });
    running.polled(1);
    running.flush();
    assert!(!unjank::span("checkout").is_recorded());
    let polls = running.collector.polls();
    running.collector.configure(json!({"sampling": {"spans": {"default": 0.0, "overrides": [{"name": "check*", "rate": 1.0}]}}}));
    let etag = running.collector.etag();
    running.collector.answer(move |batch| {
        let body = json!({"batch_id": batch["batch_id"], "accepted": 1, "config_etag": etag});
        Ok(unjank::Response {
            body: body.to_string().into_bytes(),
            ..receipt(batch)
        })
    });
    // The batch with this metric cannot have been sent before the collector knew the change.
    unjank::metric("one", 1.0);
    running.flush();
    running.polled(polls + 1);
    assert!(unjank::span("checkout").is_recorded());
    assert!(!unjank::span("search").is_recorded());
}

#[test]
fn the_last_configuration_applies_at_the_next_start_before_any_poll() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::with(|config| config.data_dir(folder.path()));
    running.collector.configure(json!({"sampling": {"spans": {"default": 1.0}}, "toggles": {"new_cart": true}, "poll_interval_s": 60}));
    let polls = running.collector.polls();
    running.restart(|config| config.data_dir(folder.path()));
    running.polled(polls + 1);
    let polls = running.collector.polls();
    running.restart(|config| {
        config
            .data_dir(folder.path())
            .start_jitter(Duration::from_secs(3_600))
    });
    running.flush();
    assert_eq!(running.collector.polls(), polls);
    assert_eq!(unjank::toggle("new_cart"), Some(json!(true)));
    assert!(unjank::span("checkout").is_recorded());
    unjank::span("checkout").end();
    running.flush();
    assert!(running.collector.batches().last().unwrap()["config_revision"].as_u64() > Some(1));
}

#[test]
fn a_configuration_that_disables_collection_sets_no_toggle() {
    let running = Running::with(|config| config);
    running.collector.configure(json!({"enabled": false}));
    running.polled(1);
    running.flush();
    // The first poll may have been served before the change.
    assert_eq!(unjank::toggle("x"), None);
}

#[test]
fn a_short_program_gets_its_configuration_and_the_next_start_knows_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let short = |config: unjank::Config| {
        config
            .data_dir(folder.path())
            .start_jitter(Duration::from_secs(3_600))
    };
    let mut running = Running::with(|config| config.start_disabled(true));
    running
        .collector
        .configure(json!({"sampling": {"spans": {"default": 1.0}}, "toggles": {"new_cart": true}}));
    // A run that ends before the first poll would be due.
    running.restart(short);
    running.restart(short);
    assert_eq!(running.collector.polls(), 1);
    assert_eq!(unjank::toggle("new_cart"), Some(json!(true)));
    assert!(unjank::span("first").is_recorded());
    // Each start knows it, whichever thread runs first. It is fresh, so none fetches it again.
    for _ in 0..20 {
        running.restart(short);
        assert_eq!(unjank::toggle("new_cart"), Some(json!(true)));
        assert!(unjank::span("first").is_recorded());
    }
    assert_eq!(running.collector.polls(), 1);
}

#[test]
fn traffic_is_not_sampled() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::with(|config| config.data_dir(folder.path()));
    running
        .collector
        .configure(json!({"sampling": {"session_rate": 0.0, "metrics": 1.0}}));
    let polls = running.collector.polls();
    running.restart(|config| config.data_dir(folder.path()));
    running.polled(polls + 1);
    unjank::metric("unsampled", 1.0);
    unjank::traffic(unjank::Transferred {
        host: "api.example.com",
        tx_bytes: 5,
        ..unjank::Transferred::default()
    });
    running.flush();
    assert_eq!(running.collector.events("traffic").len(), 1);
    assert!(running.collector.events("metrics").is_empty());
}

#[test]
fn a_session_that_is_not_sampled_reports_its_losses() {
    let running = Running::with(|config| config);
    running.learns(json!({"sampling": {"session_rate": 0.0}}));
    let upload = || {
        unjank::traffic(unjank::Transferred {
            host: "api.example.com",
            ..unjank::Transferred::default()
        });
        running.flush();
    };
    running
        .collector
        .answer(|_| Ok(refusal(422, "invalid_resource")));
    upload();
    running.collector.answer(|batch| Ok(receipt(batch)));
    unjank::span("unsampled").end();
    upload();
    let batches = running.collector.batches();
    let lost = batches.iter().map(|batch| &batch["sdk_health"]["dropped"]);
    let lost: Vec<&Value> = lost.filter_map(Value::as_array).flatten().collect();
    assert_eq!(
        lost,
        [&json!({"signal": "traffic", "reason": "refused", "count": 1})]
    );
    assert!(running.collector.events("spans").is_empty());
}

#[test]
fn an_app_start_has_the_rate_of_sessions_when_it_ends() {
    let running = Running::with(|config| config);
    // Hardly any session is sampled, so this one is not.
    running.learns(json!({"sampling": {"session_rate": 0.000_001}}));
    unjank::app_start(AppStartKind::Hot).finish();
    // A first launch: the configuration arrives during the start.
    let start = unjank::app_start(AppStartKind::Cold);
    // Almost all sessions are sampled, so this one is.
    let rate = 0.999_999;
    running.learns(json!({"sampling": {"session_rate": rate}}));
    start.finish();
    let start = unjank::app_start(AppStartKind::Warm);
    running.learns(json!({}));
    start.finish();
    running.flush();
    let starts = running.collector.events("app_starts");
    let seen: Vec<_> = starts
        .iter()
        .map(|start| (start["kind"].as_str(), start["sample_rate"].as_f64()))
        .collect();
    assert_eq!(seen, [(Some("cold"), Some(rate)), (Some("warm"), None)]);
}
