//! `/api/v1/projects/{project}/audit` and `/api/v1/audit`: who changed what, newest first. The log never contains secrets.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_database::{AuditCursor, AuditEntry, AuditFilter};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::http::api::openapi::{QueryString, Refused, action};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, Operator};

const PAGE: u32 = 100;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// Only this kind of change, such as `configuration.saved`.
    #[param(schema_with = action)]
    action: Option<String>,
    /// Only changes by this actor: `user:…`, `token:…`, `cli:…` or `system:…`.
    #[param(pattern = "^(user|token|cli|system):")]
    actor: Option<String>,
    /// Only changes of this object.
    subject: Option<String>,
    /// Only changes from this time on.
    from: Option<UnixTime>,
    /// Only changes before this time.
    to: Option<UnixTime>,
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
    /// The name of the actor. `null` if the actor has none, or is not known any more.
    actor_name: Option<String>,
    action: String,
    /// The changed object: an id, a revision or a name.
    subject: String,
    /// The name of the changed object, as of the change if it was recorded. `null` if it has none, or is not known any more.
    subject_name: Option<String>,
    detail: Value,
}

impl EntryBody {
    fn new(entry: AuditEntry, names: &HashMap<String, String>) -> Self {
        let recorded = entry.detail.get("name").and_then(Value::as_str);
        let subject_name = recorded.or_else(|| names.get(&entry.subject).map(String::as_str));
        Self {
            actor_name: names.get(&entry.actor.name).cloned(),
            subject_name: subject_name.map(str::to_owned),
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
    let actor = page.actor.map(|text| text.parse()).transpose();
    let cursor = page.before_at.zip(page.before_id);
    let filter = AuditFilter {
        project,
        actor: actor.map_err(|_| Problem::bad_query("unknown `actor`"))?,
        subject: page.subject,
        from: page.from,
        to: page.to,
        action: action.map_err(|_| Problem::bad_query("unknown `action`"))?,
        before: cursor.map(|(at, id)| AuditCursor { at, id }),
    };
    let entries = app.control.audit(&filter, PAGE).await?;
    let named = entries
        .iter()
        .flat_map(|one| [one.actor.name.as_str(), one.subject.as_str()]);
    let names = app.control.names_of(named).await?;
    let entries = entries.into_iter();
    let entries = entries.map(|one| EntryBody::new(one, &names)).collect();
    Ok(Json(EntryList { entries }))
}
