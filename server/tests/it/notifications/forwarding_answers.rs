//! How much a project forwards in a request, and what it makes of the answers of collectors.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use axum::http::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::forwarding::{FORWARD, counted, forward, named, state, to};
use super::receiver::{Received, Receiver};
use super::sending;
use crate::answer::Answer;
use crate::server::{Server, batch};
use crate::wait;

fn spans_of(request: &Received) -> Vec<Span> {
    let message = ExportTraceServiceRequest::decode(&*request.inflated()).unwrap();
    let scopes = message.resource_spans.into_iter().map(|resource| {
        assert!(resource.resource.is_some());
        resource.scope_spans
    });
    scopes.flatten().flat_map(|scope| scope.spans).collect()
}

/// A batch with spans that are forwarded.
fn checkouts(number: usize) -> Value {
    let mut sent = batch();
    sent["spans"] = (0..number).map(|_| named("checkout")).collect();
    sent
}

/// Sends a batch as an SDK does, compressed.
async fn send(server: &Server, sent: &Value) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(sent.to_string().as_bytes()).unwrap();
    let request = server.request().header("content-encoding", "gzip");
    let request = request.body(encoder.finish().unwrap());
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(answer.body["rejected"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_batches_arrive_whole_in_requests_of_a_bounded_size() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    forward(&server, &token, to(&receiver.url)).await;
    // More than may wait for a project.
    let attributes: Map<_, _> = (0..50)
        .map(|number| (format!("a{number}"), json!("x".repeat(1_000))))
        .collect();
    let mut large = checkouts(190);
    for span in large["spans"].as_array_mut().unwrap() {
        span["attributes"] = Value::Object(attributes.clone());
    }
    assert!((9 << 20..10 << 20).contains(&large.to_string().len()));
    send(&server, &large).await;
    counted(&server, &token, &[("delivered", 190), ("waiting", 0)]).await;
    let many = checkouts(5_000);
    send(&server, &many).await;
    counted(
        &server,
        &token,
        &[("delivered", 5_190), ("waiting", 0), ("dropped", 0)],
    )
    .await;

    let mut arrived = BTreeSet::new();
    let mut most = 0;
    for request in receiver.received() {
        assert!(request.inflated().len() <= 1 << 20);
        assert!(request.body.len() < request.inflated().len() / 2);
        let spans = spans_of(&request);
        most = most.max(spans.len());
        arrived.extend(spans.into_iter().map(|span| span.span_id));
    }
    assert_eq!(most, 2_000);
    let sent = [large, many].map(|batch| batch["spans"].as_array().unwrap().clone());
    let sent: BTreeSet<_> = sent
        .concat()
        .iter()
        .map(|span| {
            let id = u64::from_str_radix(span["span_id"].as_str().unwrap(), 16).unwrap();
            id.to_be_bytes().to_vec()
        })
        .collect();
    assert_eq!(sent.len(), 5_190);
    assert_eq!(arrived, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_compressed_unless_the_setting_says_otherwise() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    let compression = async || {
        let answer = server.call(&token, Method::GET, FORWARD, None).await;
        answer.body["compression"].clone()
    };
    forward(&server, &token, to(&receiver.url)).await;
    assert_eq!(compression().await, "gzip");
    send(&server, &checkouts(1)).await;
    let first = receiver.has(1).await.remove(0);
    assert_eq!(first.header("content-encoding"), "gzip");

    let mut setting = to(&format!("{}/plain", receiver.url));
    setting["compression"] = json!("none");
    forward(&server, &token, setting).await;
    assert_eq!(compression().await, "none");
    send(&server, &checkouts(1)).await;
    let second = receiver.has(2).await.remove(1);
    assert_eq!(second.path, "/plain/v1/traces");
    assert_eq!(second.header("content-encoding"), "");
    assert_eq!(spans_of(&second).len(), 1);

    let mut setting = to(&receiver.url);
    setting["compression"] = json!("zstd");
    let refused = server.call(&token, Method::PUT, FORWARD, Some(setting));
    assert_eq!(refused.await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_spans_are_counted_with_the_collectors_message() {
    let server = sending().await;
    let token = server.token("admin").await;
    let in_protobuf = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 2,
            error_message: format!("over the quota\n{}", "x".repeat(10_000)),
        }),
    };
    let receiver = Receiver::replying(move |_, before| {
        let body = match before {
            0 => in_protobuf.encode_to_vec(),
            1 => {
                br#"{"partialSuccess":{"rejectedSpans":"99","errorMessage":"no tenant"}}"#.to_vec()
            }
            2 => br#"{"partialSuccess":{"errorMessage":"use another endpoint"}}"#.to_vec(),
            3 => b"accepted".to_vec(),
            _ => vec![b'{'; 1 << 20],
        };
        (Response::new(body), Duration::ZERO)
    })
    .await;
    forward(&server, &token, to(&receiver.url)).await;
    for (delivered, rejected, message) in [
        (1, 2, "over the quota xxx"),
        // No more than the request had.
        (1, 5, "no tenant"),
        (4, 5, "use another endpoint"),
        (7, 5, "use another endpoint"),
        (10, 5, "use another endpoint"),
    ] {
        send(&server, &checkouts(3)).await;
        let numbers = [("delivered", delivered), ("rejected", rejected)];
        counted(&server, &token, &[&numbers[..], &[("waiting", 0)]].concat()).await;
        let state = state(&server, &token).await;
        let said = state["message"].as_str().unwrap();
        assert!(said.starts_with(message) && said.len() <= 200, "{said}");
        assert_eq!(state["error"], Value::Null, "the request was accepted");
    }
    for (outcome, events) in [("delivered", 10.0), ("rejected", 5.0), ("refused", 0.0)] {
        let name = format!("unjank_forward_events_total{{kind=\"spans\",outcome=\"{outcome}\"}}");
        assert_eq!(server.metric(&name).await, events, "{outcome}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_a_collector_repeats_are_hidden() {
    let server = sending().await;
    let token = server.token("admin").await;
    let receiver = Receiver::replying(|request, before| {
        let said = format!("authorization: {}", request.header("authorization"));
        let body =
            json!({"partialSuccess": {"rejectedSpans": 1, "errorMessage": said}}).to_string();
        let status = if before == 0 { 200 } else { 400 };
        let response = Response::builder().status(status);
        (response.body(body.into_bytes()).unwrap(), Duration::ZERO)
    })
    .await;
    let mut setting = to(&receiver.url);
    setting["headers"] = json!({"authorization": "Bearer of-the-collector"});
    forward(&server, &token, setting.clone()).await;
    for (outcome, field) in [("rejected", "message"), ("refused", "error")] {
        send(&server, &checkouts(1)).await;
        counted(&server, &token, &[(outcome, 1)]).await;
        let state = state(&server, &token).await;
        let said = state[field].as_str().unwrap();
        assert!(
            said.contains("[hidden]") && !said.contains("of-the-collector"),
            "{said}"
        );
    }
    // Another collector has said nothing yet.
    setting["endpoint"] = json!(format!("{}/other", receiver.url));
    forward(&server, &token, setting).await;
    let state = state(&server, &token).await;
    assert_eq!(
        (&state["message"], &state["error"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_says_what_it_rejects_and_refuses() {
    let (server, other) = (sending().await, Server::away(&[]).await);
    let token = server.token("admin").await;
    forward(&server, &token, to(&other.url)).await;
    // Spans of eight days ago are too old.
    other.pass(Duration::from_secs(8 * 86_400));
    send(&server, &checkouts(3)).await;
    counted(&server, &token, &[("rejected", 3), ("delivered", 0)]).await;
    let told = state(&server, &token).await;
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("time_out_of_range"), "{message}");

    let mut setting = to(&format!("{}/", other.url));
    setting["headers"] = json!({"authorization": "Bearer wrong"});
    forward(&server, &token, setting).await;
    send(&server, &checkouts(2)).await;
    counted(&server, &token, &[("refused", 2), ("waiting", 0)]).await;
    let told = state(&server, &token).await;
    let error = told["error"].as_str().unwrap();
    let (status, reason) = error.split_once("401: ").unwrap();
    assert_eq!(status, "the receiver responded with ");
    // The text of the answer, without the bytes around it.
    assert!(
        reason.starts_with(|first: char| first.is_alphabetic()),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_requests_that_the_specification_names_are_repeated() {
    const STATUSES: [(u16, bool); 10] = [
        (429, true),
        (502, true),
        (503, true),
        (504, true),
        (400, false),
        (404, false),
        (408, false),
        (413, false),
        (500, false),
        (501, false),
    ];
    let server = sending().await;
    let token = server.token("admin").await;
    // Each status is the answer to one request, and each request that may be repeated is then accepted.
    let mut script = Vec::new();
    for (status, is_repeated) in STATUSES {
        script.push(status);
        script.extend(is_repeated.then_some(200));
    }
    let receiver =
        Receiver::answering(move |_, before| (script[before], None, Duration::ZERO)).await;
    forward(&server, &token, to(&receiver.url)).await;
    let (mut delivered, mut refused) = (0, 0);
    for (status, is_repeated) in STATUSES {
        send(&server, &checkouts(1)).await;
        wait::until("the attempt failed", async || {
            let error = state(&server, &token).await["error"].clone();
            let error = error.as_str().unwrap_or_default();
            error == format!("the receiver responded with {status}: the reason")
        })
        .await;
        (delivered, refused) = (
            delivered + u64::from(is_repeated),
            refused + u64::from(!is_repeated),
        );
        server.pass(Duration::from_secs(5));
        let numbers = [
            ("delivered", delivered),
            ("refused", refused),
            ("waiting", 0),
        ];
        counted(&server, &token, &numbers).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_stays_as_it_was_when_more_waits() {
    let server = sending().await;
    let token = server.token("admin").await;
    let receiver = Receiver::answering(|_, before| {
        let status = if before == 0 { 503 } else { 200 };
        (status, None, Duration::ZERO)
    })
    .await;
    forward(&server, &token, to(&receiver.url)).await;
    send(&server, &checkouts(1)).await;
    wait::until("the first attempt failed", async || {
        state(&server, &token).await["error"].is_string()
    })
    .await;
    send(&server, &checkouts(2)).await;
    send(&server, &checkouts(3)).await;
    server.pass(Duration::from_secs(5));
    counted(&server, &token, &[("delivered", 6), ("waiting", 0)]).await;
    let received = receiver.received();
    let sizes: Vec<_> = received.iter().map(|one| spans_of(one).len()).collect();
    assert_eq!(sizes, [1, 1, 5]);
    assert_eq!(received[0].body, received[1].body);
}
