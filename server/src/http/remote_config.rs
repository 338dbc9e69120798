//! The remote configuration: its revisions, its preview, its rollout, and the kill switch.

mod configurations;
mod kill_switch;
mod one_device;
mod preview;
mod rollout;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use utoipa::OpenApi;

use crate::app::App;

/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(paths(
    configurations::latest,
    configurations::save,
    configurations::check,
    preview::run,
    one_device::ask,
    configurations::history,
    configurations::revision,
    configurations::roll_back,
    kill_switch::state,
    kill_switch::kill,
    kill_switch::switch_on,
    rollout::state,
))]
pub(super) struct Documented;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/config",
            get(configurations::latest).put(configurations::save),
        )
        .route(
            "/projects/{project}/config/check",
            post(configurations::check),
        )
        .route("/projects/{project}/config/preview", post(preview::run))
        .route("/projects/{project}/config/device", post(one_device::ask))
        .route(
            "/projects/{project}/config/revisions",
            get(configurations::history),
        )
        .route(
            "/projects/{project}/config/revisions/{revision}",
            get(configurations::revision),
        )
        .route(
            "/projects/{project}/config/rollback",
            post(configurations::roll_back),
        )
        .route(
            "/projects/{project}/config/kill",
            get(kill_switch::state).post(kill_switch::kill),
        )
        .route(
            "/projects/{project}/config/switch-on",
            post(kill_switch::switch_on),
        )
        .route("/projects/{project}/config/rollout", get(rollout::state))
}
