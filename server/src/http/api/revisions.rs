//! The common parts of the histories of a project's documents: configurations and rules.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use serde::{Deserialize, Serialize};
use unjank_database::{Document, DocumentKind};
use unjank_foundation::clock::UnixTime;
use utoipa::{IntoParams, ToSchema};

use super::problem::Problem;
use crate::app::App;

const PAGE: u32 = 50;

/// The author, time and note of a revision.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Signature {
    /// 0 if nothing has been saved yet and the defaults are active.
    revision: i64,
    note: String,
    author: String,
    created_at: UnixTime,
}

impl From<Document> for Signature {
    fn from(document: Document) -> Self {
        Self {
            revision: document.revision,
            note: document.note,
            author: document.author,
            created_at: document.created_at,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageOfRevisions {
    /// Only revisions before this one: the last one of the previous page.
    before: Option<i64>,
}

/// A page of the history, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Revisions {
    revisions: Vec<Signature>,
    /// The cursor of the next page. Missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<i64>,
}

impl Revisions {
    pub(crate) async fn read(
        app: &App,
        kind: DocumentKind,
        project: &str,
        query: Result<Query<PageOfRevisions>, QueryRejection>,
    ) -> Result<Self, Problem> {
        let Query(page) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
        let documents = app
            .control
            .documents(kind, project, page.before, PAGE)
            .await?;
        let full = documents.len() == PAGE as usize;
        let before = documents
            .last()
            .filter(|_| full)
            .map(|document| document.revision);
        let revisions = documents.into_iter().map(Signature::from).collect();
        Ok(Self { revisions, before })
    }
}

/// The project and the revision of a path.
pub(crate) type RevisionPath = Result<Path<(String, i64)>, PathRejection>;

/// Returns the document that a path names.
pub(crate) async fn document(
    app: &App,
    kind: DocumentKind,
    project: &str,
    path: RevisionPath,
) -> Result<Document, Problem> {
    let Path((_, revision)) = path.map_err(|_| Problem::not_found())?;
    Ok(app.control.document(kind, project, revision).await?)
}

/// The revision to restore.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RollBack {
    pub(crate) revision: i64,
    /// The current revision, as returned by `GET`.
    pub(crate) expected_revision: i64,
}
