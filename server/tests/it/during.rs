//! Janks filtered by the spans and traces during which they happened.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::server::{batch, span};

fn jank(second: u32, ms: u64) -> Value {
    json!({
        "kind": "jank", "page": "Checkout", "start": format!("2026-11-20T11:59:{second:02}Z"), "duration_ms": ms,
        "strategy": {"threshold_ms": 2000, "count": 1},
        "stack": [{"class": "com.example.shop.OrderDao", "function": "insert"}],
    })
}

/// A session with a checkout from second 20 to 25 and these janks.
fn session(version: &str, janks: &[Value]) -> Value {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    batch["resource"]["install_id"] = json!(Uuid::new_v4());
    let mut checkout = span();
    checkout["start"] = json!("2026-11-20T11:59:20Z");
    checkout["duration_us"] = json!(5_000_000);
    batch["spans"] = json!([checkout]);
    batch["janks"] = json!(janks);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn janks_are_filtered_by_the_spans_and_traces_that_they_overlap() {
    let mut now = session(
        "4.12.0",
        &[
            jank(10, 3_000),
            jank(18, 3_000),
            jank(22, 1_000),
            jank(24, 9_000),
            jank(30, 2_000),
        ],
    );
    // Two spans of this name run at the same time. A jank during both counts once.
    let mut other = now["spans"][0].clone();
    other["span_id"] = json!("00000000000000ff");
    now["spans"].as_array_mut().unwrap().push(other);
    let trace = now["spans"][0]["trace_id"].as_str().unwrap().to_owned();
    let before = session("4.11.0", &[jank(21, 4_000)]);
    let mut elsewhere = session("4.12.0", &[jank(21, 2_500)]);
    elsewhere["spans"] = json!([]);
    let asked = Asked::of(&[now, before, elsewhere]).await;
    let counts = async |filter: &str| {
        let path = format!("query/janks?measure=count&measure=sum_ms&{filter}");
        let answer = asked.ask(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let row = answer.body["rows"][0].clone();
        (row["values"].clone(), row["base"].clone())
    };
    let compared = "during_span=checkout&app_version=4.12.0&base_app_version=4.11.0&by=category";
    assert_eq!(
        counts(compared).await,
        (json!([3.0, 13_000.0]), json!([1.0, 4_000.0]))
    );
    let of_trace =
        format!("during_trace={trace}&from=2026-11-20T11:50:00Z&to=2026-11-20T12:10:00Z");
    assert_eq!(counts(&of_trace).await.0, json!([3.0, 13_000.0]));
    let unknown = asked.ask("query/janks?during_span=login").await;
    assert_eq!(unknown.body["rows"], json!([]));
    // The other queries of janks support the filter, too.
    let events = asked.ask("janks/events?during_span=checkout").await;
    assert_eq!(events.body["events"].as_array().unwrap().len(), 4);
    for refused in [
        "query/janks?by=during_span",
        "query/janks?contains.during_span=check",
        "query/spans?during_span=checkout",
    ] {
        let answer = asked.ask(refused).await;
        assert_eq!(
            answer.outcome(),
            (422, "question_unfit".to_owned()),
            "{refused}"
        );
    }
}
