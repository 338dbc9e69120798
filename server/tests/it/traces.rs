//! Trace search with pages and a filter for roots, and comparison of nested spans between versions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::asked::Asked;
use crate::server::{batch, span};

impl Asked {
    /// Returns all pages of a search, with six spans each.
    async fn pages(&self, order: &str) -> Vec<Value> {
        let mut pages = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("traces?order={order}&limit=6{cursor}");
            let page = self.ask(&path).await.body;
            let next = page["next"].as_str().map(|next| format!("&cursor={next}"));
            pages.push(page);
            match next {
                Some(next) => cursor = next,
                None => return pages,
            }
        }
    }
}

/// A batch with a span and its child. The parent takes 10 ms longer than the child.
fn nested(version: &str, inner: &str, inner_ms: u64) -> Value {
    let mut parent = span();
    parent["duration_us"] = json!((inner_ms + 10) * 1_000);
    let mut child = span();
    child["trace_id"] = parent["trace_id"].clone();
    child["parent_span_id"] = parent["span_id"].clone();
    child["name"] = json!(inner);
    child["duration_us"] = json!(inner_ms * 1_000);
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    batch["spans"] = json!([parent, child]);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_a_search_contain_every_span_once() {
    let mut batch = batch();
    // Many spans have the same start and duration, so their ids decide the order.
    batch["spans"] = (0..20)
        .map(|place| {
            let mut span = span();
            span["duration_us"] = json!(1_000 * (1 + place % 3));
            span["start"] = json!(format!("2026-11-20T11:59:5{}Z", place % 2));
            span
        })
        .collect();
    let asked = Asked::of(&[batch]).await;
    for (order, other) in [("-start", "-duration_us"), ("-duration_us", "-start")] {
        let pages = asked.pages(order).await;
        assert_eq!(pages.len(), 4, "{order}");
        let spans: Vec<&Value> = pages
            .iter()
            .flat_map(|page| page["spans"].as_array().unwrap())
            .collect();
        let seen: BTreeSet<_> = spans
            .iter()
            .map(|span| span["span_id"].to_string())
            .collect();
        assert_eq!((spans.len(), seen.len()), (20, 20), "{order}");
        let field = order.trim_start_matches('-');
        let keys: Vec<_> = spans.iter().map(|span| span[field].to_string()).collect();
        assert!(keys.is_sorted_by(|one, other| one >= other), "{keys:?}");
        let cursor = pages[0]["next"].as_str().unwrap();
        let mixed = asked
            .ask(&format!("traces?order={other}&cursor={cursor}"))
            .await;
        assert_eq!(mixed.outcome(), (422, "question_unfit".to_owned()));
    }
    for unreadable in [
        "",
        "s",
        "s1.2",
        "s-1.1.1",
        "d1.zz.0",
        "s99999999999999999.1.00000000000000000000000000000001",
    ] {
        let answer = asked.ask(&format!("traces?cursor={unreadable}")).await;
        assert_eq!(answer.status, 422, "{unreadable}: {}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_can_be_limited_to_roots() {
    let asked = Asked::of(&[nested("4.12.0", "db.insert", 30)]).await;
    for (filter, names) in [
        ("", ["checkout", "db.insert"].as_slice()),
        ("&root=true", &["checkout"]),
        ("&root=false", &["db.insert"]),
    ] {
        let found = asked
            .ask(&format!("traces?order=-duration_us{filter}"))
            .await;
        let spans = found.body["spans"].as_array().unwrap();
        let found: Vec<_> = spans
            .iter()
            .map(|span| span["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_spans_inside_a_span_are_compared_with_those_of_another_version() {
    let asked = Asked::of(&[
        nested("4.11.0", "db.insert", 20),
        nested("4.11.0", "db.insert", 40),
        nested("4.11.0", "old.validate", 5),
        nested("4.12.0", "db.insert", 90),
        nested("4.12.0", "json.parse", 7),
        nested("4.13.0", "db.insert", 1_000),
    ])
    .await;
    let path = "spans/inside?name=checkout&app_version=4.12.0&base_app_version=4.11.0";
    let answer = asked.ask(path).await;
    let sums = ["spans", "total_us", "base_spans", "base_total_us"];
    assert_eq!(
        sums.map(|name| answer.body[name].as_u64().unwrap()),
        [2, 117_000, 3, 95_000]
    );
    let rows = answer.body["rows"].as_array().unwrap().iter();
    let rows: Vec<_> = rows
        .map(|row| {
            (
                row["name"].as_str().unwrap(),
                row["self_us"].as_u64().unwrap(),
                row["base"]["self_us"].as_u64(),
                row["base"]["calls"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("checkout", 20_000, Some(30_000), Some(3)),
            ("db.insert", 90_000, Some(60_000), Some(2)),
            ("json.parse", 7_000, None, None),
            ("old.validate", 0, Some(5_000), Some(1)),
        ]
    );
    let alone = asked
        .ask("spans/inside?name=checkout&app_version=4.12.0")
        .await;
    assert_eq!(alone.body["base_spans"], Value::Null);
    assert_eq!(alone.body["rows"][0]["base"], Value::Null);
    let all = asked
        .ask("spans/inside?name=checkout&base_app_version=4.11.0")
        .await;
    assert_eq!(all.status, 422);
}
