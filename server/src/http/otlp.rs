//! `POST /v1/traces`, `/v1/logs`, `/v1/metrics`: OTLP over HTTP, as protobuf or JSON. [`crate::intake`] does the work.
//!
//! Exporters retry 429, 502, 503 and 504 only, and drop what they would have to keep for longer than about ten seconds.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use unjank_protocol::Receipt;

use super::device::Device;
use super::ingest::{Sent, take_counted};
use super::problem::{Detail, Problem};
use crate::app::App;
use crate::intake::Format;
use crate::otlp::{Form, Kind};

/// The largest body as sent. By default, exporters do not compress.
const BODY: usize = 4 << 20;
/// Exporters drop a request that they may not repeat soon.
const LONGEST_WAIT_S: u64 = 5;
pub(super) const CONFIG_ETAG: HeaderName = HeaderName::from_static("x-unjank-config-etag");
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Stores the spans of a request of OpenTelemetry.
pub(super) async fn traces(
    State(app): State<Arc<App>>,
    device: Result<Device, Problem>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    export(&app, device, headers, body, Kind::Traces).await
}

/// Stores the log records of a request of OpenTelemetry, as errors, janks or spans of no duration.
pub(super) async fn logs(
    State(app): State<Arc<App>>,
    device: Result<Device, Problem>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    export(&app, device, headers, body, Kind::Logs).await
}

/// Stores the data points of a request of OpenTelemetry as metrics.
pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    device: Result<Device, Problem>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    export(&app, device, headers, body, Kind::Metrics).await
}

async fn export(
    app: &App,
    device: Result<Device, Problem>,
    headers: HeaderMap,
    body: Body,
    kind: Kind,
) -> Response {
    let Some(form) = form(&headers) else {
        return refused(Problem::otlp_content_type(), Form::Json);
    };
    let sent = Sent {
        headers: &headers,
        body,
        limit: BODY,
        format: Format::Otlp(kind, form),
    };
    match take_counted(app, device, sent).await {
        Ok(receipt) => stored(&receipt, kind, form),
        Err(problem) => refused(problem, form),
    }
}

/// The form of the body, and of the answer.
fn form(headers: &HeaderMap) -> Option<Form> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = value.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/x-protobuf") {
        Some(Form::Protobuf)
    } else if media_type.eq_ignore_ascii_case("application/json") {
        Some(Form::Json)
    } else {
        None
    }
}

fn answer(form: Form, protobuf: Vec<u8>, json: &serde_json::Value) -> Response {
    match form {
        Form::Protobuf => ([(CONTENT_TYPE, PROTOBUF)], protobuf).into_response(),
        Form::Json => ([(CONTENT_TYPE, JSON)], json.to_string()).into_response(),
    }
}

/// `ExportTraceServiceResponse` and its siblings. Without rejected events they are empty.
fn stored(receipt: &Receipt<'_>, kind: Kind, form: Form) -> Response {
    let (rejected, reason) = rejected(receipt);
    let mut response = if rejected == 0 {
        answer(form, Vec::new(), &json!({}))
    } else {
        let name = match kind {
            Kind::Traces => "rejectedSpans",
            Kind::Logs => "rejectedLogRecords",
            Kind::Metrics => "rejectedDataPoints",
        };
        let mut partial = Vec::new();
        put_number(&mut partial, 1, rejected);
        put_bytes(&mut partial, 2, reason.as_bytes());
        let mut protobuf = Vec::new();
        put_bytes(&mut protobuf, 1, &partial);
        let json = json!({"partialSuccess": {name: rejected.to_string(), "errorMessage": reason}});
        answer(form, protobuf, &json)
    };
    let etag = receipt.config_etag.as_ref();
    let etag = etag.and_then(|etag| HeaderValue::from_str(etag.as_str()).ok());
    if let Some(etag) = etag {
        response.headers_mut().insert(CONFIG_ETAG, etag);
    }
    response
}

/// The number of events that are not stored, and the first reason.
fn rejected(receipt: &Receipt<'_>) -> (u64, String) {
    let invalid = receipt.rejected.len() as u64;
    let unlisted: u64 = receipt.rejected_unlisted.iter().map(|one| one.events).sum();
    let over: u64 = receipt.rate_limits.iter().map(|limit| limit.dropped).sum();
    let reason = match receipt.rejected.first() {
        Some(first) => format!("{}: {}", first.code, first.detail),
        None => {
            "rate_limited: more events a second than the project allows for the signal".to_owned()
        }
    };
    (invalid + unlisted + over, reason)
}

/// `google.rpc.Status`.
fn refused(problem: Problem, form: Form) -> Response {
    let mut response = problem.into_response();
    let status = match response.status() {
        // Exporters do not repeat a 408.
        StatusCode::REQUEST_TIMEOUT => StatusCode::SERVICE_UNAVAILABLE,
        status => status,
    };
    let code = match status {
        StatusCode::UNAUTHORIZED => 16,
        StatusCode::FORBIDDEN => 7,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYLOAD_TOO_LARGE => 8,
        StatusCode::SERVICE_UNAVAILABLE => 14,
        status if status.is_server_error() => 13,
        _ => 3,
    };
    let detail = response.extensions_mut().remove();
    let Detail(message) = detail.unwrap_or_else(|| Detail(String::new()));
    let mut protobuf = Vec::new();
    put_number(&mut protobuf, 1, code);
    put_bytes(&mut protobuf, 2, message.as_bytes());
    let body = answer(form, protobuf, &json!({"code": code, "message": message}));
    let mut headers = std::mem::take(response.headers_mut());
    let wait = headers
        .get(RETRY_AFTER)
        .and_then(|wait| wait.to_str().ok()?.parse::<u64>().ok());
    if wait.is_some_and(|wait| wait > LONGEST_WAIT_S) {
        headers.insert(RETRY_AFTER, HeaderValue::from(LONGEST_WAIT_S));
    }
    headers.remove(CONTENT_TYPE);
    headers.remove(axum::http::header::CONTENT_LENGTH);
    headers.extend(body.headers().clone());
    let mut response = (status, body.into_body()).into_response();
    *response.headers_mut() = headers;
    response
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
