//! `GET /v1/config`: the configuration of a device, from memory.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use unjank_foundation::clock::UnixTime;
use unjank_protocol::config::Document;
use unjank_remote_config::{Attributes, Resolved};

use super::device::{Device, own_attributes};
use crate::access::Caller;
use crate::app::App;
use crate::http::api::openapi::{IfNoneMatch, NotModified, OwnApp, QueryString, Refused};
use crate::http::api::problem::Problem;

/// Returns what a device should collect, how much of it, and how to upload it.
#[utoipa::path(
    get, path = "/v1/config", tag = "remote_config",
    params(Attributes, IfNoneMatch),
    responses(
        (status = 200, description = "The configuration of this device.", body = Document, headers(
            ("ETag" = String, description = "The version of this configuration. Receipts carry the same `ETag`."),
            ("Cache-Control" = String, description = "How long the configuration is valid: until the next poll, or until an override ends."),
        )),
        NotModified,
        Refused<(Device, QueryString, OwnApp)>,
    ),
)]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    // Quotas do not apply here: a device that should send less must be able to learn it.
    Device(Caller { device, .. }): Device,
    query: Result<Query<Attributes>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(attributes) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let attributes = own_attributes(attributes, &device)?;
    let now = app.clock.now();
    let project = app.access.project(&device.project);
    let project = project.ok_or_else(Problem::unknown_key)?;
    let resolved = project.configuration.resolve(&attributes.device(), now);
    Ok(answer(&resolved, &headers, now))
}

fn answer(resolved: &Resolved, headers: &HeaderMap, now: UnixTime) -> Response {
    let poll = u64::from(resolved.document.poll_interval_s);
    // An answer must not be kept for longer than it is valid.
    let until_change = resolved
        .changes_at
        .map_or(u64::MAX, |at| at.since(now).as_secs());
    let cache = format!("private, max-age={}", poll.min(until_change));
    let etag = HeaderValue::from_str(&resolved.etag).unwrap_or(HeaderValue::from_static("\"\""));
    let cache = HeaderValue::from_str(&cache).unwrap_or(HeaderValue::from_static("private"));
    let known = is_known(headers, &resolved.etag);
    let headers = [(ETAG, etag), (CACHE_CONTROL, cache)];
    if known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (headers, json, Bytes::from_owner(Arc::clone(&resolved.body))).into_response()
}

/// Whether the client already has the body of an `ETag`.
pub(crate) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let sent = headers.get_all(IF_NONE_MATCH).iter();
    sent.filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|tag| tag.trim().trim_start_matches("W/"))
        .any(|tag| tag == etag || tag == "*")
}
