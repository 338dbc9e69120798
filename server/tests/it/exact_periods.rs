//! Exact periods, which are not widened to whole hours or days: roll-ups together with raw rows give the same result as raw rows alone.

use reqwest::Method;
use serde_json::{Value, json};
use unjank_server::store::reads::SUBJECTS;

use crate::server::{Server, batch, span};

const PERIODS: [&str; 2] = [
    "from=2026-11-20T10:30:00Z&to=2026-11-20T12:10:00Z",
    "from=2026-11-14T10:30:00Z&to=2026-11-20T12:10:00Z",
];

async fn rows(server: &Server, token: &str, question: &str) -> Value {
    let path = format!("/api/v1/projects/default/query/{question}");
    let answer = server.call(token, Method::GET, &path, None).await;
    assert_eq!(answer.status, 200, "{question}: {}", answer.body);
    answer.body["rows"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exact_period_contains_exactly_the_events_in_it() {
    let server = Server::start().await;
    server.ready().await;
    let mut batch = batch();
    // Times before the periods, at their edges and in the middle.
    let starts = [
        "2026-11-14T10:29:59Z",
        "2026-11-14T10:30:00Z",
        "2026-11-14T11:30:00Z",
        "2026-11-16T09:00:00Z",
        "2026-11-20T10:29:59Z",
        "2026-11-20T10:30:00Z",
        "2026-11-20T11:00:00Z",
        "2026-11-20T11:59:58Z",
    ];
    batch["spans"] = starts
        .iter()
        .enumerate()
        .map(|(place, start)| {
            let mut span = span();
            span["start"] = json!(start);
            span["duration_us"] = json!(1_000 * (place + 1));
            span["sample_rate"] = json!(0.5);
            span
        })
        .collect();
    assert_eq!(server.send(&batch).await.body["rejected"], json!([]));
    server.drained().await;
    let token = server.token("viewer --project default").await;
    for (period, samples) in PERIODS.iter().zip([3.0, 7.0]) {
        let question = format!("spans?by=name&{period}&exact=true");
        let exact = rows(&server, &token, &question).await;
        let raw = rows(&server, &token, &format!("{question}&locale=")).await;
        assert_eq!(exact, raw, "{period}");
        assert_eq!(exact[0]["values"][0], json!(samples * 2.0));
        assert_eq!(exact[0]["values"][1], json!(samples));
        // The period is also accepted as the base of a comparison.
        let base = period
            .replace("from=", "base_from=")
            .replace("&to=", "&base_to=");
        let compared = format!(
            "spans?by=name&from=2026-11-20T12:10:00Z&to=2026-11-20T13:00:00Z&{base}&exact=true"
        );
        assert_eq!(rows(&server, &token, &compared).await, json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_signal_can_be_queried_for_an_exact_period() {
    let server = Server::start().await;
    server.ready().await;
    let token = server.token("viewer --project default").await;
    let words = [
        "exact=true",
        "exact=true&by=app_version&base_app_version=1",
        "received=true",
    ];
    for subject in SUBJECTS {
        // A signal that no device sends has no versions and no arrival time.
        let fits = if subject.arrival().is_none() { 1 } else { 3 };
        for (period, words) in PERIODS
            .iter()
            .flat_map(|one| words[..fits].iter().map(move |of| (one, of)))
        {
            let question = format!("{}?{period}&{words}", subject.name);
            assert_eq!(rows(&server, &token, &question).await, json!([]));
        }
    }
}
