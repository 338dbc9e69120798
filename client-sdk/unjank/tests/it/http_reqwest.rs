//! `unjank::http::TraceLayer` as a middleware of `reqwest`, against a real server.

use axum::body::Bytes;
use http_body_util::StreamBody;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use unjank::http::TraceLayer;

use crate::collector::Running;
use crate::http_server::{ANSWER, PIECE, closed, number, requests, run, serve, traffic};

fn client(layer: TraceLayer) -> ClientWithMiddleware {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    ClientBuilder::new(client).with(layer).build()
}

fn streamed() -> reqwest::Body {
    let pieces = (0..3).map(|_| {
        let piece = Bytes::from(vec![b'u'; PIECE]);
        Ok::<_, std::io::Error>(http_body::Frame::data(piece))
    });
    reqwest::Body::wrap(StreamBody::new(futures_util::stream::iter(pieces)))
}

#[test]
fn bytes_are_those_on_the_wire_and_the_response_keeps_its_address() {
    let running = Running::start();
    let wire = run(async {
        let (address, wire) = serve().await;
        let url = format!("http://{address}/orders/12?token=secret");
        let posted = client(TraceLayer::new()).post(&url).body(vec![b'u'; 5_000]);
        let response = posted.send().await.unwrap();
        assert_eq!(response.url().as_str(), url);
        assert_eq!(response.content_length(), Some(ANSWER as u64));
        assert_eq!(response.bytes().await.unwrap().len(), ANSWER);
        wire.bytes()
    });
    let spans = requests(&running);
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0]["name"], "POST /orders/{id}");
    assert_eq!(spans[0]["status"], "ok");
    assert!(!spans[0].to_string().contains("secret"), "{spans:?}");
    assert_eq!(traffic(&running), [wire.0, wire.1, 1, 0]);
}

#[test]
fn a_streamed_body_is_counted_as_it_is_sent() {
    let running = Running::start();
    run(async {
        let (address, _) = serve().await;
        let url = format!("http://{address}/orders/1");
        let posted = client(TraceLayer::new()).post(url).body(streamed());
        posted.send().await.unwrap().bytes().await.unwrap();
    });
    let sent = number(&requests(&running)[0], "http.request.size");
    let body = 3 * PIECE as u64;
    assert!((body + 50..body + 200).contains(&sent), "{sent}");
}

#[test]
fn a_redirect_keeps_the_body_and_names_the_address_that_responded() {
    let running = Running::start();
    run(async {
        let (address, _) = serve().await;
        let posted = client(TraceLayer::new()).post(format!("http://{address}/moved"));
        let response = posted.body("order").send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.url().path(), "/orders/7");
        response.bytes().await.unwrap();
    });
    let spans = requests(&running);
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0]["name"], "POST /moved");
    assert_eq!(
        spans[0]["attributes"]["redirected_to"],
        "127.0.0.1/orders/7"
    );
    assert_eq!(spans[0]["attributes"]["http.response.status_code"], "200");
}

#[test]
fn dropped_bodies_failed_connections_and_excluded_hosts() {
    let running = Running::start();
    run(async {
        let (address, _) = serve().await;
        let client = client(TraceLayer::new().exclude(["localhost"]));
        let endless = client.get(format!("http://{address}/endless")).send();
        let mut response = endless.await.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap().len(), PIECE);
        drop(response);
        let failed = client
            .post(format!("http://{}/home", closed()))
            .body("order");
        assert!(failed.send().await.unwrap_err().is_connect());
        let excluded = client.get(format!("http://localhost:{}/empty", address.port()));
        excluded.send().await.unwrap();
    });
    let spans = requests(&running);
    let [dropped, failed] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert_eq!(
        (&dropped["status"], &dropped["attributes"]["body"]),
        (&"cancelled".into(), &"dropped".into())
    );
    assert_eq!(failed["status"], "error");
    assert_eq!(number(failed, "http.request.size"), 0);
    let [tx_bytes, rx_bytes, requests, failures] = traffic(&running);
    assert_eq!(
        (tx_bytes, rx_bytes),
        (
            number(dropped, "http.request.size"),
            number(dropped, "http.response.size")
        )
    );
    assert_eq!((requests, failures), (2, 1));
}
