//! `/api/v1/projects/{project}/audit` and `/api/v1/audit`: who changed what, newest first. The log never contains secrets.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::openapi::{QueryString, Refused, action};
use super::problem::Problem;
use super::roles::{Admin, Operator};
use crate::app::App;
use crate::clock::UnixTime;
use crate::store::control::{AuditCursor, AuditEntry, AuditFilter};

const PAGE: u32 = 100;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// Only this kind of change, such as `configuration.saved`.
    #[param(schema_with = action)]
    action: Option<String>,
    /// The time of the last entry of the previous page …
    before_at: Option<UnixTime>,
    /// … and its id.
    before_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(super) struct EntryBody {
    id: Uuid,
    /// `null`: a change of the installation as a whole.
    project: Option<String>,
    at: UnixTime,
    /// `user:…`, `token:…`, `cli:…` or `system:…`.
    actor: String,
    action: String,
    /// The changed object: an id, a revision or a name.
    subject: String,
    detail: serde_json::Value,
}

impl From<AuditEntry> for EntryBody {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            project: entry.project,
            at: entry.at,
            actor: entry.actor.to_string(),
            action: entry.action,
            subject: entry.subject,
            detail: entry.detail,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntryList)]
pub(super) struct EntryList {
    entries: Vec<EntryBody>,
}

/// Returns a page of the changes in the project, newest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/audit", tag = "audit",
    params(Page),
    responses((status = 200, body = EntryList), Refused<(Admin, QueryString)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    query: Result<Query<Page>, QueryRejection>,
) -> Result<Json<EntryList>, Problem> {
    listed(&app, Some(member.project), query).await
}

/// Returns a page of the changes in the whole installation, inside and outside of projects, newest first.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "audit",
    params(Page),
    responses((status = 200, body = EntryList), Refused<(Operator, QueryString)>),
)]
pub(super) async fn list_of_all(
    State(app): State<Arc<App>>,
    Operator(_): Operator,
    query: Result<Query<Page>, QueryRejection>,
) -> Result<Json<EntryList>, Problem> {
    listed(&app, None, query).await
}

async fn listed(
    app: &App,
    project: Option<String>,
    query: Result<Query<Page>, QueryRejection>,
) -> Result<Json<EntryList>, Problem> {
    let Query(page) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let action = page.action.map(|name| name.parse()).transpose();
    let cursor = page.before_at.zip(page.before_id);
    let filter = AuditFilter {
        project,
        action: action.map_err(|_| Problem::bad_query("unknown `action`"))?,
        before: cursor.map(|(at, id)| AuditCursor { at, id }),
    };
    let entries = app.control.audit(&filter, PAGE).await?;
    let entries = entries.into_iter().map(EntryBody::from).collect();
    Ok(Json(EntryList { entries }))
}
