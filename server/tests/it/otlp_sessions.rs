//! Requests of OpenTelemetry with many sessions, as collectors send them.

use serde_json::{Value, json};

use crate::otlp::{phone, send, span, text};
use crate::server::{NOW, Server};

const HOUR_NS: u64 = 3_600_000_000_000;

/// A span of session `number % 1000`, `number / 1000` hours ago.
fn one_of_many(number: u64) -> Value {
    let start = NOW.unsigned_abs() * 1_000 - HOUR_NS * (number / 1_000) - 1_000_000;
    let mut one = span("tap", number + 1);
    one["startTimeUnixNano"] = json!(start.to_string());
    one["endTimeUnixNano"] = json!((start + 1_000).to_string());
    let session = format!("session {}", number % 1_000);
    one["attributes"] = json!([text("session.id", &session)]);
    one
}

#[tokio::test(flavor = "multi_thread")]
async fn the_values_of_a_session_are_not_repeated_for_each_of_its_hours() {
    let server = Server::start().await;
    let long = "x".repeat(1_000);
    let mut resource = phone();
    let attributes = resource["attributes"].as_array_mut().unwrap();
    for name in ["service.version", "device.model.name", "user.id"] {
        attributes.push(text(name, &long));
    }
    let spans: Vec<Value> = (0..10_000).map(one_of_many).collect();
    let request =
        json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]});
    assert_eq!(send(&server, "traces", &request).await, (200, json!({})));
    let counts =
        "SELECT count(), uniqExact(session_id), uniqExact(toStartOfHour(start)) FROM spans";
    assert_eq!(server.stored(counts).await, "10000\t1000\t10");
}
