//! Numbers of events that cannot be true are rejected, so that the sums of all events neither wrap nor become infinite.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::ingest::EXAMPLE;
use crate::server::{Server, batch};

const PERIOD: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";

/// The largest number of 64 bits of an event.
const LARGEST: u64 = 1 << 42;

/// All numbers of 64 bits of the events of a batch.
const NUMBERS: [&str; 15] = [
    "/spans/0/uptime_ms",
    "/frame_windows/0/uptime_ms",
    "/janks/0/uptime_ms",
    "/page_loads/0/uptime_ms",
    "/metrics/0/uptime_ms",
    "/metrics/0/count",
    "/recompositions/0/uptime_ms",
    "/traffic/0/tx_bytes",
    "/traffic/0/rx_bytes",
    "/traffic/0/requests",
    "/traffic/0/failed_requests",
    "/sdk_health/overhead_us",
    "/sdk_health/queue_bytes",
    "/sdk_health/upload_bytes",
    "/sdk_health/dropped/0/count",
];

/// The signals that are sampled.
const SAMPLED: [&str; 7] = [
    "/spans/0",
    "/frame_windows/0",
    "/janks/0",
    "/page_loads/0",
    "/metrics/0",
    "/app_starts/0",
    "/recompositions/0",
];

/// Sends the example with another value of a field. Returns the codes of rejected events.
async fn rejected(server: &Server, event: &str, field: &str, value: &Value) -> Vec<Value> {
    let mut sent: Value = serde_json::from_str(EXAMPLE).unwrap();
    sent["batch_id"] = json!(Uuid::new_v4());
    sent.pointer_mut(event).unwrap()[field] = value.clone();
    let answer = server.send(&sent).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let rejected = answer.body["rejected"].as_array().unwrap().iter();
    rejected.map(|one| one["code"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_signal_has_a_number_that_cannot_be_true() {
    let server = Server::start().await;
    for place in NUMBERS {
        let (event, field) = place.rsplit_once('/').unwrap();
        let codes = rejected(&server, event, field, &json!(LARGEST)).await;
        assert_eq!(codes, [""; 0], "{place}");
        for number in [LARGEST + 1, u64::MAX] {
            let codes = rejected(&server, event, field, &json!(number)).await;
            assert_eq!(codes, ["value_out_of_range"], "{place}: {number}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_signal_has_a_sample_rate_near_zero() {
    let server = Server::start().await;
    for event in SAMPLED {
        let codes = rejected(&server, event, "sample_rate", &json!(1e-9)).await;
        assert_eq!(codes, [""; 0], "{event}");
        for rate in [9e-10, 1e-300, 5e-324] {
            let codes = rejected(&server, event, "sample_rate", &json!(rate)).await;
            assert_eq!(codes, ["sample_rate_out_of_range"], "{event}: {rate:e}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_numbers_have_the_same_sums_in_raw_rows_and_in_roll_ups() {
    let mut sent = batch();
    sent["resource"]["locale"] = json!("de-DE");
    let bytes = json!({"day": "2026-11-20", "source": "api", "tx_bytes": LARGEST});
    sent["traffic"] = json!([bytes, bytes]);
    let dropped = json!({"signal": "spans", "reason": "queue_full", "count": LARGEST});
    sent["sdk_health"] = json!({"dropped": [dropped, dropped], "overhead_us": LARGEST});
    let asked = Asked::of(&[sent]).await;
    for (measure, expected) in [
        ("traffic?measure=tx_bytes", 8_796_093_022_208.0),
        ("sdk_drops?measure=count", 8_796_093_022_208.0),
        ("sdk_health?measure=overhead_us", 4_398_046_511_104.0),
    ] {
        // No roll-up has the locale.
        for filter in ["", "&locale=de-DE"] {
            let path = format!("query/{measure}&{PERIOD}{filter}");
            let answer = asked.ask(&path).await.body;
            let sum = &answer["rows"][0]["values"][0];
            assert_eq!(*sum, json!(expected), "{path}: {answer}");
        }
    }
}
