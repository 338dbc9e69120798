//! What each project forwards to another collector.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;
use unjank_foundation::clock::UnixTime;
use unjank_foundation::forward_document::ForwardDocument;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::Entry;
use super::error::ControlError;
use super::json_text::JsonText;

const GET: &str = "SELECT id, forward FROM projects WHERE id = $1";
const LIST: &str = "SELECT id, forward FROM projects WHERE forward <> '{}' ORDER BY id";
const SET: &str = "UPDATE projects SET forward = $2 WHERE id = $1";

/// A setting as it is saved.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedForward {
    #[serde(flatten)]
    pub document: ForwardDocument,
    pub header_names: Vec<String>,
    /// The sealed headers. Empty if there are none.
    pub sealed: String,
}

impl fmt::Debug for SavedForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document.fmt(f)
    }
}

impl SavedForward {
    /// Returns the headers, decrypted by `open`.
    pub fn headers<E: fmt::Display>(
        &self,
        open: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<BTreeMap<String, String>, String> {
        if self.sealed.is_empty() {
            return Ok(BTreeMap::new());
        }
        let text = open(&self.sealed).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|_| "the headers are damaged".to_owned())
    }
}

fn read(row: &Row) -> Result<(String, JsonText), ControlError> {
    Ok((row.get("id")?, JsonText::from_column(row, "forward")?))
}

impl Control {
    /// Returns the setting of a project.
    pub async fn forward(&self, project: &str) -> Result<SavedForward, ControlError> {
        let (_, saved) = read(&self.row(GET, values![project]).await?)?;
        saved.read()
    }

    /// Returns all projects with a saved setting, and the settings.
    pub async fn all_forwards(&self) -> Result<Vec<(String, JsonText)>, ControlError> {
        self.records(LIST, values![], read).await
    }

    pub async fn set_forward(
        &self,
        project: &str,
        saved: &SavedForward,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let entry = Entry {
            action: Action::ForwardSet,
            project: Some(project),
            subject: project,
            detail: json!({"forward": saved.document, "header_names": saved.header_names}),
        };
        let saved = JsonText::new(saved);
        self.change_once((SET, values![project, saved]), entry, actor, at)
            .await
    }
}
