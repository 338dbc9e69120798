//! An HTTP server that keeps the requests it receives, with scripted responses.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response};
use flate2::read::GzDecoder;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> String {
        let value = self.headers.get(name);
        value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    }

    pub(super) fn key(&self) -> String {
        self.header("idempotency-key")
    }

    /// The body, decompressed if it is compressed.
    pub(super) fn inflated(&self) -> Vec<u8> {
        if self.header("content-encoding").is_empty() {
            return self.body.to_vec();
        }
        assert_eq!(self.header("content-encoding"), "gzip");
        let mut inflated = Vec::new();
        let mut decoder = GzDecoder::new(&*self.body);
        decoder.read_to_end(&mut inflated).unwrap();
        inflated
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Returns the response to a request and its delay, given the number of requests before it.
type Script = dyn Fn(&Received, usize) -> (Response<Vec<u8>>, Duration) + Send + Sync;

pub(super) struct Receiver {
    pub(super) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    serving: JoinHandle<()>,
}

impl Receiver {
    pub(super) async fn start() -> Self {
        Self::answering(|_, _| (200, None, Duration::ZERO)).await
    }

    /// Starts a receiver with a script that returns status, `Retry-After` and delay.
    pub(super) async fn answering(
        script: impl Fn(&Received, usize) -> (u16, Option<&'static str>, Duration)
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::replying(move |received, before| {
            let (status, retry_after, wait) = script(received, before);
            let mut response = Response::builder().status(status);
            if let Some(retry_after) = retry_after {
                response = response.header("retry-after", retry_after);
            }
            if status == 302 {
                response = response.header("location", "/elsewhere");
            }
            (response.body(b"the reason".to_vec()).unwrap(), wait)
        })
        .await
    }

    pub(super) async fn replying(
        script: impl Fn(&Received, usize) -> (Response<Vec<u8>>, Duration) + Send + Sync + 'static,
    ) -> Self {
        let script: Arc<Script> = Arc::new(script);
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let kept = Arc::clone(&received);
        let handler =
            move |request: Request| answer(request, Arc::clone(&kept), Arc::clone(&script));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(handler);
        #[expect(clippy::disallowed_methods, reason = "ended when it is dropped")]
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            received,
            serving,
        }
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits for this many requests.
    pub(super) async fn has(&self, count: usize) -> Vec<Received> {
        for _ in 0..600 {
            if self.received().len() >= count {
                return self.received();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{count} of {:?}", self.received());
    }

    /// Returns the distinct keys, and the number of repeated requests.
    pub(super) fn keys(&self) -> (BTreeSet<String>, usize) {
        let received = self.received();
        let keys: BTreeSet<_> = received.iter().map(Received::key).collect();
        let dropped = received.len() - keys.len();
        (keys, dropped)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    request: Request,
    kept: Arc<Mutex<Vec<Received>>>,
    script: Arc<Script>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let received = Received {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: to_bytes(body, 4 << 20).await.unwrap(),
    };
    let before = {
        let mut kept = kept.lock().unwrap();
        kept.push(received.clone());
        kept.len() - 1
    };
    let (response, wait) = script(&received, before);
    tokio::time::sleep(wait).await;
    response.map(Body::from)
}
