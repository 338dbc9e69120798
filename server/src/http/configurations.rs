//! `/api/v1/projects/{project}/config`: looking at, checking, saving and taking back a project's remote configuration.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::member::{Editor, Viewer};
use super::problem::Problem;
use super::revisions::{PageOfRevisions, Revisions, RollBack, Signature};
use crate::app::App;
use crate::control::configurations::{self, Draft, SaveError, Saved};
use crate::remote_config::Fault;
use crate::store::control::{ControlError, Document, DocumentKind};

const KIND: DocumentKind = DocumentKind::Configuration;

/// A revision with its text.
#[derive(Serialize)]
pub(super) struct Revision {
    #[serde(flatten)]
    signature: Signature,
    #[serde(skip_serializing_if = "Option::is_none")]
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

    fn saved(saved: Saved) -> Self {
        Self {
            warnings: saved.warnings,
            ..Self::whole(saved.document)
        }
    }
}

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

/// What is to be saved.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRevision {
    /// The revision it was made from, as `GET` answered it.
    expected_revision: i64,
    configuration: Value,
    /// Why, for those who read the history.
    #[serde(default)]
    note: String,
}

pub(super) async fn save(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    body: Result<Json<NewRevision>, JsonRejection>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let Json(new) = body?;
    let draft = Draft {
        configuration: new.configuration,
        note: new.note,
        expected_revision: new.expected_revision,
    };
    let now = app.clock.now();
    let saved =
        configurations::save(&*app.control, &member.project, draft, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}

/// What saving would say.
#[derive(Serialize)]
pub(super) struct Verdict {
    valid: bool,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

pub(super) async fn check(
    State(app): State<Arc<App>>,
    Viewer(_): Viewer,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Json<Verdict>, Problem> {
    let Json(configuration) = body?;
    let (faults, warnings) = match configurations::compile(configuration, 0) {
        Ok(checked) => (Vec::new(), checked.compiled.warnings(app.clock.now())),
        Err(SaveError::Faults(faults)) => (faults, Vec::new()),
        Err(SaveError::Control(error)) => return Err(error.into()),
    };
    Ok(Json(Verdict {
        valid: faults.is_empty(),
        faults,
        warnings,
    }))
}

pub(super) async fn history(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    query: Result<Query<PageOfRevisions>, QueryRejection>,
) -> Result<Json<Revisions>, Problem> {
    Revisions::read(&app, KIND, &member.project, query)
        .await
        .map(Json)
}

pub(super) async fn revision(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: Result<Path<(String, i64)>, axum::extract::rejection::PathRejection>,
) -> Result<Json<Revision>, Problem> {
    let Path((_, revision)) = path.map_err(|_| Problem::not_found())?;
    let document = app
        .control
        .document(KIND, &member.project, revision)
        .await?;
    Ok(Json(Revision::whole(document)))
}

pub(super) async fn roll_back(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    body: Result<Json<RollBack>, JsonRejection>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let Json(back) = body?;
    let now = app.clock.now();
    let saved = configurations::roll_back(
        &*app.control,
        (&member.project, back.revision),
        back.expected_revision,
        &member.actor,
        now,
    )
    .await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}

/// Why everything is switched off.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kill {
    #[serde(default)]
    note: String,
}

pub(super) async fn kill(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    body: Result<Json<Kill>, JsonRejection>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let Json(Kill { note }) = body?;
    let now = app.clock.now();
    let saved =
        configurations::kill(&*app.control, &member.project, &note, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}
