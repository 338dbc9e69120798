//! A batch that a proxy or a broken connection changes is sent again, and does not block the others for ever.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unjank::Mode;

use crate::collector::Running;

/// A status line without the version, and a body.
type Answer = (&'static str, String);

/// What a server received, in its order.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Value>>>);

impl Received {
    /// Starts a server. `answer` refuses batches by the name of their first span; the server accepts all others.
    fn server(&self, mut answer: impl FnMut(&str) -> Option<Answer> + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                received.respond(&mut stream.unwrap(), &mut answer);
            }
        });
        format!("http://{address}")
    }

    /// Responds to one request.
    fn respond(&self, stream: &mut TcpStream, mut answer: impl FnMut(&str) -> Option<Answer>) {
        let Some(batch) = request(stream) else {
            return;
        };
        let refusal = self.note(&batch).and_then(|name| answer(&name));
        let (status, body) = refusal.unwrap_or_else(|| accepted(&batch));
        let _written = write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
    }

    /// Notes a request. Returns the name of its first span.
    fn note(&self, batch: &Value) -> Option<String> {
        self.0.lock().unwrap().push(batch.clone());
        let name = batch["spans"][0]["name"].as_str();
        name.map(str::to_owned)
    }

    /// The ids of the batches whose first span has this name.
    fn ids(&self, name: &str) -> Vec<String> {
        let received = self.0.lock().unwrap();
        let batches = received.iter();
        let named = batches.filter(|batch| batch["spans"][0]["name"] == name);
        named.map(|batch| batch["batch_id"].to_string()).collect()
    }

    /// The spans that the SDK gave up. A batch may also have the metrics of monitors.
    fn dropped_spans(&self) -> Vec<Value> {
        let received = self.0.lock().unwrap();
        let lists = received
            .iter()
            .filter_map(|batch| batch["sdk_health"]["dropped"].as_array());
        let losses = lists.flatten();
        let of_spans = losses.filter(|loss| loss["signal"] == "spans");
        of_spans.cloned().collect()
    }
}

/// Reads a batch, or `null` for a request of the configuration.
fn request(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let header = line.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(bytes) = header.strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
    }
    if length == 0 {
        return Some(Value::Null);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let json = zstd::stream::decode_all(body.as_slice()).ok()?;
    serde_json::from_slice(&json).ok()
}

/// The receipt of a batch, or the configuration.
fn accepted(batch: &Value) -> Answer {
    if batch.is_null() {
        let document = json!({"revision": 1, "monitors": {}});
        return ("200 OK", document.to_string());
    }
    let receipt = json!({"batch_id": batch["batch_id"], "accepted": 1});
    ("202 Accepted", receipt.to_string())
}

fn refused(status: &'static str, code: &str) -> Answer {
    let problem = json!({"code": code, "detail": "for a test"});
    (status, problem.to_string())
}

fn running(endpoint: &str) -> Running {
    Running::at(endpoint, |config| {
        config
            .mode(Mode::Test)
            .start_jitter(Duration::ZERO)
            .first_wait(Duration::from_millis(1))
    })
}

fn flush_until_all_is_sent() {
    // A flush does not wait for a batch that was changed.
    let is_sent = || unjank::flush(Duration::from_secs(10));
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_sent() {
        assert!(Instant::now() < deadline, "not sent in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_batch_that_a_proxy_changes_is_sent_again() {
    let received = Received::default();
    let mut answers = vec![
        refused("400 Bad Request", "body_truncated"),
        refused("400 Bad Request", "corrupt_encoding"),
        refused("400 Bad Request", "invalid_json"),
        refused("400 Bad Request", "invalid_columns"),
        refused("415 Unsupported Media Type", "content_type"),
        refused("415 Unsupported Media Type", "content_encoding"),
        ("400 Bad Request", "<html>".to_owned()),
    ];
    let endpoint = received.server(move |_| answers.pop());
    let _running = running(&endpoint);
    unjank::span("checkout").end();
    flush_until_all_is_sent();
    let mut ids = received.ids("checkout");
    assert_eq!(ids.len(), 8);
    ids.dedup();
    assert_eq!(ids.len(), 1, "each attempt should send the same batch");
    flush_until_all_is_sent();
    assert_eq!(received.dropped_spans(), Vec::<Value>::new());
    assert_eq!(unjank::problem(), None);
}

#[test]
fn a_batch_that_never_arrives_unchanged_makes_room_for_the_next_one() {
    let received = Received::default();
    let endpoint = received
        .server(|name| (name == "changed").then(|| refused("400 Bad Request", "corrupt_encoding")));
    let running = running(&endpoint);
    unjank::span("changed").end();
    running.flush();
    unjank::span("checkout").end();
    flush_until_all_is_sent();
    flush_until_all_is_sent();
    assert_eq!(received.ids("changed").len(), 8);
    assert_eq!(received.ids("checkout").len(), 1);
    let lost = json!({"signal": "spans", "reason": "refused", "count": 1});
    assert_eq!(received.dropped_spans(), [lost]);
}

#[test]
fn a_final_refusal_is_not_repeated() {
    let received = Received::default();
    let endpoint = received
        .server(|name| (name == "unfit").then(|| refused("400 Bad Request", "invalid_envelope")));
    let running = running(&endpoint);
    unjank::span("unfit").end();
    running.flush();
    unjank::span("checkout").end();
    flush_until_all_is_sent();
    assert_eq!(received.ids("unfit").len(), 1);
    assert_eq!(received.ids("checkout").len(), 1);
    let lost = json!({"signal": "spans", "reason": "refused", "count": 1});
    assert_eq!(received.dropped_spans(), [lost]);
}
