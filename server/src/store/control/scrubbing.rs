//! The scrubbing document of each project. Callers validate it before saving.

use async_trait::async_trait;
use serde_json::json;

use super::audit::{Action, Actor};
use super::backend::{Backend, Row, values};
use super::change::{Change, Entry, records, row};
use super::error::ControlError;

const GET: &str = "SELECT id, scrubbing FROM projects WHERE id = $1";
const LIST: &str = "SELECT id, scrubbing FROM projects WHERE scrubbing <> '{}' ORDER BY id";
const SET: &str = "UPDATE projects SET scrubbing = $2 WHERE id = $1";

fn read(row: &Row) -> Result<(String, String), ControlError> {
    Ok((row.get("id")?, row.get("scrubbing")?))
}

#[async_trait]
pub trait ScrubbingSettings: Backend {
    /// Returns the document of a project, as JSON.
    async fn scrubbing(&self, project: &str) -> Result<String, ControlError> {
        Ok(read(&row(self, GET, values![project]).await?)?.1)
    }

    /// Returns all projects with a saved document, and the documents.
    async fn all_scrubbing(&self) -> Result<Vec<(String, String)>, ControlError> {
        records(self, LIST, values![], read).await
    }

    async fn set_scrubbing(
        &self,
        (project, document): (&str, &str),
        actor: &Actor,
        at: i64,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change
            .execute_found(SET, values![project, document])
            .await?;
        let detail: serde_json::Value = serde_json::from_str(document).unwrap_or_default();
        change
            .commit(Entry {
                action: Action::ScrubbingSet,
                project: Some(project),
                subject: project,
                detail: json!({"scrubbing": detail}),
            })
            .await
    }
}
