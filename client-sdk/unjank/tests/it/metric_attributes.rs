//! Attributes of metrics, and the time since the last value.

use std::time::Duration;

use serde_json::{Value, json};
use unjank::Mode;

use crate::collector::Running;

#[test]
fn metrics_have_attributes_and_the_time_since_the_last_value_with_the_same_ones() {
    let running = Running::start();
    let images = [("cache", "images"), ("tier", "disk")];
    unjank::metric_with("cache_bytes", 1.0, &images);
    unjank::metric_with("cache_bytes", 2.0, &[("cache", "texts")]);
    unjank::metric("cache_bytes", 3.0);
    std::thread::sleep(Duration::from_millis(20));
    unjank::metric_with("cache_bytes", 4.0, &images);
    running.flush();
    let metrics = running.collector.events("metrics");
    let mut attributes: Vec<Value> = metrics
        .iter()
        .map(|one| one["attributes"].clone())
        .collect();
    let last = attributes.pop().unwrap();
    assert_eq!(
        attributes,
        [
            json!({"cache": "images", "tier": "disk"}),
            json!({"cache": "texts"}),
            json!({})
        ]
    );
    let since: u64 = last["since_last_ms"].as_str().unwrap().parse().unwrap();
    assert!((20..10_000).contains(&since), "{since}");
    assert_eq!(
        (&last["cache"], &last["tier"]),
        (&json!("images"), &json!("disk"))
    );
}

#[test]
fn samples_have_attributes_and_are_aggregated_by_them() {
    let settings = json!({"monitors": {"cache": {"interval_ms": 3_600_000}}});
    let running = Running::with(|config| {
        config
            .mode(Mode::Test)
            .local_settings(settings)
            .local_wins(true)
    });
    for value in [90.0, 100.0] {
        unjank::sample_with("cache", "cache_hit_percent", value, &[("cache", "images")]);
    }
    unjank::sample_with("cache", "cache_hit_percent", 10.0, &[("cache", "texts")]);
    running.flush();
    let metrics = running.collector.events("metrics");
    let read: Vec<_> = metrics
        .iter()
        .map(|one| {
            (
                one["attributes"]["cache"].clone(),
                one["value"].clone(),
                one["count"].clone(),
            )
        })
        .collect();
    assert_eq!(
        read,
        [
            (json!("images"), json!(95.0), json!(2)),
            (json!("texts"), json!(10.0), Value::Null)
        ]
    );
}

#[test]
fn the_time_since_the_last_value_is_counted_from_values_that_sampling_left_out() {
    let running = Running::with(|config| config);
    running.learns(json!({"sampling": {"metrics": 0.0}}));
    unjank::metric("cache_bytes", 1.0);
    running.learns(json!({"sampling": {"metrics": 1.0}}));
    unjank::metric("cache_bytes", 2.0);
    running.flush();
    let metrics = running.collector.events("metrics");
    assert_eq!(metrics.len(), 1, "{metrics:?}");
    let since = metrics[0]["attributes"]["since_last_ms"].as_str();
    assert!(since.unwrap().parse::<u64>().is_ok());
}
