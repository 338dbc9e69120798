//! Answers over gRPC: a message or a failure, with the status in trailers or headers.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use http_body_util::{BodyExt, Full};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::http::api::body::media_type;
use crate::otlp::PREFIX;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// Bytes that a message of a status may not have. Those above ASCII are encoded anyway.
const NOT_IN_MESSAGES: &AsciiSet = &CONTROLS.add(b'%');

/// Whether the client of a request reads `grpc-status`. For all others, the status 200 of every answer of gRPC is success.
pub(super) fn speaks_grpc(headers: &HeaderMap) -> bool {
    let media_type = media_type(headers).to_ascii_lowercase();
    media_type.starts_with("application/grpc")
}

/// A successful answer.
pub(super) fn answer(message: &[u8]) -> Response {
    let mut body = Vec::with_capacity(PREFIX + message.len());
    body.push(0);
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend_from_slice(message);
    let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from(0))]);
    let body = Full::from(body).with_trailers(async { Some(Ok(trailers)) });
    with_headers(Body::new(body))
}

/// An answer without a message. `details` is `google.rpc.Status`.
pub(super) fn failure(code: u8, message: &str, details: &[u8]) -> Response {
    let mut response = with_headers(Body::empty());
    let headers = response.headers_mut();
    headers.insert(STATUS, HeaderValue::from(u16::from(code)));
    let message = utf8_percent_encode(message, NOT_IN_MESSAGES).to_string();
    let details = BASE64_STANDARD_NO_PAD.encode(details);
    for (name, text) in [(MESSAGE, message), (STATUS_DETAILS, details)] {
        // Both are ASCII now.
        if let Ok(value) = HeaderValue::from_str(&text)
            && !value.is_empty()
        {
            headers.insert(name, value);
        }
    }
    response
}

fn with_headers(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC);
    let accepted = HeaderValue::from_static("identity, gzip, zstd, deflate");
    headers.insert(ACCEPT_ENCODING, accepted);
    response
}
