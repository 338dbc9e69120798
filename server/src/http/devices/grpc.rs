//! OTLP over gRPC: `Export` of the services for traces, logs and metrics. [`crate::http::devices::otlp`] does the work.
//!
//! Each call has one message and one answer. [`crate::http::devices::grpc_answers`] has what gRPC adds to HTTP/2: the status in trailers.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use super::grpc_answers::{failure, speaks_grpc};
use super::otlp::{Transport, export};
use crate::app::App;
use crate::http::api::problem::Problem;
use crate::otlp::Kind;

const UNIMPLEMENTED: u8 = 12;

pub(super) fn services() -> Router<Arc<App>> {
    let path = |service| format!("/opentelemetry.proto.collector.{service}/Export");
    let export = |kind| export(kind, Transport::Grpc);
    Router::new()
        .route(&path("trace.v1.TraceService"), export(Kind::Traces))
        .route(&path("logs.v1.LogsService"), export(Kind::Logs))
        .route(&path("metrics.v1.MetricsService"), export(Kind::Metrics))
        // `body` reads the body, within its own limits.
        .layer(DefaultBodyLimit::disable())
}

/// Answers requests over HTTP/2 that have no route there.
pub(crate) async fn not_over_http2(headers: HeaderMap) -> Response {
    if speaks_grpc(&headers) {
        let message = "this server has only the services of OTLP for traces, logs and metrics";
        failure(UNIMPLEMENTED, message, &[])
    } else {
        Problem::not_over_http2().into_response()
    }
}
