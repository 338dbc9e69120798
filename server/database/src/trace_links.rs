//! How the traces of each project link to another system.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use unjank_foundation::trace_links::{TraceLinks, TraceLinksDocument};

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::Entry;
use super::error::ControlError;
use super::json_text::JsonText;

const GET: &str = "SELECT id, trace_links FROM projects WHERE id = $1";
const LIST: &str = "SELECT id, trace_links FROM projects WHERE trace_links <> '{}' ORDER BY id";
const SET: &str = "UPDATE projects SET trace_links = $2 WHERE id = $1";

fn read(row: &Row) -> Result<(String, JsonText), ControlError> {
    Ok((row.get("id")?, JsonText::from_column(row, "trace_links")?))
}

impl Control {
    /// Returns the document of a project.
    pub async fn trace_links(&self, project: &str) -> Result<TraceLinksDocument, ControlError> {
        let (_, document) = read(&self.row(GET, values![project]).await?)?;
        document.read()
    }

    /// Returns all projects with a saved document, and the documents.
    pub async fn all_trace_links(&self) -> Result<Vec<(String, JsonText)>, ControlError> {
        self.records(LIST, values![], read).await
    }

    pub async fn set_trace_links(
        &self,
        project: &str,
        links: &TraceLinks,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let document = JsonText::new(links.document());
        let entry = Entry {
            action: Action::TraceLinksSet,
            project: Some(project),
            subject: project,
            detail: json!({"trace_links": links.document()}),
        };
        self.change_once((SET, values![project, document]), entry, actor, at)
            .await
    }
}
