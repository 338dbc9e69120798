//! `/api/v1/projects/{project}/…/comments`: comments on groups of janks and on incidents.

use std::collections::HashMap;
use std::slice::from_ref;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{Comment, Commented, Role};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::jank_group::{GroupPath, group_id, group_of, title_of};
use crate::app::App;
use crate::http::api::ids::{IdPath, id_of};
use crate::http::api::object::Object;
use crate::http::api::openapi::{Invalid, JsonBody, Missing, Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Member};

/// A comment on a group of janks or on an incident.
#[derive(Serialize, ToSchema)]
#[schema(as = Comment)]
pub(crate) struct CommentBody {
    id: Uuid,
    /// `user:…`, `token:…` or `cli:…`.
    author: String,
    /// The name of the author. `null` if it is not known.
    author_name: Option<String>,
    /// Plain text.
    text: String,
    created_at: UnixTime,
}

impl CommentBody {
    fn new(comment: Comment, names: &HashMap<String, String>) -> Self {
        Self {
            id: comment.id,
            author_name: author_id(&comment).and_then(|id| names.get(id)).cloned(),
            author: comment.author,
            text: comment.text,
            created_at: comment.created_at,
        }
    }
}

fn author_id(comment: &Comment) -> Option<&str> {
    comment.author.split_once(':').map(|(_, id)| id)
}

async fn names_of_authors(
    app: &App,
    comments: &[Comment],
) -> Result<HashMap<String, String>, Problem> {
    let ids = comments.iter().filter_map(author_id);
    Ok(app.control.names_of(ids).await?)
}

/// Returns the comments on a subject, oldest first, at most 200.
pub(crate) async fn comments_on(
    app: &App,
    project: &str,
    on: Commented,
) -> Result<Vec<CommentBody>, Problem> {
    let comments = app.control.comments(project, on).await?;
    let names = names_of_authors(app, &comments).await?;
    let comments = comments.into_iter();
    Ok(comments.map(|one| CommentBody::new(one, &names)).collect())
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
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
pub(super) async fn comment_on_group(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: GroupPath,
    Object(new, ..): Object<NewComment>,
) -> Result<(StatusCode, Json<CommentBody>), Problem> {
    let group = group_of(path)?;
    let title = title_of(&app, &member, group).await?;
    add(&app, &member, (Commented::JankGroup(group), &title), &new).await
}

/// Comments on an incident. An incident has at most 200 comments.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/incidents/{incident}/comments", tag = "incidents",
    request_body = NewComment,
    responses((status = 201, body = CommentBody), Refused<(Editor, Missing, JsonBody, Invalid)>),
)]
pub(super) async fn comment_on_incident(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
    Object(new, ..): Object<NewComment>,
) -> Result<(StatusCode, Json<CommentBody>), Problem> {
    let incident = app.control.incident(&member.project, id_of(path)?).await?;
    let on = Commented::Incident(incident.id);
    add(&app, &member, (on, &incident.title), &new).await
}

async fn add(
    app: &App,
    member: &Member,
    subject: (Commented, &str),
    new: &NewComment,
) -> Result<(StatusCode, Json<CommentBody>), Problem> {
    let now = app.clock.now();
    let comment = (app.control)
        .add_comment(&member.project, subject, &new.text, &member.actor, now)
        .await?;
    let names = names_of_authors(app, from_ref(&comment)).await?;
    Ok((StatusCode::CREATED, Json(CommentBody::new(comment, &names))))
}

/// Deletes a comment on a group of janks. Admins of the project may delete any comment, others only their own.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/janks/groups/{group}/comments/{comment}", tag = "janks",
    responses((status = 204), Refused<(Editor, Missing)>),
)]
pub(super) async fn delete_group_comment(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: Result<Path<(String, String, Uuid)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((_, group, comment)) = path.map_err(|_| Problem::not_found())?;
    let group = group_id(&group).ok_or_else(Problem::not_found)?;
    delete(&app, &member, Commented::JankGroup(group), comment).await
}

/// Deletes a comment on an incident. Admins of the project may delete any comment, others only their own.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/incidents/{incident}/comments/{comment}", tag = "incidents",
    responses((status = 204), Refused<(Editor, Missing)>),
)]
pub(super) async fn delete_incident_comment(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: Result<Path<(String, Uuid, Uuid)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((_, incident, comment)) = path.map_err(|_| Problem::not_found())?;
    delete(&app, &member, Commented::Incident(incident), comment).await
}

async fn delete(
    app: &App,
    member: &Member,
    on: Commented,
    comment: Uuid,
) -> Result<StatusCode, Problem> {
    let (control, now) = (&app.control, app.clock.now());
    let Member {
        project,
        actor,
        role,
    } = member;
    if *role == Role::Admin {
        let deleted = control.delete_any_comment(project, (on, comment), actor, now);
        deleted.await?;
    } else {
        let deleted = control.delete_comment(project, (on, comment), actor, now);
        deleted.await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
