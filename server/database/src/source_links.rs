//! How the frames of each project link to source lines.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use unjank_foundation::source_links::{SourceLinks, SourceLinksDocument};

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::Entry;
use super::error::ControlError;
use super::json_text::JsonText;

const GET: &str = "SELECT id, source_links FROM projects WHERE id = $1";
const LIST: &str = "SELECT id, source_links FROM projects WHERE source_links <> '{}' ORDER BY id";
const SET: &str = "UPDATE projects SET source_links = $2 WHERE id = $1";

fn read(row: &Row) -> Result<(String, JsonText), ControlError> {
    Ok((row.get("id")?, JsonText::from_column(row, "source_links")?))
}

impl Control {
    /// Returns the document of a project.
    pub async fn source_links(&self, project: &str) -> Result<SourceLinksDocument, ControlError> {
        let (_, document) = read(&self.row(GET, values![project]).await?)?;
        document.read()
    }

    /// Returns all projects with a saved document, and the documents.
    pub async fn all_source_links(&self) -> Result<Vec<(String, JsonText)>, ControlError> {
        self.records(LIST, values![], read).await
    }

    pub async fn set_source_links(
        &self,
        project: &str,
        links: &SourceLinks,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let document = JsonText::new(links.document());
        let entry = Entry {
            action: Action::SourceLinksSet,
            project: Some(project),
            subject: project,
            detail: json!({"source_links": links.document()}),
        };
        self.change_once((SET, values![project, document]), entry, actor, at)
            .await
    }
}
