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
use crate::app::App;
use crate::control::configurations::{self, Draft, SaveError, Saved};
use crate::remote_config::Fault;
use crate::store::control::{ControlError, Document, DocumentKind};

const KIND: DocumentKind = DocumentKind::Configuration;
const PAGE: u32 = 50;

/// A revision, with or without its text.
#[derive(Serialize)]
pub(super) struct Revision {
    /// 0: nothing was ever saved, the defaults hold.
    revision: i64,
    note: String,
    author: String,
    /// Microseconds since the epoch.
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Fault>,
}

impl Revision {
    fn listed(document: Document) -> Self {
        Self {
            revision: document.revision,
            note: document.note,
            author: document.author,
            created_at: document.created_at,
            configuration: None,
            warnings: Vec::new(),
        }
    }

    fn whole(document: Document) -> Self {
        let configuration = serde_json::from_str(&document.text).ok();
        Self {
            configuration,
            ..Self::listed(document)
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
            revision: 0,
            note: String::new(),
            author: String::new(),
            created_at: 0,
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

#[derive(Deserialize)]
pub(super) struct PageOfRevisions {
    /// Those before this revision: the last one of the page before.
    before: Option<i64>,
}

/// A page of the history, the latest first.
#[derive(Serialize)]
pub(super) struct Revisions {
    revisions: Vec<Revision>,
    /// For the next page; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<i64>,
}

pub(super) async fn history(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    query: Result<Query<PageOfRevisions>, QueryRejection>,
) -> Result<Json<Revisions>, Problem> {
    let Query(page) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let documents = app
        .control
        .documents(KIND, &member.project, page.before, PAGE)
        .await?;
    let full = documents.len() == PAGE as usize;
    let before = documents
        .last()
        .filter(|_| full)
        .map(|document| document.revision);
    let revisions = documents.into_iter().map(Revision::listed).collect();
    Ok(Json(Revisions { revisions, before }))
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

/// Which revision is to hold again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RollBack {
    revision: i64,
    expected_revision: i64,
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
