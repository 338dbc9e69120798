//! A server that accepts batches according to the protocol and records them.

use std::collections::HashMap;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use unjank_columns::Bounds;
use unjank_protocol::Batch;

/// The sink's reaction to its n-th request, counted from 0.
pub(crate) type Mood = fn(u64) -> Act;

pub(crate) enum Act {
    Take,
    /// Accept the batch after a delay.
    TakeAfter(Duration),
    /// Respond with this status, and keep nothing.
    Refuse(u16),
    /// Keep the batch, then fail the response.
    KeepAndFail,
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) requests: u64,
    /// Accepted batches as JSON text, with the number of times each was sent.
    pub(crate) batches: HashMap<String, (String, u64)>,
    pub(crate) encodings: HashMap<String, u64>,
}

pub(crate) struct Sink {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    runtime: tokio::runtime::Runtime,
}

struct Counter {
    seen: Arc<Mutex<Seen>>,
    mood: Mood,
}

impl Sink {
    pub(crate) fn start(mood: Mood) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let state = Arc::new(Counter {
            seen: Arc::clone(&seen),
            mood,
        });
        let app = Router::new()
            .route("/v1/ingest", post(ingest))
            .with_state(state);
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        runtime.block_on(async {
            tasks.spawn(async move { axum::serve(listener, app).await });
        });
        tasks.detach_all();
        Self {
            address,
            seen,
            runtime,
        }
    }

    /// Runs the load test against the sink. Returns its output and its JSON report.
    pub(crate) fn run(&self, arguments: &[&str]) -> (Output, Value) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let output = Command::new(env!("CARGO_BIN_EXE_unjank-loadtest"))
            .args(["run", "--key", "k", "--url"])
            .arg(format!("http://{}", self.address))
            .arg("--report-json")
            .arg(&path)
            .args(arguments)
            .output()
            .unwrap();
        (output, read_json(&path))
    }

    pub(crate) fn finish(self) -> Seen {
        self.runtime.shutdown_background();
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|_| "null".to_owned());
    serde_json::from_str(&text).unwrap()
}

async fn ingest(State(counter): State<Arc<Counter>>, headers: HeaderMap, body: Bytes) -> Response {
    let number = {
        let mut seen = counter.seen.lock().unwrap();
        seen.requests += 1;
        seen.requests - 1
    };
    let act = (counter.mood)(number);
    match act {
        Act::Refuse(status) => {
            let status = StatusCode::from_u16(status).unwrap();
            return (status, [("retry-after", "1")], "").into_response();
        }
        Act::TakeAfter(pause) => tokio::time::sleep(pause).await,
        Act::Take | Act::KeepAndFail => {}
    }
    let (encoding, json) = decode(&headers, &body);
    let batch: Batch<'_> = serde_json::from_str(&json).unwrap();
    let id = batch.batch_id.to_string();
    let rejected: Vec<Value> = batch
        .spans
        .iter()
        .enumerate()
        .filter(|(_, span)| span.duration_us < 0)
        .map(|(index, _)| {
            json!({"signal": "spans", "index": index, "code": "duration_out_of_range", "detail": ""})
        })
        .collect();
    let accepted = batch.events() - rejected.len();
    let mut seen = counter.seen.lock().unwrap();
    *seen.encodings.entry(encoding).or_default() += 1;
    let kept = seen.batches.entry(id.clone()).or_default();
    kept.0 = json;
    kept.1 += 1;
    if matches!(act, Act::KeepAndFail) {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let receipt = json!({
        "batch_id": id, "accepted": accepted, "rejected": rejected, "duplicate": kept.1 > 1,
    });
    (StatusCode::ACCEPTED, axum::Json(receipt)).into_response()
}

fn decode(headers: &HeaderMap, body: &[u8]) -> (String, String) {
    let encoding = headers
        .get("content-encoding")
        .map_or("identity", |value| value.to_str().unwrap());
    let mut plain = Vec::new();
    match encoding {
        "zstd" => plain = zstd::decode_all(body).unwrap(),
        "gzip" => {
            flate2::read::GzDecoder::new(body)
                .read_to_end(&mut plain)
                .unwrap();
        }
        _ => plain.extend_from_slice(body),
    }
    let json = if headers["content-type"] == unjank_columns::MEDIA_TYPE {
        let read = unjank_columns::read(&plain, &Bounds::default()).unwrap();
        serde_json::to_string(&read.batch).unwrap()
    } else {
        String::from_utf8(plain).unwrap()
    };
    (encoding.to_owned(), json)
}
