//! Percentiles are within 1 % of the values, whatever their sign and size, from raw rows and from roll-ups.

use serde_json::{Value, json};

use crate::alerts::Watched;
use crate::asked::Asked;
use crate::server::batch;

const HOURLY: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
const DAILY: &str = "from=2026-11-15T10:00:00Z&to=2026-11-20T13:00:00Z";

fn samples(name: &str, values: &[f64]) -> Value {
    let mut batch = batch();
    batch["metrics"] = values
        .iter()
        .map(|value| json!({"name": name, "time": "2026-11-20T11:59:00Z", "value": value}))
        .collect();
    batch
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// The value that this share of the values does not exceed.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let wanted = share * number(values.len()) - 1e-9;
    let place = (0..values.len()).find(|place| number(place + 1) >= wanted);
    sorted[place.unwrap()]
}

fn assert_near(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    let near = (found - expected).abs() <= 0.0101 * expected.abs();
    assert!(near, "{what}: {found} is not about {expected}");
}

fn assert_percentiles(row: &Value, values: &[f64], what: &str) {
    for (place, share) in [0.5, 0.75, 0.95, 0.0, 1.0].into_iter().enumerate() {
        let what = format!("{what}, {share}");
        assert_near(&row["values"][place], quantile(values, share), &what);
    }
}

/// Each bound is at least the largest value of its bucket.
fn assert_shape(shape: &Value, values: &[f64]) {
    let bounds: Vec<f64> = serde_json::from_value(shape["bounds"].clone()).unwrap();
    assert!(bounds.is_sorted(), "{shape}");
    let counts: Vec<f64> = serde_json::from_value(shape["series"][0]["counts"].clone()).unwrap();
    let mut below = 0.0;
    for (bound, count) in bounds.iter().zip(counts) {
        below += count;
        let slack = 1e-9 * bound.abs();
        let held = values.iter().filter(|value| **value <= bound + slack);
        assert!(
            (number(held.count()) - below).abs() < 1e-6,
            "{bound} in {shape}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn percentiles_of_values_below_zero_are_those_of_the_values() {
    let metrics: [(&str, Vec<f64>); 8] = [
        (
            "signal_dbm",
            (0..51).map(|place| f64::from(place) - 110.0).collect(),
        ),
        (
            "offset_ms",
            (-40..60).map(|place| f64::from(place) / 3.0).collect(),
        ),
        (
            "temperature_c",
            vec![-0.004, -0.003, -0.002, 0.0, 0.0, 0.0, 0.002],
        ),
        ("around_zero", vec![-1e-12, -1e-9, -0.5, 1e-12, 1e-9, 0.5]),
        (
            "huge",
            vec![-1e240, -3e200, -1e38, -1.0, 1.0, 1e38, 3e200, 1e240],
        ),
        ("tiny", vec![-3e-17, -2e-17, 2e-17, 3e-17]),
        ("one", vec![-80.0]),
        ("above", vec![0.25, 1.0, 60.0, 61.0, 4e9]),
    ];
    let batches = metrics.iter().map(|(name, values)| samples(name, values));
    let batches: Vec<Value> = batches.collect();
    let asked = Asked::of(&batches).await;
    for (period, rest, source) in [
        (HOURLY, "&locale=", "raw"),
        (HOURLY, "", "hourly"),
        (DAILY, "", "daily"),
    ] {
        let path = format!(
            "query/metrics?by=name&measure=p50&measure=p75&measure=p95&measure=min&measure=max&measure=sum&{period}{rest}"
        );
        let answer = asked.ask(&path).await.body;
        assert_eq!(answer["source"], source);
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(rows.len(), metrics.len());
        for (name, values) in &metrics {
            let row = rows.iter().find(|row| row["keys"][0] == *name).unwrap();
            assert_percentiles(row, values, &format!("{name}, {source}"));
            let expected: f64 = values.iter().sum();
            let sizes: f64 = values.iter().copied().map(f64::abs).sum();
            let sum = row["values"][5].as_f64().unwrap();
            let is_right = (sum - expected).abs() <= 1e-9 * sizes;
            assert!(is_right, "{name}, {source}: {sum}");
            let path =
                format!("query/metrics/distribution?field=values&name={name}&{period}{rest}");
            let shape = asked.ask(&path).await.body;
            assert_shape(&shape, values);
        }
    }
    // Grafana reads the view.
    let view = "SELECT quantileExactWeighted(0.5)(value, toUInt64(weight)) FROM dash_metric_values WHERE name = 'signal_dbm'";
    let median: f64 = asked.server.query(view).await.parse().unwrap();
    assert_near(&json!(median), -85.0, "view");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_began_before_their_page_have_offsets_below_zero() {
    let mut batch = batch();
    let request = |offset: i32| json!({"path": "/cart", "duration_ms": 20, "offset_ms": offset, "status": 200});
    batch["page_loads"] = json!([{
        "page": "Cart", "start": "2026-11-20T11:59:00Z", "total_ms": 900, "outcome": "completed",
        "requests": [request(-300), request(-200), request(-100), request(50), request(60)],
    }]);
    let asked = Asked::of(&[batch]).await;
    let path = format!("query/page_requests?measure=offset_p50_ms&{HOURLY}");
    let answer = asked.ask(&path).await.body;
    assert_near(&answer["rows"][0]["values"][0], -100.0, "offset");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_on_a_median_below_zero_fires() {
    let watched = Watched::start().await;
    let values: Vec<f64> = (0..40).map(|place| f64::from(place) - 110.0).collect();
    watched.send(samples("signal_dbm", &values)).await;
    watched.server.drained().await;
    watched
        .rule(json!({
            "name": "The signal is weak",
            "metric": {"signal": "metrics", "measure": "p50", "filters": {"name": ["signal_dbm"]}},
            "window_minutes": 30, "for_minutes": 0, "least_samples": 10,
            "condition": {"kind": "threshold", "below": -85},
        }))
        .await;
    let found = watched.incidents(|all| all.len() == 1).await;
    assert_near(&found[0]["evidence"]["numbers"]["value"], -91.0, "alert");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_no_bucket_holds_are_refused() {
    let asked = Asked::of(&[]).await;
    let answer = asked
        .server
        .send(&samples("huge", &[1e241, -1e300, 1e240]))
        .await;
    let codes = answer.body["rejected"].as_array().unwrap().iter();
    let codes: Vec<_> = codes.map(|one| one["code"].clone()).collect();
    assert_eq!(codes, ["value_out_of_range", "value_out_of_range"]);
    // What is left of 0 after arithmetic is 0 in a distribution.
    let tiny = samples("tiny", &[-3e-100, 3e-100, 3e-100, 5e-324]);
    assert_eq!(asked.server.send(&tiny).await.status, 202);
    asked.server.drained().await;
    let path = format!("query/metrics?name=tiny&measure=p50&measure=mean&{HOURLY}");
    let answer = asked.ask(&path).await.body;
    assert_eq!(answer["rows"][0]["values"][0], json!(0.0));
    assert_near(&answer["rows"][0]["values"][1], 0.75e-100, "mean");
}

#[tokio::test(flavor = "multi_thread")]
async fn roll_ups_of_older_servers_are_read_as_before() {
    let asked = Asked::of(&[samples("older", &[-80.0, -80.0, 40.0])]).await;
    let old = "INSERT INTO metrics_hourly (hour, project, name, app_id, count, samples, values) \
         VALUES ('2026-11-20 11:00:00', 'default', 'older', 'com.example.shop', 2, 2, map(-2000, 1., 187, 4.))";
    asked.server.query(old).await;
    let path = format!("query/metrics?name=older&measure=p50&measure=count&{HOURLY}");
    let answer = asked.ask(&path).await.body;
    assert_eq!(answer["source"], "hourly");
    assert_near(&answer["rows"][0]["values"][0], 40.0, "old and new rows");
}
