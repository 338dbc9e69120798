//! Answers to exporters of OpenTelemetry.
//!
//! Over HTTP, exporters repeat requests after 429, 502, 503 and 504 only. They drop what they would have to keep for longer than about ten
//! seconds.

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use unjank_protocol::{Receipt, Signal};

use super::grpc_answers;
use crate::http::api::problem::{Detail, Problem};
use crate::otlp::{Form, Kind};

/// What to do about a request that is too large. Collectors drop it, and many are larger by default.
const SMALLER: &str = "; in a collector, set `send_batch_size: 1000` and `send_batch_max_size: 1000` of its batch processor";
/// Exporters drop a request that they may not repeat soon.
const LONGEST_WAIT_S: u64 = 5;
pub(super) const CONFIG_ETAG: HeaderName = HeaderName::from_static("x-unjank-config-etag");
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers a stored request over HTTP.
pub(crate) fn stored(receipt: &Receipt<'_>, kind: Kind, form: Form) -> Response {
    let rejected = rejected(receipt, kind);
    let body = match form {
        Form::Protobuf => export_response(rejected.as_ref()),
        Form::Json => json_response(rejected.as_ref(), kind).to_string().into(),
    };
    let mut response = (content_type(form), body).into_response();
    response.headers_mut().extend(config_etag(receipt));
    response
}

/// Answers a stored request over gRPC.
pub(super) fn stored_message(receipt: &Receipt<'_>, kind: Kind) -> Response {
    let mut response = grpc_answers::answer(&export_response(rejected(receipt, kind).as_ref()));
    response.headers_mut().extend(config_etag(receipt));
    response
}

/// Answers a refused request over HTTP, with `google.rpc.Status`.
pub(crate) fn refused(problem: Problem, form: Form) -> Response {
    let Refusal {
        status,
        code,
        message,
        mut headers,
        ..
    } = Refusal::new(problem);
    let body = match form {
        Form::Protobuf => rpc_status(code, &message, None),
        Form::Json => json!({"code": code, "message": message}).to_string().into(),
    };
    headers.extend(content_type(form).map(|(name, value)| (Some(name), value)));
    let mut response = (status, body).into_response();
    response.headers_mut().extend(headers);
    response
}

/// Answers a refused request over gRPC. `RetryInfo` tells when to repeat it.
pub(super) fn refused_message(problem: Problem) -> Response {
    let refusal = Refusal::new(problem);
    let details = rpc_status(refusal.code, &refusal.message, refusal.wait_s);
    grpc_answers::failure(refusal.code, &refusal.message, &details)
}

fn content_type(form: Form) -> [(HeaderName, HeaderValue); 1] {
    let value = match form {
        Form::Protobuf => PROTOBUF,
        Form::Json => JSON,
    };
    [(CONTENT_TYPE, value)]
}

fn config_etag(receipt: &Receipt<'_>) -> Option<(HeaderName, HeaderValue)> {
    let etag = receipt.config_etag.as_ref()?;
    let value = HeaderValue::from_str(etag.as_str()).ok()?;
    Some((CONFIG_ETAG, value))
}

/// Events that are not stored, and the first reason.
struct Rejected {
    events: u64,
    reason: String,
}

fn rejected(receipt: &Receipt<'_>, kind: Kind) -> Option<Rejected> {
    // Spans of MetricKit also become metrics, which are not events that the exporter has sent.
    let is_sent = |signal: Signal| (signal == Signal::Metrics) == (kind == Kind::Metrics);
    let listed = receipt.rejected.iter().filter(|one| is_sent(one.signal));
    let unlisted = receipt.rejected_unlisted.iter();
    let unlisted = unlisted.filter(|one| is_sent(one.signal));
    let unlisted: u64 = unlisted.map(|one| one.events).sum();
    let over = receipt.rate_limits.iter();
    let over = over.filter(|limit| is_sent(limit.signal));
    let over: u64 = over.map(|limit| limit.dropped).sum();
    let first = listed.clone().next();
    let events = listed.count() as u64 + unlisted + over;
    let reason = match first {
        Some(first) => format!("{}: {}", first.code, first.detail),
        None if over == 0 => {
            "invalid_event: too many events were rejected to list the reasons for these".to_owned()
        }
        None => "rate_limited: the project is over its quota of events per second for the signal"
            .to_owned(),
    };
    (events > 0).then_some(Rejected { events, reason })
}

/// `ExportTraceServiceResponse` and its siblings, whose numbers are the same. Without rejected events they are empty.
fn export_response(rejected: Option<&Rejected>) -> Vec<u8> {
    let mut message = Vec::new();
    if let Some(Rejected { events, reason }) = rejected {
        let mut partial = Vec::new();
        put_number(&mut partial, 1, *events);
        put_bytes(&mut partial, 2, reason.as_bytes());
        put_bytes(&mut message, 1, &partial);
    }
    message
}

fn json_response(rejected: Option<&Rejected>, kind: Kind) -> serde_json::Value {
    let name = match kind {
        Kind::Traces => "rejectedSpans",
        Kind::Logs => "rejectedLogRecords",
        Kind::Metrics => "rejectedDataPoints",
    };
    match rejected {
        Some(Rejected { events, reason }) => {
            json!({"partialSuccess": {name: events.to_string(), "errorMessage": reason}})
        }
        None => json!({}),
    }
}

/// A problem as exporters understand it.
struct Refusal {
    status: StatusCode,
    /// `google.rpc.Code`.
    code: u8,
    message: String,
    wait_s: Option<u64>,
    /// The headers of the problem, without those of its body.
    headers: HeaderMap,
}

impl Refusal {
    fn new(problem: Problem) -> Self {
        let mut response = problem.into_response();
        let status = match response.status() {
            // Exporters do not repeat a 408.
            StatusCode::REQUEST_TIMEOUT => StatusCode::SERVICE_UNAVAILABLE,
            status => status,
        };
        let code = match status {
            StatusCode::FORBIDDEN => 7,
            // The exporter for Python repeats every refusal with the code 8, so a request that is too large has another.
            StatusCode::TOO_MANY_REQUESTS => 8,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => 12,
            StatusCode::SERVICE_UNAVAILABLE => 14,
            StatusCode::UNAUTHORIZED => 16,
            status if status.is_server_error() => 13,
            _ => 3,
        };
        let detail = response.extensions_mut().remove();
        let Detail(mut message) = detail.unwrap_or_else(|| Detail(String::new()));
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            message.push_str(SMALLER);
        }
        let mut headers = std::mem::take(response.headers_mut());
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LENGTH);
        let wait_s = headers
            .get(RETRY_AFTER)
            .and_then(|wait| wait.to_str().ok()?.parse::<u64>().ok())
            .map(|wait| wait.min(LONGEST_WAIT_S));
        if let Some(wait_s) = wait_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait_s));
        }
        Self {
            status,
            code,
            message,
            wait_s,
            headers,
        }
    }
}

/// `google.rpc.Status`, with a `google.rpc.RetryInfo` if the request may be repeated after some time.
fn rpc_status(code: u8, message: &str, wait_s: Option<u64>) -> Vec<u8> {
    let mut status = Vec::new();
    put_number(&mut status, 1, u64::from(code));
    put_bytes(&mut status, 2, message.as_bytes());
    if let Some(wait_s) = wait_s {
        let (mut duration, mut info, mut any) = (Vec::new(), Vec::new(), Vec::new());
        put_number(&mut duration, 1, wait_s);
        put_bytes(&mut info, 1, &duration);
        put_bytes(&mut any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
        put_bytes(&mut any, 2, &info);
        put_bytes(&mut status, 3, &any);
    }
    status
}

fn put_number(message: &mut Vec<u8>, field: u8, number: u64) {
    message.push(field << 3);
    varint(message, number);
}

fn put_bytes(message: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    message.push(field << 3 | 2);
    varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

fn varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}
