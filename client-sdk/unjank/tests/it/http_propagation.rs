//! The header `traceparent`, which `unjank::http::TraceLayer` sends to allowed hosts only.

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tower::{ServiceBuilder, ServiceExt as _};
use unjank::http::TraceLayer;

use crate::collector::Running;
use crate::http_server::{number, requests, run, serve};

const OWN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Returns the header that the server gets from a client of `hyper`.
async fn by_tower(layer: TraceLayer, url: &str, own: Option<&str>) -> String {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let client = ServiceBuilder::new().layer(layer).service(client);
    let mut request = http::Request::get(url);
    if let Some(own) = own {
        request = request.header("traceparent", own);
    }
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let response = client.oneshot(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// The same from `reqwest`.
async fn by_reqwest(layer: TraceLayer, url: &str, own: Option<&str>) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = reqwest_middleware::ClientBuilder::new(client).with(layer);
    let mut request = client.build().get(url);
    if let Some(own) = own {
        request = request.header("traceparent", own);
    }
    request.send().await.unwrap().text().await.unwrap()
}

/// The header that belongs to a span.
fn of(span: &Value) -> String {
    let id = |name| span[name].as_str().unwrap().to_lowercase().replace('-', "");
    format!("00-{}-{}-01", id("trace_id"), id("span_id"))
}

fn allowed() -> TraceLayer {
    TraceLayer::new().propagate_to(["api.shop.example", "127.0.*"])
}

#[test]
fn an_allowed_host_gets_the_ids_of_the_recorded_request() {
    let running = Running::start();
    let (parents, wire) = run(async {
        let (address, wire) = serve().await;
        let url = format!("http://{address}/parent");
        let above = unjank::span("checkout");
        let tower = by_tower(allowed(), &url, None).await;
        let sent_by_tower = wire.bytes();
        let reqwest = by_reqwest(allowed(), &url, None).await;
        above.end();
        ([tower, reqwest], sent_by_tower)
    });
    let spans = requests(&running);
    assert_eq!(spans.iter().map(of).collect::<Vec<_>>(), parents);
    let all = running.collector.events("spans");
    let above = all.iter().find(|span| span["name"] == "checkout").unwrap();
    for span in &spans {
        assert_eq!(span["parent_span_id"], above["span_id"]);
        assert_eq!(span["trace_id"], above["trace_id"]);
    }
    // The header is counted with the other bytes.
    assert_eq!(number(&spans[0], "http.request.size"), wire.0);
}

#[test]
fn other_hosts_get_no_header_and_an_own_header_stays() {
    let running = Running::start();
    let parents = run(async {
        let (address, _) = serve().await;
        let url = format!("http://{address}/parent");
        let others = || TraceLayer::new().propagate_to(["*.shop.example"]);
        vec![
            by_tower(TraceLayer::new(), &url, None).await,
            by_reqwest(TraceLayer::new(), &url, None).await,
            by_tower(others(), &url, None).await,
            by_reqwest(others(), &url, None).await,
            by_tower(allowed().exclude(["127.*"]), &url, None).await,
            by_tower(allowed(), &url, Some(OWN)).await,
            by_reqwest(allowed(), &url, Some(OWN)).await,
        ]
    });
    assert_eq!(parents, ["", "", "", "", "", OWN, OWN]);
    assert_eq!(requests(&running).len(), 6, "the excluded one is no span");
}

#[test]
fn a_request_that_is_not_recorded_names_the_recorded_span_around_it_or_nothing() {
    let running = Running::with(|config| config);
    let overrides = json!([{"name": "checkout", "rate": 1.0}]);
    running.learns(json!({"sampling": {"session_rate": 1.0, "spans": {"default": 0.0, "overrides": overrides}}}));
    let parents = run(async {
        let (address, _) = serve().await;
        let url = format!("http://{address}/parent");
        let alone = by_tower(allowed(), &url, None).await;
        let above = unjank::span("checkout");
        let inside = by_tower(allowed(), &url, None).await;
        above.end();
        [alone, inside]
    });
    assert_eq!(requests(&running), Vec::<Value>::new());
    let all = running.collector.events("spans");
    let above = all.iter().find(|span| span["name"] == "checkout").unwrap();
    assert_eq!(parents, [String::new(), of(above)]);
}
