//! Saved views: pages with their filters under a name, shared by all people of a project.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::error::ControlError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedView {
    pub id: Uuid,
    pub name: String,
    /// Path and query of a page of the web interface.
    pub address: String,
    pub created_by: String,
    pub created_at: UnixTime,
    pub updated_at: UnixTime,
}

impl SavedView {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            name: row.get("name")?,
            address: row.get("address")?,
            created_by: row.get("created_by")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }

    fn entry<'a>(&self, action: Action, project: &'a str, subject: &'a str) -> Entry<'a> {
        Entry {
            action,
            project: Some(project),
            subject,
            detail: json!({"name": self.name, "address": self.address}),
        }
    }
}

/// Changes of a view. `None` keeps a field.
#[derive(Clone, Copy, Debug, Default)]
pub struct SavedViewChange<'a> {
    pub name: Option<&'a str>,
    pub address: Option<&'a str>,
}

const MOST_VIEWS: i64 = 100;
const MAX_NAME_CHARS: usize = 80;
const MAX_ADDRESS_CHARS: usize = 2_000;
/// The first parts of the server's own paths. No page of the web interface begins with one of them.
const NOT_PAGES: [&str; 6] = ["api", "v1", "ofrep", "openapi.json", "healthz", "readyz"];

macro_rules! columns {
    () => {
        "id, name, address, created_by, created_at, updated_at"
    };
}

const INSERT: &str = concat!(
    "
    INSERT INTO saved_views (id, project, name, address, created_by, created_at, updated_at)
    SELECT $1, $2, $3, $4, $5, $6, $6
    WHERE (SELECT count(*) FROM saved_views WHERE project = $2) < $7
    RETURNING ",
    columns!()
);
const UPDATE: &str = concat!(
    "
    UPDATE saved_views
    SET name = COALESCE($3, name), address = COALESCE($4, address), updated_at = $5
    WHERE project = $1
      AND id = $2
    RETURNING ",
    columns!()
);
const DELETE: &str = concat!(
    "DELETE FROM saved_views WHERE project = $1 AND id = $2 RETURNING ",
    columns!()
);
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM saved_views WHERE project = $1 ORDER BY name"
);

impl Control {
    pub async fn create_saved_view(
        &self,
        (project, name, address): (&str, &str, &str),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<SavedView, ControlError> {
        check_name(name)?;
        check_address(address)?;
        let id = new_id(at).to_string();
        let author = actor.to_string();
        let values = values![id.as_str(), project, name, address, author, at, MOST_VIEWS];
        let mut change = Change::begin(self, actor, at).await?;
        let inserted = change.row(INSERT, values).await?;
        let full = || {
            checks::invalid(&format!(
                "a project can have at most {MOST_VIEWS} saved views; delete one first"
            ))
        };
        let view = SavedView::read(&inserted.ok_or_else(full)?)?;
        change
            .commit(view.entry(Action::SavedViewCreated, project, &id))
            .await?;
        Ok(view)
    }

    pub async fn update_saved_view(
        &self,
        (project, id): (&str, Uuid),
        new: SavedViewChange<'_>,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<SavedView, ControlError> {
        new.name.map_or(Ok(()), check_name)?;
        new.address.map_or(Ok(()), check_address)?;
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![project, id, new.name, new.address, at];
        let updated = change.row(UPDATE, values).await?;
        let view = SavedView::read(&updated.ok_or(ControlError::NotFound)?)?;
        change
            .commit(view.entry(Action::SavedViewUpdated, project, &id.to_string()))
            .await?;
        Ok(view)
    }

    pub async fn delete_saved_view(
        &self,
        (project, id): (&str, Uuid),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let deleted = change.row(DELETE, values![project, id]).await?;
        let view = SavedView::read(&deleted.ok_or(ControlError::NotFound)?)?;
        change
            .commit(view.entry(Action::SavedViewDeleted, project, &id.to_string()))
            .await
    }

    /// Returns the views of a project, by name.
    pub async fn saved_views(&self, project: &str) -> Result<Vec<SavedView>, ControlError> {
        self.records(LIST, values![project], SavedView::read).await
    }
}

fn check_name(name: &str) -> Result<(), ControlError> {
    checks::name(name)?;
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(checks::invalid(&format!(
            "the name of a view can have at most {MAX_NAME_CHARS} characters"
        )));
    }
    Ok(())
}

/// Accepts paths of the web interface only, because browsers of other people open the address.
fn check_address(address: &str) -> Result<(), ControlError> {
    if address.chars().count() > MAX_ADDRESS_CHARS {
        return Err(checks::invalid(&format!(
            "the address of a view can have at most {MAX_ADDRESS_CHARS} characters; remove filters"
        )));
    }
    let (path, _) = address.split_once('?').unwrap_or((address, ""));
    let of_page = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
    let parts = || path.split('/').skip(1);
    let is_path = path.starts_with('/')
        && path.bytes().all(|byte| byte == b'/' || of_page(byte))
        && parts().all(|part| part != "." && part != "..")
        && !parts().next().is_some_and(|part| NOT_PAGES.contains(&part));
    let is_address = address
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"\\#<>\"`".contains(&byte))
        && !address.contains("//");
    if is_path && is_address {
        Ok(())
    } else {
        Err(checks::invalid(
            "the address of a view must be the path and query of a page of this interface, such as `/jank?range=7d`",
        ))
    }
}
