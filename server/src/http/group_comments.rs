//! `/api/v1/projects/{project}/janks/groups/{group}/comments`: comments on groups of janks.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::group_handling::{GroupPath, group_id, group_of, title_of};
use super::object::Object;
use super::openapi::{Invalid, JsonBody, Missing, Refused, RunsQuery};
use super::problem::Problem;
use super::roles::Editor;
use crate::app::App;
use crate::clock::UnixTime;
use crate::store::control::GroupComment;

/// A comment on a group of janks.
#[derive(Serialize, ToSchema)]
#[schema(as = JankGroupComment)]
pub(super) struct CommentBody {
    id: Uuid,
    author: String,
    /// Plain text.
    text: String,
    created_at: UnixTime,
}

impl From<GroupComment> for CommentBody {
    fn from(comment: GroupComment) -> Self {
        Self {
            id: comment.id,
            author: comment.author,
            text: comment.text,
            created_at: comment.created_at,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewJankGroupComment)]
pub(super) struct NewComment {
    /// Plain text.
    #[schema(min_length = 1, max_length = 2_000)]
    text: String,
}

/// Comments on a group of janks. A group has at most 200 comments.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/janks/groups/{group}/comments", tag = "janks",
    request_body = NewComment,
    responses((status = 201, body = CommentBody), Refused<(Editor, Missing, JsonBody, Invalid, RunsQuery)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: GroupPath,
    Object(new, ..): Object<NewComment>,
) -> Result<(StatusCode, Json<CommentBody>), Problem> {
    let group = group_of(path)?;
    let title = title_of(&app, &member, group).await?;
    let subject = (group, title.as_str());
    let now = app.clock.now();
    let comment = (app.control)
        .comment_on_group(&member.project, subject, &new.text, &member.actor, now)
        .await?;
    Ok((StatusCode::CREATED, Json(comment.into())))
}

/// Deletes a comment that the caller wrote.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/janks/groups/{group}/comments/{comment}", tag = "janks",
    responses((status = 204), Refused<(Editor, Missing)>),
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: Result<Path<(String, String, Uuid)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((_, group, comment)) = path.map_err(|_| Problem::not_found())?;
    let group = group_id(&group).ok_or_else(Problem::not_found)?;
    let now = app.clock.now();
    (app.control)
        .delete_group_comment(&member.project, (group, comment), &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
