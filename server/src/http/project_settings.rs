//! Projects, and what an admin sets for one: keys, storage, scrubbing, links, saved views, erasure.

mod device_keys;
mod erasures;
mod forward;
mod ingest_keys;
mod projects;
mod saved_views;
mod scrubbing;
mod source_links;
mod storage;
mod trace_links;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, patch, post};
use utoipa::OpenApi;

use crate::app::App;

/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(paths(
    projects::list,
    projects::create,
    projects::one,
    projects::update,
    scrubbing::read,
    scrubbing::save,
    scrubbing::dry_run,
    storage::read,
    storage::set,
    source_links::read,
    source_links::save,
    source_links::preview,
    forward::read,
    forward::save,
    trace_links::read,
    trace_links::save,
    saved_views::list,
    saved_views::create,
    saved_views::update,
    saved_views::remove,
    erasures::erase_project,
    erasures::erase_data,
    erasures::list,
    erasures::read,
    erasures::list_of_projects,
    ingest_keys::list,
    ingest_keys::create,
    ingest_keys::refused,
    ingest_keys::update,
    ingest_keys::revoke,
    device_keys::list,
    device_keys::create,
    device_keys::revoke,
))]
pub(super) struct Documented;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/projects", get(projects::list).post(projects::create))
        .route(
            "/projects/{project}/keys",
            get(ingest_keys::list).post(ingest_keys::create),
        )
        .route(
            "/projects/{project}/keys/refused",
            get(ingest_keys::refused),
        )
        .route(
            "/projects/{project}/keys/{key}",
            patch(ingest_keys::update).delete(ingest_keys::revoke),
        )
        .route(
            "/projects/{project}/device-keys",
            get(device_keys::list).post(device_keys::create),
        )
        .route(
            "/projects/{project}/device-keys/{key}",
            delete(device_keys::revoke),
        )
        .route(
            "/projects/{project}",
            get(projects::one)
                .patch(projects::update)
                .delete(erasures::erase_project),
        )
        .route(
            "/projects/{project}/scrubbing",
            get(scrubbing::read).put(scrubbing::save),
        )
        .route(
            "/projects/{project}/scrubbing/dry-run",
            post(scrubbing::dry_run),
        )
        .route(
            "/projects/{project}/storage",
            get(storage::read).put(storage::set),
        )
        .route(
            "/projects/{project}/source-links",
            get(source_links::read).put(source_links::save),
        )
        .route(
            "/projects/{project}/source-links/preview",
            post(source_links::preview),
        )
        .route(
            "/projects/{project}/forward",
            get(forward::read).put(forward::save),
        )
        .route(
            "/projects/{project}/trace-links",
            get(trace_links::read).put(trace_links::save),
        )
        .route(
            "/projects/{project}/views",
            get(saved_views::list).post(saved_views::create),
        )
        .route(
            "/projects/{project}/views/{view}",
            patch(saved_views::update).delete(saved_views::remove),
        )
        .route("/projects/{project}/data", delete(erasures::erase_data))
        .route("/projects/{project}/erasures", get(erasures::list))
        .route(
            "/projects/{project}/erasures/{erasure}",
            get(erasures::read),
        )
        .route("/erasures", get(erasures::list_of_projects))
}
