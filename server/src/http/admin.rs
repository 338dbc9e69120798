//! For operators: health, readiness, metrics.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::readiness::Health;

/// The process runs.
#[utoipa::path(
    get, path = "/healthz", tag = "operators",
    responses((status = 200, description = "`ok`", body = String, content_type = "text/plain; charset=utf-8")),
)]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

#[derive(Serialize, ToSchema)]
struct Readiness {
    /// `ready`, `degraded` (ClickHouse is away, events wait in the log) or `unavailable`.
    status: &'static str,
    log: &'static str,
    /// `ok`, or `failed`: a background task failed, and the server ends. The admin listener says which.
    tasks: String,
    /// `ok` or `away`. The admin listener says why.
    clickhouse: String,
}

/// Whether batches can be accepted: the log is writable and below its limit, and nothing the server needs has failed.
///
/// Disk and ClickHouse are asked at most once a second.
#[utoipa::path(
    get, path = "/readyz", tag = "operators",
    responses(
        (status = 200, description = "Batches are accepted.", body = Readiness),
        (status = 503, description = "Batches are refused.", body = Readiness),
    ),
)]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Response {
    let (code, mut readiness) = readiness(&app).await;
    for (said, instead) in [
        (&mut readiness.tasks, "failed"),
        (&mut readiness.clickhouse, "away"),
    ] {
        if said != "ok" {
            instead.clone_into(said);
        }
    }
    (code, Json(readiness)).into_response()
}

/// The same with the reasons, for operators.
pub(super) async fn explained_readyz(State(app): State<Arc<App>>) -> Response {
    let (code, readiness) = readiness(&app).await;
    (code, Json(readiness)).into_response()
}

async fn readiness(app: &App) -> (StatusCode, Readiness) {
    let Health { log, clickhouse } = app.readiness.health(&app.log, &app.clickhouse).await;
    let failed = app.failure.what();
    let (code, status) = if log.is_err() || failed.is_some() {
        (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
    } else if clickhouse.is_err() {
        (StatusCode::OK, "degraded")
    } else {
        (StatusCode::OK, "ready")
    };
    let readiness = Readiness {
        status,
        log: log.err().unwrap_or("ok"),
        tasks: failed.unwrap_or("ok").to_owned(),
        clickhouse: clickhouse.err().unwrap_or_else(|| "ok".to_owned()),
    };
    (code, readiness)
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    // Gauges that are always true are read when they are asked for.
    let log = &app.metrics.log;
    log.pending_records
        .set(i64::try_from(app.log.pending_records()).unwrap_or(i64::MAX));
    if let Some(free) = app.log.disk_free_bytes() {
        log.disk_free_bytes
            .set(i64::try_from(free).unwrap_or(i64::MAX));
    }
    (
        [(CONTENT_TYPE, prometheus::TEXT_FORMAT)],
        app.metrics.render(),
    )
        .into_response()
}
