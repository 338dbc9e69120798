//! OTLP over gRPC: what is stored, once, and what exporters are answered. The exporter for Python runs in `otlp_exporters`.

use std::io::Write;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use http_body_util::BodyExt;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::otlp::{JSON, PROTOBUF, post, span, traces};
use crate::quotas;
use crate::server::{Server, batch};
use crate::wait;

const TRACES: &str = "opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// An answer of gRPC.
#[derive(Debug)]
struct Answer {
    status: u16,
    message: String,
    head: HeaderMap,
    body: Bytes,
}

impl Answer {
    /// The seconds of `RetryInfo`, which is the last field of the status.
    fn wait_s(&self) -> Option<u8> {
        let details = self.head.get("grpc-status-details-bin")?;
        let details = BASE64_STANDARD_NO_PAD.decode(details.as_bytes()).unwrap();
        let name = b"type.googleapis.com/google.rpc.RetryInfo";
        let at = details.windows(name.len()).position(|text| text == name)?;
        // `RetryInfo` in `Any`, `Duration` in `RetryInfo`, seconds in `Duration`: 6 bytes of fields and lengths.
        Some(details[at + name.len() + 6 - 1])
    }
}

/// A connection, and the address that it leads to.
struct Client(SendRequest<Body>, String);

impl Client {
    async fn to(server: &Server) -> Self {
        let address = server.url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.unwrap();
        let (client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        #[expect(clippy::disallowed_methods, reason = "ends with its client")]
        tokio::spawn(connection);
        Self(client, address.to_owned())
    }

    async fn call(&self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let mut request = Request::post(format!("http://{}/{path}", self.1))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.0.clone().send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        assert_eq!(head.status, 200);
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned().unwrap_or_default();
        let text = |name| {
            let value = head.headers.get(name).or(trailers.get(name));
            value.map_or("", |value| value.to_str().unwrap()).to_owned()
        };
        Answer {
            status: text("grpc-status").parse().unwrap(),
            message: text("grpc-message"),
            head: head.headers,
            body: body.to_bytes(),
        }
    }

    async fn export(&self, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let mut all = vec![("authorization", "Bearer any-key")];
        all.extend(headers);
        self.call(TRACES, &all, body).await
    }
}

/// A message with its prefix.
fn framed(compressed: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[compressed], &length[..], message].concat()
}

fn request(names: &[&str]) -> Vec<u8> {
    let spans: Vec<_> = (1..).zip(names).map(|(id, name)| span(name, id)).collect();
    let request: ExportTraceServiceRequest = serde_json::from_value(traces(&spans)).unwrap();
    request.encode_to_vec()
}

/// The first bytes of a connection: a fixed text, and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Sends pieces on a new connection. Returns it, and what is answered first.
async fn begun_with(address: &str, pieces: &[&[u8]]) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    for piece in pieces {
        stream.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).await.unwrap_or_default();
    (stream, answer[..read].to_vec())
}

/// Sends a span over HTTP/2 to a URL that leads to the server.
pub(crate) async fn stores_a_span(client: &reqwest::Client, url: &str) {
    let export = client.post(format!("{url}/{TRACES}"));
    let export = export
        .bearer_auth("any-key")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(framed(0, &request(&["proxied"])));
    let answer = export.send().await.unwrap();
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    let answer: axum::http::Response<reqwest::Body> = answer.into();
    let body = answer.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(body.to_bytes().as_ref(), [0; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_stored_once_in_every_encoding_over_grpc_and_http() {
    let server = Server::start().await;
    let client = Client::to(&server).await;
    let body = request(&["one", "two"]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&body).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&body).unwrap();
    let zstd = zstd::encode_all(body.as_slice(), 1).unwrap();

    let first = client.export(&[], framed(0, &body)).await;
    assert_eq!((first.status, first.body.as_ref()), (0, &[0; 5][..]));
    assert_eq!(first.head["content-type"], "application/grpc");
    let encodings = "identity, gzip, zstd, deflate";
    assert_eq!(first.head["grpc-accept-encoding"], encodings);
    assert!(first.head.contains_key("x-unjank-config-etag"));
    let gzip = gzip.finish().unwrap();
    let zlib = zlib.finish().unwrap();
    for (encoding, message) in [("gzip", gzip), ("zstd", zstd), ("deflate", zlib)] {
        let headers = [("grpc-encoding", encoding)];
        let answer = client.export(&headers, framed(1, &message)).await;
        assert_eq!(answer.status, 0, "{encoding}");
    }
    let by_http = post(&server, "traces", PROTOBUF, body).await;
    assert_eq!(by_http.status(), 200);
    let names = "SELECT name FROM spans ORDER BY name";
    assert_eq!(server.stored(names).await, "one\ntwo");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_span_costs_itself() {
    let server = Server::start().await;
    let client = Client::to(&server).await;
    let answer = client.export(&[], framed(0, &request(&["good", ""]))).await;
    assert_eq!(answer.status, 0);
    let message = ExportTraceServiceResponse::decode(&answer.body[5..]).unwrap();
    let partial = message.partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(partial.error_message.contains("name"), "{partial:?}");
    assert_eq!(server.stored("SELECT name FROM spans").await, "good");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_statuses_of_grpc() {
    let server = Server::start().await;
    let client = Client::to(&server).await;
    let good = framed(0, &request(&["good"]));
    let wrong = [("authorization", "Bearer wrong")];
    let answer = client.call(TRACES, &wrong, good.clone()).await;
    assert_eq!(answer.status, 16);
    assert_eq!(answer.message, "this ingest key is unknown or revoked");
    assert_eq!(client.call(TRACES, &[], good.clone()).await.status, 16);

    let refused = async |body| client.export(&[], body).await.status;
    assert_eq!(refused(framed(0, b"no protobuf")).await, 3);
    assert_eq!(refused(Vec::new()).await, 3);
    assert_eq!(refused(good[..10].to_vec()).await, 3);
    assert_eq!(refused([good.clone(), good.clone()].concat()).await, 3);
    assert_eq!(refused(framed(0, &vec![0; (4 << 20) + 1])).await, 3);
    // Compressed, but nobody says how.
    assert_eq!(refused(framed(1, b"no gzip")).await, 12);
    let unknown = [("grpc-encoding", "snappy")];
    let answer = client.export(&unknown, framed(1, b"snappy")).await;
    assert_eq!(answer.status, 12);
    let service = "opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
    let answer = client.call(service, &[], good.clone()).await;
    assert_eq!((answer.status, answer.wait_s()), (12, None));
    // The connection is still of use.
    assert_eq!(refused(good).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_names_the_time_to_wait() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    let quota = json!({"quotas": {"bytes_per_day": 1}});
    let path = "/api/v1/projects/default";
    let saved = server.call(&token, Method::PATCH, path, Some(quota)).await;
    assert_eq!(saved.status, 200, "{saved:?}");
    let client = Client::to(&server).await;
    let body = framed(0, &request(&["a"]));
    let mut refused = None;
    wait::until("the quota is in force", async || {
        let answer = client.export(&[], body.clone()).await;
        refused = (answer.status != 0).then_some(answer);
        refused.is_some()
    })
    .await;
    let refused = refused.unwrap();
    assert_eq!((refused.status, refused.wait_s()), (8, Some(5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_not_one_message_costs_its_sender() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    let key = quotas::key(&server, &token, json!({"bytes_per_day": 10_000})).await;
    let client = Client::to(&server).await;
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str())];
    let send = async |body| client.call(TRACES, &headers, body).await.status;
    assert_eq!(send(framed(0, &request(&["a"]))).await, 0);
    let half = &framed(0, &[0; 10_000])[..9_000];
    assert_eq!(send(half.to_vec()).await, 3);
    assert_eq!(send(half.to_vec()).await, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_count_as_connections_of_their_address() {
    let server = Server::with(&["--max-connections", "32"]).await;
    let address = server.url.trim_start_matches("http://");
    let body = framed(0, &request(&["a"]));
    let client = Client::to(&server).await;
    assert_eq!(client.export(&[], body.clone()).await.status, 0);
    // An address may have eight connections, or four with two calls each.
    let mut others = Vec::new();
    loop {
        let (stream, answer) = begun_with(address, &[PREFACE]).await;
        if answer.is_empty() {
            break;
        }
        others.push(stream);
        assert!(others.len() <= 3);
    }
    // The start of the test may have left a connection of HTTP/1.
    assert!(others.len() >= 2, "{}", others.len());
    others.pop();
    wait::until("a place is free", async || {
        !begun_with(address, &[PREFACE]).await.1.is_empty()
    })
    .await;
    assert_eq!(client.export(&[], body).await.status, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_may_begin_in_pieces() {
    let server = Server::start().await;
    let address = server.url.trim_start_matches("http://");
    let pieces = [&PREFACE[..1], &PREFACE[1..3], &PREFACE[3..]];
    let (_, answer) = begun_with(address, &pieces).await;
    const SETTINGS: u8 = 4;
    assert_eq!(answer.get(3), Some(&SETTINGS), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_share_a_connection() {
    let server = Server::start().await;
    let client = Client::to(&server).await;
    let calls = (0..100).map(|number| {
        let name = format!("span {number}");
        let body = framed(0, &request(&[&name]));
        let client = &client;
        async move { client.export(&[], body).await.status }
    });
    let statuses = futures_util::future::join_all(calls).await;
    assert_eq!(statuses, vec![0; 100]);
    let names = "SELECT uniq(name), count() FROM spans";
    assert_eq!(server.stored(names).await, "100\t100");
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_report_over_http2_without_grpc() {
    let server = Server::start().await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build();
    let client = client.unwrap();
    let post = async |path: &str, content_type: &str, body: Vec<u8>| {
        let request = client.post(format!("{}/{path}", server.url));
        let request = request
            .bearer_auth("any-key")
            .header("content-type", content_type);
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.version(), reqwest::Version::HTTP_2);
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let get = async |path: &str| {
        let request = client.get(format!("{}/{path}", server.url));
        let answer = request.bearer_auth("any-key").send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let stored = post("v1/traces", PROTOBUF, request(&["over HTTP/2"])).await;
    assert_eq!(stored, (200, String::new()));
    for (signal, resources) in [("logs", "resourceLogs"), ("metrics", "resourceMetrics")] {
        let body = json!({resources: []}).to_string().into_bytes();
        let stored = post(&format!("v1/{signal}"), JSON, body).await;
        assert_eq!(stored, (200, "{}".to_owned()), "{signal}");
    }
    let batch = batch().to_string().into_bytes();
    assert_eq!(post("v1/ingest", JSON, batch).await.0, 202);
    assert_eq!(get("v1/config?app_id=com.example.shop").await.0, 200);
    assert_eq!(get("healthz").await, (200, "ok\n".to_owned()));
    let names = "SELECT count() FROM spans WHERE name = 'over HTTP/2'";
    assert_eq!(server.stored(names).await, "1");

    // Exporters take every 200 for success.
    for path in ["api/v1/projects", "v1/profiles", ""] {
        let (status, problem) = post(path, PROTOBUF, request(&["lost"])).await;
        assert_eq!(status, 404, "{path}");
        assert!(problem.contains("HTTP/1.1"), "{path}: {problem}");
    }
    assert_eq!(post(TRACES, PROTOBUF, request(&["lost"])).await.0, 415);
    let (status, _) = post("v1/traces", "application/grpc", request(&["lost"])).await;
    assert_eq!(status, 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_has_only_the_routes_of_devices() {
    let server = Server::start().await;
    let client = Client::to(&server).await;
    for path in ["openapi.json", "api/v1/projects", "v1/profiles", ""] {
        let answer = client.call(path, &[], Vec::new()).await;
        assert_eq!(answer.status, 12, "{path}");
    }
    // A client that is slow with its first bytes does not hold up the others, and HTTP/1 has the same port.
    let address = server.url.trim_start_matches("http://");
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"P").await.unwrap();
    assert_eq!(
        client.export(&[], framed(0, &request(&["a"]))).await.status,
        0
    );
    let health = server.client.get(format!("{}/healthz", server.url));
    assert_eq!(health.send().await.unwrap().status(), 200);
    tokio::time::sleep(Duration::from_millis(50)).await;
    slow.write_all(b"OST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}
