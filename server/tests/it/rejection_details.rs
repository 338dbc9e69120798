//! What the receipt says about events that a new client gets wrong: the field, its place, its value and what is allowed.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::server::{Server, batch, span};

/// A batch with every signal and every list.
const EXAMPLE: &str = include_str!("../../../client-sdk/columns/tests/golden/batch_v2.json");

/// Sends a batch. Returns `code: detail` of its rejected events.
async fn rejected(server: &Server, batch: &Value) -> Vec<String> {
    let answer = server.send(batch).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let rejected = answer.body["rejected"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rejected
        .map(|one| format!("{}: {}", text(&one["code"]), text(&one["detail"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_text_or_list_is_like_null() {
    let server = Server::away(&[]).await;
    for (place, is_name) in [
        ("/spans/0/name", true),
        ("/traffic/0/source", true),
        ("/page_loads/0/page", true),
        ("/metrics/0/name", true),
        ("/recompositions/0/function", true),
        ("/spans/2/events/0/name", false),
        ("/janks/0/samples/0/stack", false),
        ("/janks/0/run_log/0/message", false),
        ("/page_loads/0/requests/0/path", false),
        ("/app_starts/0/phases/0/name", false),
    ] {
        let (parent, field) = place.rsplit_once('/').unwrap();
        let expected = match is_name {
            true => vec![format!("name_missing: `{field}` is missing or empty")],
            false => Vec::new(),
        };
        let mut sent: Value = serde_json::from_str(EXAMPLE).unwrap();
        sent["batch_id"] = json!(Uuid::new_v4());
        *sent.pointer_mut(place).unwrap() = Value::Null;
        assert_eq!(rejected(&server, &sent).await, expected, "{place}");
        sent["batch_id"] = json!(Uuid::new_v4());
        let parent = sent.pointer_mut(parent).unwrap();
        parent.as_object_mut().unwrap().remove(field);
        assert_eq!(rejected(&server, &sent).await, expected, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_metric_the_value_is_the_missing_minimum_and_maximum() {
    let server = Server::start().await;
    let metric = |rest: Value| {
        let mut metric = json!({"name": "fps", "time": "2026-11-20T11:59:58Z"});
        metric
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        metric
    };
    let mut sent = batch();
    sent["metrics"] = [
        json!({"value": 1, "min": 5}),
        json!({"value": 1, "max": 0.5}),
        json!({"value": 2, "min": 3, "max": 1}),
        json!({"value": 1, "count": 0}),
        json!({"value": 1, "count": (1_u64 << 42) + 1}),
        json!({"value": 1, "min": 0}),
        json!({"value": 2, "max": 2}),
        json!({"value": -3}),
        // A mean of few digits can be outside of its values.
        json!({"value": 9, "min": 1, "max": 2, "count": 3}),
    ]
    .into_iter()
    .map(metric)
    .collect();
    insta::assert_snapshot!(rejected(&server, &sent).await.join("\n"), @r"
    value_out_of_range: `min` is 5e0, which is more than `value`: 1e0
    value_out_of_range: `value` is 1e0, which is more than `max`: 5e-1
    value_out_of_range: `min` is 3e0, which is more than `max`: 1e0
    count_out_of_range: `count` is 0, allowed is 1 to 4398046511104
    value_out_of_range: `count` is 4398046511105, allowed is 1 to 4398046511104
    ");
    let stored = "SELECT value, min, max, count FROM metrics ORDER BY value";
    assert_eq!(
        server.stored(stored).await,
        "-3\t-3\t-3\t1\n1\t0\t1\t1\n2\t2\t2\t1\n9\t1\t2\t3"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_names_the_place_and_what_is_allowed() {
    let server = Server::away(&[]).await;
    let at = |time: &str| {
        let mut span = span();
        span["start"] = json!(time);
        span
    };
    let unknown = |place: usize| {
        let mut jank = json!({"start": "2026-11-20T11:59:58Z", "duration_ms": 1, "stack": [{}], "samples": [
            {"offset_ms": 1, "stack": [{}]}, {"offset_ms": 2, "stack": [{}, {}]}]});
        let places = ["/stack/0", "/samples/1/stack/1"];
        jank.pointer_mut(places[place]).unwrap()["module_index"] = json!(3);
        jank
    };
    let dropped = |count: u64| json!({"signal": "spans", "reason": "queue_full", "count": count});
    let mut sent = batch();
    sent["spans"] = json!([at("2026-11-13T11:59:59Z"), at("2026-11-20T13:00:01Z")]);
    sent["traffic"] = json!([{"day": "2026-11-10", "source": "api"}]);
    sent["janks"] = json!([unknown(0), unknown(1)]);
    sent["sdk_health"] = json!({"dropped": [dropped(1), dropped(u64::MAX)]});
    let mut skewed = batch();
    skewed["sent_at"] = json!("2026-11-20T11:00:00Z");
    skewed["spans"] = json!([at("2026-11-20T12:00:01Z")]);
    let mut all = rejected(&server, &sent).await;
    all.extend(rejected(&server, &skewed).await);
    insta::assert_snapshot!(all.join("\n"), @r"
    time_out_of_range: 2026-11-13T11:59:59Z is too old or too far ahead; 7 days back and 60 minutes ahead are allowed
    time_out_of_range: 2026-11-20T13:00:01Z is too old or too far ahead; 7 days back and 60 minutes ahead are allowed
    unknown_module: `stack[0].module_index` is 3, but the batch has no such entry in `modules`
    unknown_module: `samples[1].stack[1].module_index` is 3, but the batch has no such entry in `modules`
    time_out_of_range: 2026-11-10 is too old or too far ahead; its noon (UTC) may be 9 days back and 2 days ahead
    value_out_of_range: `dropped[1].count` is 18446744073709551615, allowed is 0 to 4398046511104
    time_out_of_range: 2026-11-20T12:00:01Z, which is 2026-11-20T13:00:01Z after clock correction, is too old or too far ahead; 7 days back and 60 minutes ahead are allowed
    ");
}
