//! Generated requests of OpenTelemetry. As protobuf and as JSON they are the same events, a server takes ten thousand of them, and damaged
//! ones are refused.

use futures_util::future::join_all;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use prost::Message;
use serde::Serialize;
use serde_json::Value;
use unjank_protocol::{Batch, Signal};
use unjank_server::ingest::Body;
use unjank_server::otlp::{Form, Kind, Unreadable, read};
use uuid::Uuid;

use crate::otlp::{JSON, PROTOBUF, post};
use crate::otlp_generated::{logs, metrics, traces};
use crate::server::Server;

/// How many requests are sent at the same time.
const AT_A_TIME: usize = 16;

/// A request as it is sent.
struct Sent {
    signal: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
    /// The number of its events, each of which is stored as a row or rejected. A data point may have several rows or none.
    rows: Option<u64>,
}

impl Sent {
    fn new(signal: &'static str, request: &(impl Message + Serialize), is_json: bool) -> Self {
        let (content_type, body) = if is_json {
            (JSON, serde_json::to_vec(request).unwrap())
        } else {
            (PROTOBUF, request.encode_to_vec())
        };
        Self {
            signal,
            content_type,
            body,
            rows: None,
        }
    }

    fn of_traces(request: &ExportTraceServiceRequest, is_json: bool) -> Self {
        let scopes = request.resource_spans.iter();
        let scopes = scopes.flat_map(|resource| &resource.scope_spans);
        let rows = scopes.map(|scope| scope.spans.len() as u64).sum();
        Self {
            rows: Some(rows),
            ..Self::new("traces", request, is_json)
        }
    }

    fn of_logs(request: &ExportLogsServiceRequest, is_json: bool) -> Self {
        let scopes = request.resource_logs.iter();
        let scopes = scopes.flat_map(|resource| &resource.scope_logs);
        let rows = scopes.map(|scope| scope.log_records.len() as u64).sum();
        Self {
            rows: Some(rows),
            ..Self::new("logs", request, is_json)
        }
    }

    /// The same with another byte somewhere.
    fn damaged(mut self, number: usize) -> Self {
        let length = self.body.len().max(1);
        if let Some(byte) = self.body.get_mut(number * 7_919 % length) {
            *byte ^= 1 << (number % 8);
        }
        self
    }

    /// Sends the request. Returns the status and how many of its events were rejected.
    async fn send(&self, server: &Server) -> (u16, u64) {
        let answer = post(server, self.signal, self.content_type, self.body.clone()).await;
        let status = answer.status().as_u16();
        let body = answer.bytes().await.unwrap();
        if status != 200 {
            return (status, 0);
        }
        let rejected = if self.content_type == PROTOBUF {
            let answer = ExportTraceServiceResponse::decode(body).unwrap();
            let partial = answer.partial_success;
            partial.map_or(0, |partial| partial.rejected_spans.unsigned_abs())
        } else {
            let answer: Value = serde_json::from_slice(&body).unwrap();
            let counts = ["rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"];
            let mut counts = counts
                .map(|name| &answer["partialSuccess"][name])
                .into_iter();
            let count = counts.find_map(|count| count.as_str());
            count.map_or(0, |count| count.parse().unwrap())
        };
        (status, rejected)
    }
}

/// The first requests of generators whose values are the same in every run.
fn generated(requests: usize) -> Vec<Sent> {
    let mut runner = TestRunner::deterministic();
    let (traces, logs, metrics) = (traces(), logs(), metrics());
    let requests = (0..requests).map(|number| {
        let is_json = number % 2 == 0;
        match number % 3 {
            0 => {
                let request = traces.new_tree(&mut runner).unwrap().current();
                Sent::of_traces(&request, is_json)
            }
            1 => {
                let request = logs.new_tree(&mut runner).unwrap().current();
                Sent::of_logs(&request, is_json)
            }
            _ => {
                let request = metrics.new_tree(&mut runner).unwrap().current();
                Sent::new("metrics", &request, is_json)
            }
        }
    });
    requests.collect()
}

async fn send_all(server: &Server, requests: &[Sent]) -> Vec<(u16, u64)> {
    let mut answers = Vec::new();
    for some in requests.chunks(AT_A_TIME) {
        answers.extend(join_all(some.iter().map(|request| request.send(server))).await);
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_stores_or_rejects_each_event_of_ten_thousand_requests() {
    let server = Server::start().await;
    let requests = generated(10_000);
    let answers = send_all(&server, &requests).await;
    let mut rows = 0;
    for (request, (status, rejected)) in requests.iter().zip(answers) {
        assert_eq!(status, 200, "{}: {:?}", request.signal, request.body);
        rows += request.rows.map_or(0, |rows| rows - rejected);
    }
    assert!(rows > 1_000, "most spans and records are stored: {rows}");
    let stored = "SELECT (SELECT count() FROM spans) + (SELECT count() FROM janks)";
    assert_eq!(server.stored(stored).await, rows.to_string());

    let damaged = requests.into_iter().take(2_000).enumerate();
    let damaged: Vec<_> = damaged
        .map(|(number, request)| request.damaged(number))
        .collect();
    let answers = send_all(&server, &damaged).await;
    for (request, (status, _)) in damaged.iter().zip(answers) {
        let is_answer = matches!(status, 200 | 400 | 413);
        assert!(
            is_answer,
            "{status}: {}: {:?}",
            request.signal, request.body
        );
    }
    let lost = "SELECT count() FROM outcomes WHERE toString(outcome) = 'dead_letter'";
    assert_eq!(server.stored(lost).await, "0");
}

type Rejected = Vec<(Signal, &'static str)>;

/// The batches without their ids as JSON, and the rejected events.
fn events(body: &Body<'_>, kind: Kind, form: Form) -> Result<(Vec<String>, Rejected), Unreadable> {
    let request = read(body, kind, form, 10_000)?;
    let rejected = request
        .undecoded
        .iter()
        .map(|(signal, reject)| (*signal, reject.code));
    let rejected = rejected.collect();
    let batches = request.batches.into_iter().map(|mut batch| {
        batch.batch_id = Uuid::nil();
        serde_json::to_string(&without_ids(batch)).unwrap()
    });
    Ok((batches.collect(), rejected))
}

/// Ids that are made from the bytes of the body differ.
fn without_ids(mut batch: Batch<'_>) -> Batch<'_> {
    for span in &mut batch.spans {
        if span.duration_us == 0 {
            (span.trace_id.0, span.span_id.0) = (1, 1);
        }
    }
    batch
}

fn is_the_same(kind: Kind, protobuf: &[u8], json: &[u8]) -> Result<(), TestCaseError> {
    let (protobuf, json) = (Body::new(protobuf), Body::new(json));
    let of_protobuf = events(&protobuf, kind, Form::Protobuf).unwrap();
    let of_json = events(&json, kind, Form::Json).unwrap();
    prop_assert_eq!(of_protobuf, of_json);
    Ok(())
}

/// Reads a body that lacks its end or has another byte somewhere. It may be refused.
fn damaged(kind: Kind, mut body: Vec<u8>, at: usize, byte: u8) {
    if body.is_empty() {
        return;
    }
    let at = at % body.len();
    for form in [Form::Protobuf, Form::Json] {
        drop(read(&Body::new(&body[..at]), kind, form, 100));
    }
    body[at] = byte;
    for form in [Form::Protobuf, Form::Json] {
        drop(read(&Body::new(&body), kind, form, 100));
    }
}

proptest! {
    #[test]
    fn spans_are_the_same_in_both_forms(request in traces(), at in any::<usize>(), byte in any::<u8>()) {
        let (protobuf, json) = (request.encode_to_vec(), serde_json::to_vec(&request).unwrap());
        is_the_same(Kind::Traces, &protobuf, &json)?;
        damaged(Kind::Traces, protobuf, at, byte);
        damaged(Kind::Traces, json, at, byte);
    }

    #[test]
    fn log_records_are_the_same_in_both_forms(request in logs(), at in any::<usize>(), byte in any::<u8>()) {
        let (protobuf, json) = (request.encode_to_vec(), serde_json::to_vec(&request).unwrap());
        is_the_same(Kind::Logs, &protobuf, &json)?;
        damaged(Kind::Logs, protobuf, at, byte);
        damaged(Kind::Logs, json, at, byte);
    }

    #[test]
    fn data_points_are_the_same_in_both_forms(request in metrics(), at in any::<usize>(), byte in any::<u8>()) {
        let (protobuf, json) = (request.encode_to_vec(), serde_json::to_vec(&request).unwrap());
        is_the_same(Kind::Metrics, &protobuf, &json)?;
        damaged(Kind::Metrics, protobuf, at, byte);
        damaged(Kind::Metrics, json, at, byte);
    }

    #[test]
    fn bytes_of_any_kind_are_read_or_refused(body in vec(any::<u8>(), 0..300)) {
        for kind in [Kind::Traces, Kind::Logs, Kind::Metrics] {
            for form in [Form::Protobuf, Form::Json] {
                drop(read(&Body::new(&body), kind, form, 100));
            }
        }
    }
}
