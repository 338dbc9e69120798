//! `unjank::http::TraceLayer` around a client of `hyper`, against a real server.

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tower::{ServiceBuilder, ServiceExt as _};
use tower_http::follow_redirect::FollowRedirectLayer;
use unjank::http::{RequestBody, TraceLayer, TraceService};

use crate::collector::Running;
use crate::http_server::{
    ANSWER, PIECE, breaks_off, closed, number, requests, run, serve, traffic,
};

type Bare = Client<HttpConnector, RequestBody<Full<Bytes>>>;

fn client(layer: TraceLayer) -> TraceService<Bare> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    ServiceBuilder::new().layer(layer).service(client)
}

fn get(url: String) -> http::Request<Full<Bytes>> {
    http::Request::get(url).body(Full::default()).unwrap()
}

#[test]
fn a_request_is_a_span_and_its_bytes_are_those_on_the_wire() {
    let running = Running::start();
    let wire = run(async {
        let (address, wire) = serve().await;
        let above = unjank::span("checkout");
        let request = http::Request::post(format!("http://{address}/orders/12?token=secret"))
            .header("x-app", "shop")
            .body(Full::from(vec![b'u'; 5_000]))
            .unwrap();
        let response = client(TraceLayer::new()).oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len(), ANSWER);
        above.end();
        wire.bytes()
    });
    let spans = requests(&running);
    let [span] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert_eq!(span["name"], "POST /orders/{id}");
    assert_eq!(span["status"], "ok");
    assert_eq!(span["attributes"]["http.request.method"], "POST");
    assert_eq!(span["attributes"]["server.address"], "127.0.0.1");
    assert_eq!(span["attributes"]["url.path"], "/orders/12");
    assert_eq!(span["attributes"]["http.response.status_code"], "200");
    assert_eq!(span["attributes"]["body"], "read");
    assert_eq!(span["events"][0]["name"], "response");
    assert!(!span.to_string().contains("secret"), "{span}");
    let above = running.collector.events("spans");
    let above = above
        .iter()
        .find(|span| span["name"] == "checkout")
        .unwrap();
    assert_eq!(span["parent_span_id"], above["span_id"]);
    assert!(wire.0 > 5_000 && wire.1 > ANSWER as u64);
    let told = (
        number(span, "http.request.size"),
        number(span, "http.response.size"),
    );
    assert_eq!(told, wire, "bytes sent and received");
    assert_eq!(traffic(&running), [wire.0, wire.1, 1, 0]);
}

#[test]
fn an_error_status_and_an_empty_response_end_with_the_head() {
    let running = Running::start();
    let wire = run(async {
        let (address, wire) = serve().await;
        let client = client(TraceLayer::new());
        for path in ["missing", "empty"] {
            let request = get(format!("http://{address}/{path}"));
            let response = client.clone().oneshot(request).await.unwrap();
            drop(response);
        }
        wire.bytes()
    });
    let spans = requests(&running);
    let told: Vec<_> = spans
        .iter()
        .map(|span| {
            (
                span["name"].as_str(),
                span["status"].as_str(),
                span["attributes"]["body"].as_str(),
            )
        })
        .collect();
    let expected = [("GET /missing", "error"), ("GET /empty", "ok")];
    let expected = expected.map(|(name, status)| (Some(name), Some(status), Some("read")));
    assert_eq!(told, expected);
    assert_eq!(traffic(&running), [wire.0, wire.1, 2, 0]);
}

#[test]
fn a_body_that_is_dropped_half_way_and_a_request_that_is_given_up_are_cancelled() {
    let running = Running::start();
    run(async {
        let (address, wire) = serve().await;
        let client = client(TraceLayer::new());
        let endless = client
            .clone()
            .oneshot(get(format!("http://{address}/endless")));
        let mut body = endless.await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap().len(), PIECE);
        drop(body);
        let before = wire.bytes().0;
        let never = client.oneshot(get(format!("http://{address}/never")));
        tokio::select! {
            answered = never => panic!("{answered:?}"),
            () = wire.sent_more_than(before) => {}
        }
    });
    let spans = requests(&running);
    let [dropped, given_up] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert_eq!(dropped["status"], "cancelled");
    assert_eq!(dropped["attributes"]["body"], "dropped");
    let received = number(dropped, "http.response.size");
    let piece = PIECE as u64;
    assert!((piece..piece + 300).contains(&received), "{received}");
    assert_eq!(given_up["status"], "cancelled");
    assert!(given_up["attributes"]["body"].is_null());
    assert!(number(given_up, "http.request.size") > 0);
    let [_, rx_bytes, requests, failed] = traffic(&running);
    assert_eq!((rx_bytes, requests, failed), (received, 2, 1));
}

#[test]
fn a_failed_connection_has_no_bytes() {
    let running = Running::start();
    run(async {
        let request = get(format!("http://{}/home", closed()));
        let failed = client(TraceLayer::new()).oneshot(request).await;
        assert!(failed.is_err());
    });
    let spans = requests(&running);
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0]["status"], "error");
    assert!(spans[0]["attributes"]["http.response.status_code"].is_null());
    assert_eq!(traffic(&running), [0, 0, 1, 1]);
}

#[test]
fn a_body_that_breaks_off_is_an_error() {
    let running = Running::start();
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    run(async {
        let address = breaks_off(format!("{head}{}", "x".repeat(10)));
        let request = get(format!("http://{address}/home"));
        let response = client(TraceLayer::new()).oneshot(request).await.unwrap();
        assert!(response.into_body().collect().await.is_err());
    });
    let spans = requests(&running);
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0]["status"], "error");
    assert_eq!(spans[0]["attributes"]["body"], "failed");
    let received = head.len() as u64 + 10;
    assert_eq!(number(&spans[0], "http.response.size"), received);
    let [_, rx_bytes, requests, failed] = traffic(&running);
    assert_eq!((rx_bytes, requests, failed), (received, 1, 0));
}

#[test]
fn each_hop_of_a_redirect_is_a_request() {
    let running = Running::start();
    let wire = run(async {
        let (address, wire) = serve().await;
        let client = ServiceBuilder::new()
            .layer(FollowRedirectLayer::new())
            .service(client(TraceLayer::new()));
        let moved = http::Request::post(format!("http://{address}/moved"));
        let response = client.oneshot(moved.body(Full::default()).unwrap()).await;
        let body = response.unwrap().into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes().len(), ANSWER);
        wire.bytes()
    });
    let names: Vec<_> = requests(&running)
        .iter()
        .map(|span| {
            (
                span["name"].to_string(),
                span["attributes"]["http.response.status_code"].to_string(),
            )
        })
        .collect();
    let expected = [
        ("\"POST /moved\"", "\"307\""),
        ("\"POST /orders/{id}\"", "\"200\""),
    ];
    assert_eq!(
        names,
        expected.map(|(name, status)| (name.to_owned(), status.to_owned()))
    );
    assert_eq!(traffic(&running), [wire.0, wire.1, 2, 0]);
}

#[test]
fn excluded_hosts_are_left_out_and_nothing_counts_twice() {
    let running = Running::start();
    let by_hand = |host| {
        unjank::traffic(unjank::Transferred {
            host,
            tx_bytes: 1_000_000,
            answered: true,
            ..unjank::Transferred::default()
        });
    };
    run(async {
        let (address, _) = serve().await;
        let url = format!("http://{address}/empty");
        let excluding = client(TraceLayer::new().exclude(["*.tracker.example", "127.0.0.*"]));
        drop(excluding.oneshot(get(url.clone())).await.unwrap());
        assert_eq!(requests(&running), [] as [serde_json::Value; 0]);
        by_hand("127.0.0.1");
        assert_eq!(traffic(&running), [1_000_000, 0, 1, 0]);
        let client = client(TraceLayer::new());
        drop(client.oneshot(get(url)).await.unwrap());
        by_hand("127.0.0.1");
        by_hand("cdn.example.com");
    });
    let [tx_bytes, _, requests, _] = traffic(&running);
    assert_eq!((tx_bytes / 1_000, requests), (2_000, 3));
}

#[test]
fn a_page_waits_for_its_requests() {
    let running = Running::with(|config| {
        let pages = json!({"pages": [{"page": "Home", "api": ["/empty"]}]});
        config
            .mode(unjank::Mode::Test)
            .local_settings(pages)
            .local_wins(true)
    });
    let page = unjank::page_load("Home", unjank::LaunchKind::Cold);
    page.first_draw();
    run(async {
        let (address, _) = serve().await;
        let request = get(format!("http://{address}/empty"));
        drop(
            client(TraceLayer::new().without_traffic())
                .oneshot(request)
                .await
                .unwrap(),
        );
    });
    page.final_draw();
    running.flush();
    let loads = running.collector.events("page_loads");
    assert_eq!(loads[0]["outcome"], "completed");
    assert!(loads[0]["t2_ms"].is_number(), "{loads:?}");
    assert_eq!(traffic(&running), [0; 4]);
}

#[test]
fn without_consent_nothing_is_measured() {
    let running = Running::start();
    unjank::set_enabled(false);
    run(async {
        let (address, _) = serve().await;
        let request = get(format!("http://{address}/empty"));
        drop(client(TraceLayer::new()).oneshot(request).await.unwrap());
    });
    unjank::set_enabled(true);
    assert_eq!(requests(&running).len(), 0);
    assert_eq!(traffic(&running), [0; 4]);
}

#[test]
fn requests_of_the_sdk_are_not_measured() {
    let running = Running::start();
    run(async {
        // The address in the configuration of these tests.
        let request = get("http://127.0.0.1:1/v1/ingest".to_owned());
        assert!(client(TraceLayer::new()).oneshot(request).await.is_err());
    });
    assert_eq!(requests(&running).len(), 0);
    assert_eq!(traffic(&running), [0; 4]);
}
