//! A real HTTP server, behind a proxy that counts the bytes on the wire.
#![expect(
    clippy::disallowed_methods,
    reason = "the runtime of each test ends its tasks"
)]

use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{any, get, post};
use http_body_util::StreamBody;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::collector::Running;

/// Bytes that passed the proxy.
#[derive(Default)]
pub(crate) struct Wire {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Wire {
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let read = |bytes: &AtomicU64| bytes.load(Ordering::SeqCst);
        (read(&self.sent), read(&self.received))
    }

    /// Waits until the client has sent more than this.
    pub(crate) async fn sent_more_than(&self, bytes: u64) {
        while self.bytes().0 <= bytes {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

pub(crate) const ANSWER: usize = 20_000;
pub(crate) const PIECE: usize = 1_000;

/// Sends one piece and then nothing, but does not end.
fn endless() -> Body {
    let mut sent = false;
    Body::new(StreamBody::new(futures_stream(move || {
        (!std::mem::replace(&mut sent, true)).then(|| Bytes::from(vec![b'x'; PIECE]))
    })))
}

fn futures_stream(
    mut next: impl FnMut() -> Option<Bytes> + Send + 'static,
) -> impl futures_util::Stream<Item = Result<http_body::Frame<Bytes>, std::io::Error>> + Send {
    futures_util::stream::poll_fn(move |_| match next() {
        Some(bytes) => std::task::Poll::Ready(Some(Ok(http_body::Frame::data(bytes)))),
        None => std::task::Poll::Pending,
    })
}

fn routes() -> Router {
    Router::new()
        .route(
            "/orders/{id}",
            post(async |_: Bytes| ([(CONTENT_TYPE, "application/json")], vec![b' '; ANSWER])),
        )
        .route("/endless", get(async || endless()))
        .route("/never", get(std::future::pending::<()>))
        .route(
            "/moved",
            any(async || (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/orders/7")])),
        )
        .route("/missing", get(async || StatusCode::NOT_FOUND))
        .route("/empty", get(async || StatusCode::NO_CONTENT))
        .route(
            "/parent",
            get(async |headers: HeaderMap| {
                let all = headers.get_all("traceparent").iter();
                let all: Vec<_> = all
                    .map(|value| value.to_str().unwrap().to_owned())
                    .collect();
                all.join(" and ")
            }),
        )
}

/// Starts the server and the proxy. Returns the address of the proxy.
pub(crate) async fn serve() -> (SocketAddr, Arc<Wire>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes()).await });
    let wire = Arc::new(Wire::default());
    let counting = Arc::clone(&wire);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (from, to) = client.into_split();
            let (back, there) = TcpStream::connect(server).await.unwrap().into_split();
            let (one, other) = (Arc::clone(&counting), Arc::clone(&counting));
            tokio::spawn(async move { forward(from, there, &one.sent).await });
            tokio::spawn(async move { forward(back, to, &other.received).await });
        }
    });
    (proxy, wire)
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, counted: &AtomicU64) {
    let mut buffer = vec![0; 16_384];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        counted.fetch_add(read as u64, Ordering::SeqCst);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// Returns an address where nothing listens.
pub(crate) fn closed() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Starts a server that reads the beginning of one request, writes a text and closes the connection. Returns its address.
pub(crate) fn breaks_off(text: String) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.read_exact(&mut [0; 16]).unwrap();
        client.write_all(text.as_bytes()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        // Closing with unread bytes would reset the connection.
        let _rest = client.read_to_end(&mut Vec::new()).is_ok();
    });
    address
}

pub(crate) fn run<R>(test: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test)
}

/// Returns the recorded spans of requests.
pub(crate) fn requests(running: &Running) -> Vec<Value> {
    running.flush();
    let spans = running.collector.events("spans").into_iter();
    spans.filter(|span| span["kind"] == "network").collect()
}

/// Returns bytes sent and received, requests, and requests without a response.
pub(crate) fn traffic(running: &Running) -> [u64; 4] {
    running.flush();
    let rows = running.collector.events("traffic");
    ["tx_bytes", "rx_bytes", "requests", "failed_requests"]
        .map(|field| rows.iter().filter_map(|row| row[field].as_u64()).sum())
}

pub(crate) fn number(span: &Value, attribute: &str) -> u64 {
    let text = span["attributes"][attribute].as_str().unwrap();
    text.parse().unwrap()
}
