//! The scrubbing document of each project. Callers validate it before saving.

use serde_json::json;
use unjank_foundation::clock::UnixTime;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::Entry;
use super::error::ControlError;
use super::json_text::JsonText;

const GET: &str = "SELECT id, scrubbing FROM projects WHERE id = $1";
const LIST: &str = "SELECT id, scrubbing FROM projects WHERE scrubbing <> '{}' ORDER BY id";
const SET: &str = "UPDATE projects SET scrubbing = $2 WHERE id = $1";

fn read(row: &Row) -> Result<(String, JsonText), ControlError> {
    Ok((row.get("id")?, JsonText::from_column(row, "scrubbing")?))
}

impl Control {
    /// Returns the document of a project.
    pub async fn scrubbing(&self, project: &str) -> Result<JsonText, ControlError> {
        Ok(read(&self.row(GET, values![project]).await?)?.1)
    }

    /// Returns all projects with a saved document, and the documents.
    pub async fn all_scrubbing(&self) -> Result<Vec<(String, JsonText)>, ControlError> {
        self.records(LIST, values![], read).await
    }

    pub async fn set_scrubbing(
        &self,
        project: &str,
        document: &JsonText,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let detail: serde_json::Value = document.read()?;
        let entry = Entry {
            action: Action::ScrubbingSet,
            project: Some(project),
            subject: project,
            detail: json!({"scrubbing": detail}),
        };
        self.change_once((SET, values![project, document.clone()]), entry, actor, at)
            .await
    }
}
