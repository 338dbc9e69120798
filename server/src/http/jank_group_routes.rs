//! The part of the routing table about groups of janks: what people decided about them, and their owners.

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post};

use super::{comments, group_handling, janks, owner_rules};
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
