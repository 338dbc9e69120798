//! `/api/v1/projects/{project}/config`: reading, checking, saving and rolling back a project's remote configuration.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_database::{ControlError, Document, DocumentChange, DocumentKind};
use unjank_remote_config::{Configuration, Fault};
use utoipa::ToSchema;

use crate::access::configurations::{self, Draft, SaveError, Saved};
use crate::app::App;
use crate::http::api::object::{AnyJson, DOCUMENT, Object};
use crate::http::api::openapi::{
    Conflict, Faulty, Invalid, JsonBody, Missing, Overloaded, QueryString, Refused,
};
use crate::http::api::problem::Problem;
use crate::http::api::revisions::{
    self, PageOfRevisions, RevisionPath, Revisions, RollBack, Signature,
};
use crate::http::api::roles::{Editor, Viewer};

const KIND: DocumentKind = DocumentKind::Configuration;

/// A revision with its text.
#[derive(Serialize, ToSchema)]
pub(crate) struct Revision {
    #[serde(flatten)]
    signature: Signature,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Configuration>)]
    configuration: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Fault>,
}

impl Revision {
    fn whole(document: Document) -> Self {
        let configuration = serde_json::from_str(&document.text).ok();
        Self {
            signature: document.into(),
            configuration,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn saved(saved: Saved) -> Self {
        Self {
            warnings: saved.warnings,
            ..Self::whole(saved.document)
        }
    }
}

/// Returns the current configuration with its revision.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/config", tag = "configurations",
    responses((status = 200, body = Revision), Refused<(Viewer,)>),
)]
pub(super) async fn latest(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<Revision>, Problem> {
    match app.control.latest_document(KIND, &member.project).await {
        Ok(document) => Ok(Json(Revision::whole(document))),
        Err(ControlError::NotFound) => Ok(Json(Revision {
            signature: Signature::default(),
            configuration: Some(serde_json::json!({"base": {}, "overrides": []})),
            warnings: Vec::new(),
        })),
        Err(error) => Err(error.into()),
    }
}

/// The configuration to save.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRevision {
    /// The revision on which the configuration is based, as returned by `GET`.
    expected_revision: i64,
    #[schema(value_type = Configuration)]
    configuration: Value,
    /// The reason for the change, shown in the history.
    #[serde(default)]
    #[schema(max_length = 10_000)]
    note: String,
}

/// Saves a configuration as the next revision. Fails if it is invalid, or if another revision was saved in the meantime.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/config", tag = "configurations",
    request_body = NewRevision,
    responses((status = 201, body = Revision), Refused<(Editor, JsonBody, Faulty, Conflict, Invalid)>),
)]
pub(super) async fn save(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(new, ..): Object<NewRevision, DOCUMENT>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let draft = Draft {
        configuration: new.configuration,
        note: new.note,
        expected_revision: new.expected_revision,
        change: DocumentChange::Saved,
        action: None,
    };
    let now = app.clock.now();
    let saved =
        configurations::save(&app.control, &member.project, draft, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}

/// The result of a check.
#[derive(Serialize, ToSchema)]
pub(crate) struct Verdict {
    valid: bool,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

/// Checks a configuration in the same way as saving it, and saves nothing.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/config/check", tag = "configurations",
    request_body(content = Value, description = "Any JSON. The answer lists its faults."),
    responses((status = 200, body = Verdict), Refused<(Viewer, JsonBody, Overloaded)>),
)]
pub(super) async fn check(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    AnyJson(configuration, ..): AnyJson<DOCUMENT>,
) -> Result<Json<Verdict>, Problem> {
    let (faults, warnings) = match configurations::compile(configuration, 0, &member.actor).await {
        Ok(checked) => (Vec::new(), checked.compiled.warnings(app.clock.now())),
        Err(SaveError::Faults(faults)) => (faults, Vec::new()),
        Err(error) => return Err(error.into()),
    };
    Ok(Json(Verdict {
        valid: faults.is_empty(),
        faults,
        warnings,
    }))
}

/// Returns a page of the revisions, newest first, without their configurations.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/config/revisions", tag = "configurations",
    params(PageOfRevisions),
    responses((status = 200, body = Revisions), Refused<(Viewer, QueryString)>),
)]
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    query: Result<Query<PageOfRevisions>, QueryRejection>,
) -> Result<Json<Revisions>, Problem> {
    Revisions::read(&app, KIND, &member.project, query)
        .await
        .map(Json)
}

/// Returns a revision with its configuration.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/config/revisions/{revision}", tag = "configurations",
    responses((status = 200, body = Revision), Refused<(Viewer, Missing)>),
)]
pub(super) async fn revision(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: RevisionPath,
) -> Result<Json<Revision>, Problem> {
    let document = revisions::document(&app, KIND, &member.project, path).await?;
    Ok(Json(Revision::whole(document)))
}

/// Rolls back to an earlier revision: saves it again as the next one.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/config/rollback", tag = "configurations",
    request_body = RollBack,
    responses((status = 201, body = Revision), Refused<(Editor, Missing, JsonBody, Faulty, Conflict, Invalid)>),
)]
pub(super) async fn roll_back(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(back, ..): Object<RollBack>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let now = app.clock.now();
    let saved = configurations::roll_back(
        &app.control,
        &member.project,
        back.revision,
        back.expected_revision,
        &member.actor,
        now,
    )
    .await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}
