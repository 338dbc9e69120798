//! Numbers per traced span: devices record the inside of few spans, so only these spans count.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::server::{batch, span};

/// A checkout of a new install. It contains a request, which is always recorded, and a function with a rate of 0.1, which is recorded if
/// `is_traced`.
fn checkout(version: &str, insert_ms: u64, is_traced: bool) -> Value {
    let part = |name: &str, of: &Value, (from, ms): (u64, u64), rate: f64| {
        let mut part = span();
        part["trace_id"] = of["trace_id"].clone();
        part["parent_span_id"] = of["span_id"].clone();
        part["name"] = json!(name);
        part["start"] = json!(format!("2026-11-20T11:59:58.{from:03}Z"));
        part["duration_us"] = json!(ms * 1_000);
        part["sample_rate"] = json!(rate);
        part
    };
    let mut whole = span();
    whole["duration_us"] = json!((400 + insert_ms) * 1_000);
    let request = part("POST /checkout", &whole, (0, 300), 1.0);
    let insert = part("OrderDao.insert", &whole, (350, insert_ms), 0.1);
    let mut batch = batch();
    batch["resource"]["install_id"] = json!(Uuid::new_v4());
    batch["resource"]["app_version"] = json!(version);
    batch["spans"] = match is_traced {
        true => json!([whole, request, insert]),
        false => json!([whole, request]),
    };
    batch
}

fn row<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let mut rows = answer["rows"].as_array().unwrap().iter();
    rows.find(|row| row["name"] == name).unwrap()
}

/// The number of traced spans, and per span: calls, own time and whole time in milliseconds.
fn per_traced(row: &Value) -> [f64; 4] {
    let number = |name: &str| row["per_traced"][name].as_f64().unwrap();
    [
        number("spans"),
        number("calls"),
        number("self_us") / 1e3,
        number("total_us") / 1e3,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn only_spans_whose_inside_was_recorded_count_for_functions_that_are_rarely_recorded() {
    let few = (0..20).map(|number| checkout("4.12.0", 100, number % 10 == 0));
    let asked = Asked::of(&few.collect::<Vec<_>>()).await;
    let inside = asked.ask("spans/inside?name=checkout").await.body;
    assert_eq!(
        (&inside["spans"], &inside["traced"]),
        (&json!(20), &json!(2))
    );
    let insert = row(&inside, "OrderDao.insert");
    assert_eq!(per_traced(insert), [2.0, 1.0, 100.0, 100.0]);
    assert_eq!(insert["example"]["trace_id"].as_str().unwrap().len(), 32);
    // The span's own time is known only in traces that recorded the function inside.
    assert_eq!(
        per_traced(row(&inside, "checkout")),
        [2.0, 1.0, 100.0, 500.0]
    );
    assert_eq!(
        per_traced(row(&inside, "POST /checkout")),
        [20.0, 1.0, 300.0, 300.0]
    );
    assert_eq!(insert["base_traced"], Value::Null);
    assert_eq!(insert["p"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_a_function_is_a_span_that_did_not_fail_if_there_is_one() {
    let mut all = [100, 200, 300].map(|ms| checkout("4.12.0", ms, true));
    for batch in &mut all[1..] {
        batch["spans"][0]["status"] = json!("error");
    }
    let asked = Asked::of(&all).await;
    let inside = asked.ask("spans/inside?name=checkout").await.body;
    let example = &row(&inside, "OrderDao.insert")["example"];
    assert_eq!(example["trace_id"], all[0]["spans"][0]["trace_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_shows_which_function_changed_and_whether_chance_explains_it() {
    let now = (0..40).map(|number| checkout("4.12.0", 270 + number % 7, number < 10));
    let before = (0..40).map(|number| checkout("4.11.0", 5 + number % 7, number < 10));
    let few = (0..40).map(|number| checkout("4.10.0", 5, number < 3));
    let all: Vec<_> = now.chain(before).chain(few).collect();
    let asked = Asked::of(&all).await;
    let compared = async |base: &str| {
        let path = format!("spans/inside?name=checkout&app_version=4.12.0&base_app_version={base}");
        asked.ask(&path).await.body
    };
    let inside = compared("4.11.0").await;
    assert_eq!(
        (&inside["traced"], &inside["base_traced"]),
        (&json!(10), &json!(10))
    );
    let insert = row(&inside, "OrderDao.insert");
    assert!(insert["p"].as_f64().unwrap() < 1e-6, "{insert}");
    assert_eq!(insert["base_traced"], 10);
    let before = per_traced(&insert["base"]);
    assert!((before[2] - 7.4).abs() < 1e-9, "{before:?}");
    let request = row(&inside, "POST /checkout");
    assert_eq!(request["p"], 1.0, "{request}");
    // Three traced spans are too few for a test, so the response has only their number.
    let few = compared("4.10.0").await;
    let insert = row(&few, "OrderDao.insert");
    assert_eq!(
        (&insert["base_traced"], &insert["p"]),
        (&json!(3), &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn typical_spans_are_about_as_long_and_traced_ones_come_first() {
    let spans = (0..30).map(|number| checkout("4.12.0", 100 + 10 * number, number % 10 == 5));
    let asked = Asked::of(&spans.collect::<Vec<_>>()).await;
    let found = asked
        .ask("traces?name=checkout&near_us=560000&limit=4")
        .await
        .body;
    let spans = found["spans"].as_array().unwrap().iter();
    let spans: Vec<_> = spans
        .map(|span| {
            let number = |name: &str| span[name].as_u64().unwrap();
            (number("duration_us") / 1_000, number("trace_spans"))
        })
        .collect();
    assert_eq!(spans[0], (550, 3));
    assert_eq!(spans[1], (560, 2));
    assert!(
        spans[2..]
            .iter()
            .all(|(ms, spans)| [540, 570, 580].contains(ms) && *spans == 2),
        "{spans:?}"
    );
    for refused in ["order=-start", "cursor=s1.1.1"] {
        let answer = asked.ask(&format!("traces?near_us=1&{refused}")).await;
        assert_eq!(answer.outcome(), (422, "question_unfit".to_owned()));
    }
}
