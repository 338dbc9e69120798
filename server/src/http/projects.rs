//! `/api/v1/projects`: what keys, configurations and events belong to.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::member::{Admin, Operator};
use super::object::{Object, no_list};
use super::openapi::{Exists, Invalid, JsonBody, Refused};
use super::problem::Problem;
use crate::app::App;
use crate::store::control::{Project, ProjectSettings, Quotas};

/// The most that a project or a key may send; nothing is no limit.
#[derive(Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Quotas)]
pub(super) struct QuotasBody {
    #[serde(default)]
    #[schema(maximum = 9_223_372_036_854_775_807u64)]
    events_per_second: Option<u64>,
    #[serde(default)]
    #[schema(maximum = 9_223_372_036_854_775_807u64)]
    bytes_per_day: Option<u64>,
}

impl From<QuotasBody> for Quotas {
    fn from(body: QuotasBody) -> Self {
        Self {
            events_per_second: body.events_per_second,
            bytes_per_day: body.bytes_per_day,
        }
    }
}

impl From<Quotas> for QuotasBody {
    fn from(quotas: Quotas) -> Self {
        Self {
            events_per_second: quotas.events_per_second,
            bytes_per_day: quotas.bytes_per_day,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Project)]
pub(super) struct ProjectBody {
    id: String,
    name: String,
    quotas: QuotasBody,
    /// Microseconds since the epoch.
    created_at: i64,
}

impl From<Project> for ProjectBody {
    fn from(project: Project) -> Self {
        Self {
            id: project.id,
            name: project.name,
            quotas: project.quotas.into(),
            created_at: project.created_at,
        }
    }
}

/// All projects.
#[derive(Serialize, ToSchema)]
pub(super) struct ProjectList {
    projects: Vec<ProjectBody>,
}

/// All projects.
#[utoipa::path(
    get, path = "/api/v1/projects", tag = "projects",
    responses((status = 200, body = ProjectList), Refused<(Operator,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Operator(_): Operator,
) -> Result<Json<ProjectList>, Problem> {
    let projects = app.control.projects().await?;
    let projects = projects.into_iter().map(ProjectBody::from).collect();
    Ok(Json(ProjectList { projects }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewProject {
    /// 1 to 63 lower-case letters, digits and dashes; it never changes.
    #[schema(pattern = r"^[a-z0-9][a-z0-9-]{0,62}$")]
    id: String,
    /// 1 to 200 characters; left out, the id.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: Option<String>,
    #[serde(default, deserialize_with = "no_list")]
    quotas: QuotasBody,
}

/// Makes a project.
#[utoipa::path(
    post, path = "/api/v1/projects", tag = "projects",
    request_body = NewProject,
    responses((status = 201, body = ProjectBody), Refused<(Operator, JsonBody, Invalid, Exists)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    Object(new): Object<NewProject>,
) -> Result<(StatusCode, Json<ProjectBody>), Problem> {
    let settings = ProjectSettings {
        name: new.name.unwrap_or_else(|| new.id.clone()),
        quotas: new.quotas.into(),
    };
    let now = app.clock.now();
    let project = app
        .control
        .create_project(&new.id, settings, &actor, now)
        .await?;
    Ok((StatusCode::CREATED, Json(project.into())))
}

/// What is missing stays as it is; quotas are replaced as a whole.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProjectPatch {
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: Option<String>,
    #[serde(default, deserialize_with = "no_list")]
    quotas: Option<QuotasBody>,
}

/// Changes a project's name or quotas. What is missing stays as it is.
#[utoipa::path(
    patch, path = "/api/v1/projects/{project}", tag = "projects",
    request_body = ProjectPatch,
    responses((status = 200, body = ProjectBody), Refused<(Admin, JsonBody, Invalid)>),
)]
pub(super) async fn update(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    Object(patch): Object<ProjectPatch>,
) -> Result<Json<ProjectBody>, Problem> {
    let known = app.control.project(&member.project).await?;
    let settings = ProjectSettings {
        name: patch.name.unwrap_or(known.name),
        quotas: patch.quotas.map_or(known.quotas, Quotas::from),
    };
    let now = app.clock.now();
    let project = app
        .control
        .update_project(&member.project, settings, &member.actor, now)
        .await?;
    Ok(Json(project.into()))
}
