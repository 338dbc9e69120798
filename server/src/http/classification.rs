//! The classification rules of a project.

pub(super) mod rules;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use utoipa::OpenApi;

use crate::app::App;

/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(paths(
    rules::latest,
    rules::save,
    rules::check,
    rules::dry_run,
    rules::history,
    rules::revision,
    rules::roll_back,
    rules::reclassification,
))]
pub(super) struct Documented;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/rules",
            get(rules::latest).put(rules::save),
        )
        .route("/projects/{project}/rules/check", post(rules::check))
        .route("/projects/{project}/rules/dry-run", post(rules::dry_run))
        .route("/projects/{project}/rules/revisions", get(rules::history))
        .route(
            "/projects/{project}/rules/revisions/{revision}",
            get(rules::revision),
        )
        .route("/projects/{project}/rules/rollback", post(rules::roll_back))
        .route(
            "/projects/{project}/rules/reclassification",
            get(rules::reclassification),
        )
}
