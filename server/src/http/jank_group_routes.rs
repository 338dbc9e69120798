//! The part of the routing table about groups of janks: what people decided about them, and their owners.

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post};

use super::{group_comments, group_handling, janks, owner_rules};
use crate::app::App;

pub(super) fn jank_groups() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/janks/handling",
            get(group_handling::list),
        )
        .route(
            "/projects/{project}/janks/groups/{group}",
            get(janks::current_group),
        )
        .route(
            "/projects/{project}/janks/groups/{group}/handling",
            get(group_handling::read).put(group_handling::decide),
        )
        .route(
            "/projects/{project}/janks/groups/{group}/comments",
            post(group_comments::create),
        )
        .route(
            "/projects/{project}/janks/groups/{group}/comments/{comment}",
            delete(group_comments::remove),
        )
        .route(
            "/projects/{project}/janks/groups/{group}/owner-rule",
            post(owner_rules::owner_rule),
        )
}
