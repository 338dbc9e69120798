//! What people decide about groups of janks, what they write about groups and incidents, and who owns what.

pub(super) mod comments;
pub(super) mod handling;
pub(super) mod jank_group;
mod owner_rules;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post};
use utoipa::OpenApi;

use crate::app::App;

/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(paths(
    owner_rules::owners,
    comments::comment_on_incident,
    comments::delete_incident_comment,
    handling::list,
    handling::read,
    handling::decide,
    comments::comment_on_group,
    comments::delete_group_comment,
    owner_rules::owner_rule,
))]
pub(super) struct Documented;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/projects/{project}/rules/owners", get(owner_rules::owners))
        .route(
            "/projects/{project}/incidents/{incident}/comments",
            post(comments::comment_on_incident),
        )
        .route(
            "/projects/{project}/incidents/{incident}/comments/{comment}",
            delete(comments::delete_incident_comment),
        )
        .route("/projects/{project}/janks/handling", get(handling::list))
        .route(
            "/projects/{project}/janks/groups/{group}/handling",
            get(handling::read).put(handling::decide),
        )
        .route(
            "/projects/{project}/janks/groups/{group}/comments",
            post(comments::comment_on_group),
        )
        .route(
            "/projects/{project}/janks/groups/{group}/comments/{comment}",
            delete(comments::delete_group_comment),
        )
        .route(
            "/projects/{project}/janks/groups/{group}/owner-rule",
            post(owner_rules::owner_rule),
        )
}
