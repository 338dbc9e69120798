//! `DELETE /api/v1/projects/{project}` and `…/data`, and `…/erasures`: erasing stored data, and the receipts.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{ControlError, Erasure, ErasureKind, ErasureState, Receipt};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::ids::canonical_id;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::http::api::openapi::{Invalid, Missing, QueryString, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, Operator};

const PAGE: u32 = 100;

/// A request to erase data, and its result.
#[derive(Serialize, ToSchema)]
#[schema(as = Erasure)]
pub(super) struct ErasureBody {
    id: Uuid,
    project: String,
    kind: ErasureKind,
    /// The install id or user id. `null` for a project, and from 30 days after the end of the erasure.
    subject: Option<String>,
    requested_at: UnixTime,
    /// `user:…`, `token:…` or `cli:…`.
    requested_by: String,
    state: ErasureState,
    finished_at: Option<UnixTime>,
    receipt: Receipt,
}

impl From<Erasure> for ErasureBody {
    fn from(erasure: Erasure) -> Self {
        let mut receipt = erasure.receipt;
        for (table, rows) in erasure.work.rows {
            *receipt.rows.entry(table).or_default() += rows;
        }
        Self {
            id: erasure.id,
            project: erasure.project,
            kind: erasure.kind,
            subject: (!erasure.subject.is_empty()).then_some(erasure.subject),
            requested_at: erasure.requested_at,
            requested_by: erasure.requested_by,
            state: erasure.state,
            finished_at: erasure.finished_at,
            receipt,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ErasureList {
    erasures: Vec<ErasureBody>,
}

impl From<Vec<Erasure>> for ErasureList {
    fn from(erasures: Vec<Erasure>) -> Self {
        let erasures = erasures.into_iter().map(ErasureBody::from).collect();
        Self { erasures }
    }
}

/// Exactly one of the two is required.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Subject {
    /// The install whose data is erased: its UUID, or the text that the app has for it.
    #[param(min_length = 1)]
    install_id: Option<String>,
    /// The user id, as the app reported it, whose data is erased. 1 to 1,024 bytes.
    #[param(min_length = 1, max_length = 1024)]
    user_id: Option<String>,
}

/// Erases the stored data of an install or of a user id, as far as it has arrived until now.
///
/// Erases rows, stacks that no other rows have, dead letters, and the shares in roll-ups whose raw rows are still kept. The erasure runs in the
/// background: poll its receipt.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/data", tag = "erasures",
    params(Subject),
    responses((status = 202, body = ErasureBody), Refused<(Admin, QueryString, Invalid)>),
)]
pub(super) async fn erase_data(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    query: Result<Query<Subject>, QueryRejection>,
) -> Result<(StatusCode, Json<ErasureBody>), Problem> {
    let Query(subject) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let (kind, subject) = match (subject.install_id, subject.user_id) {
        (Some(install), None) => (ErasureKind::Install, canonical_id(&install)),
        (None, Some(user)) if user.contains('\0') => {
            return Err(invalid(
                "`user_id` has a NUL, which no stored text has: write U+FFFD (%EF%BF%BD) in its place",
            ));
        }
        (None, Some(user)) => (ErasureKind::User, user),
        _ => {
            return Err(invalid("name either an `install_id` or a `user_id`"));
        }
    };
    let now = app.clock.now();
    let erasure = app
        .control
        .request_erasure((&member.project, kind, &subject), &member.actor, now)
        .await?;
    Ok((StatusCode::ACCEPTED, Json(erasure.into())))
}

fn invalid(why: &str) -> Problem {
    ControlError::Invalid(why.to_owned()).into()
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Confirmation {
    /// The id of the project again, so that no project is erased by mistake.
    #[param(pattern = r"^[a-z0-9][a-z0-9-]{0,62}$")]
    confirm: String,
}

/// Erases a project permanently.
///
/// Erases all data, keys, tokens, configurations, rules, alerts, channels and members, but not the audit log and the receipts. The keys and tokens
/// are revoked at once. The id cannot be used again.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}", tag = "erasures",
    params(Confirmation),
    responses((status = 202, body = ErasureBody), Refused<(Operator, QueryString, Invalid, Missing)>),
)]
pub(super) async fn erase_project(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    path: Result<Path<String>, PathRejection>,
    query: Result<Query<Confirmation>, QueryRejection>,
) -> Result<(StatusCode, Json<ErasureBody>), Problem> {
    let Path(project) = path.map_err(|_| Problem::not_found())?;
    let Query(confirmation) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    if confirmation.confirm != project {
        return Err(invalid("`confirm` must be the id of the project"));
    }
    let now = app.clock.now();
    let erasure = app
        .control
        .request_erasure((&project, ErasureKind::Project, ""), &actor, now)
        .await?;
    Ok((StatusCode::ACCEPTED, Json(erasure.into())))
}

/// Lists the latest 100 erasures of the project, newest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/erasures", tag = "erasures",
    responses((status = 200, body = ErasureList), Refused<(Admin,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
) -> Result<Json<ErasureList>, Problem> {
    let erasures = app.control.erasures(&member.project, PAGE).await?;
    Ok(Json(erasures.into()))
}

/// Returns an erasure: its progress, and what it has erased.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/erasures/{erasure}", tag = "erasures",
    responses((status = 200, body = ErasureBody), Refused<(Admin, Missing)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: Result<Path<(String, Uuid)>, PathRejection>,
) -> Result<Json<ErasureBody>, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let erasure = app.control.erasure(&member.project, id).await?;
    Ok(Json(erasure.into()))
}

/// Lists erasures of whole projects, and of installs and users of erased projects: the latest 1,000, newest first.
#[utoipa::path(
    get, path = "/api/v1/erasures", tag = "erasures",
    responses((status = 200, body = ErasureList), Refused<(Operator,)>),
)]
pub(super) async fn list_of_projects(
    State(app): State<Arc<App>>,
    Operator(_): Operator,
) -> Result<Json<ErasureList>, Problem> {
    let erasures = app.control.project_erasures().await?;
    Ok(Json(erasures.into()))
}
