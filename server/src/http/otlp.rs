//! `POST /v1/traces`, `/v1/logs`, `/v1/metrics`: OTLP over HTTP, as protobuf or JSON. [`crate::intake`] does the work.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{MethodRouter, post};

use super::body::{Content, media_type};
use super::device::Device;
use super::ingest::{Sent, take_counted};
use super::otlp_answers::{refused, stored};
use super::problem::Problem;
use crate::app::App;
use crate::intake::Format;
use crate::otlp::{Form, Kind};

/// The largest body as sent. By default, exporters do not compress.
pub(super) const BODY: usize = 4 << 20;

/// Stores the spans, log records or data points of a request.
pub(super) fn export(kind: Kind) -> MethodRouter<Arc<App>> {
    let export =
        async move |State(app): State<Arc<App>>,
                    device: Result<Device, Problem>,
                    headers: HeaderMap,
                    body: Body| { store(&app, device, &headers, body, kind).await };
    post(export)
}

async fn store(
    app: &App,
    device: Result<Device, Problem>,
    headers: &HeaderMap,
    body: Body,
    kind: Kind,
) -> Response {
    let media_type = media_type(headers);
    let is = |name| media_type.eq_ignore_ascii_case(name);
    let (form, content) = if is("application/x-protobuf") {
        (Form::Protobuf, Content::Checked)
    } else if is("application/json") {
        (Form::Json, Content::Checked)
    } else {
        return refused(Problem::otlp_content_type(), Form::Json);
    };
    let sent = Sent {
        headers,
        body,
        limit: BODY,
        content,
        format: Format::Otlp(kind, form),
    };
    match take_counted(app, device, sent).await {
        Ok(receipt) => stored(&receipt, kind, form),
        Err(problem) => refused(problem, form),
    }
}
