//! Health, readiness and metrics, for operators.

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

/// Reports that the process is running.
#[utoipa::path(
    get, path = "/healthz", tag = "operators",
    responses((status = 200, description = "`ok`", body = String, content_type = "text/plain; charset=utf-8")),
)]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

#[derive(Serialize, ToSchema)]
struct Readiness {
    /// `ready`, `degraded` (ClickHouse is unavailable and events wait in the log) or `unavailable`.
    status: &'static str,
    log: &'static str,
    /// `ok`, or `failed` if a background task has failed and the server is shutting down. The admin listener names the task.
    tasks: String,
    /// `ok` or `away`. The admin listener gives the reason.
    clickhouse: String,
}

/// Reports whether batches can be accepted: the log is writable and below its limit, and no required task has failed.
///
/// The disk and ClickHouse are checked at most once a second.
#[utoipa::path(
    get, path = "/readyz", tag = "operators",
    responses(
        (status = 200, description = "Batches are accepted.", body = Readiness),
        (status = 503, description = "Batches are rejected.", body = Readiness),
    ),
)]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Response {
    let (code, mut readiness) = readiness(&app).await;
    for (reason, instead) in [
        (&mut readiness.tasks, "failed"),
        (&mut readiness.clickhouse, "away"),
    ] {
        if reason != "ok" {
            instead.clone_into(reason);
        }
    }
    (code, Json(readiness)).into_response()
}

/// Like `readyz`, with the reasons, for operators.
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

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    // These gauges are read at each scrape.
    let log = &app.metrics.log;
    log.pending_records
        .set(i64::try_from(app.log.pending_records()).unwrap_or(i64::MAX));
    if let Some(free) = app.log.disk_free_bytes() {
        log.disk_free_bytes
            .set(i64::try_from(free).unwrap_or(i64::MAX));
    }
    let last_backup = app.last_backup.complete_until_s();
    app.metrics.last_backup_seconds.set(last_backup);
    (
        [(CONTENT_TYPE, prometheus::TEXT_FORMAT)],
        app.metrics.render(),
    )
        .into_response()
}
