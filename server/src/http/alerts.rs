//! Alert rules, incidents, mutes, and the channels of notifications.

mod channels;
mod incidents;
mod mutes;
mod notifications;
mod preview;
mod rules;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, patch, post, put};
use utoipa::OpenApi;

use crate::app::App;

/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(paths(
    rules::list,
    rules::create,
    rules::check,
    preview::run,
    rules::suggestions,
    rules::read,
    rules::save,
    rules::remove,
    incidents::list,
    incidents::read,
    incidents::acknowledge,
    incidents::withdraw_acknowledgement,
    incidents::assign,
    incidents::assignees,
    mutes::list,
    mutes::create,
    mutes::end,
    channels::list,
    channels::create,
    channels::update,
    channels::remove,
    channels::test,
    notifications::list,
    notifications::retry,
    notifications::digest,
))]
pub(super) struct Documented;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/alert-rules",
            get(rules::list).post(rules::create),
        )
        .route("/projects/{project}/alert-rules/check", post(rules::check))
        .route(
            "/projects/{project}/alert-rules/preview",
            post(preview::run),
        )
        .route(
            "/projects/{project}/alert-rules/templates",
            get(rules::suggestions),
        )
        .route(
            "/projects/{project}/alert-rules/{rule}",
            get(rules::read).put(rules::save).delete(rules::remove),
        )
        .route("/projects/{project}/incidents", get(incidents::list))
        .route(
            "/projects/{project}/incidents/{incident}",
            get(incidents::read),
        )
        .route(
            "/projects/{project}/incidents/{incident}/acknowledge",
            post(incidents::acknowledge).delete(incidents::withdraw_acknowledgement),
        )
        .route(
            "/projects/{project}/incidents/{incident}/assignee",
            put(incidents::assign),
        )
        .route("/projects/{project}/assignees", get(incidents::assignees))
        .route(
            "/projects/{project}/mutes",
            get(mutes::list).post(mutes::create),
        )
        .route("/projects/{project}/mutes/{mute}", delete(mutes::end))
        .route(
            "/projects/{project}/channels",
            get(channels::list).post(channels::create),
        )
        .route(
            "/projects/{project}/channels/{channel}",
            patch(channels::update).delete(channels::remove),
        )
        .route(
            "/projects/{project}/channels/{channel}/test",
            post(channels::test),
        )
        .route(
            "/projects/{project}/notifications",
            get(notifications::list),
        )
        .route(
            "/projects/{project}/notifications/{notification}/retry",
            post(notifications::retry),
        )
        .route("/projects/{project}/digest", get(notifications::digest))
}
