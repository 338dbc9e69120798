//! The removal of symbol files. The content of a file is in the symbol store, from which its caller deletes it.

use std::collections::BTreeSet;

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Statements, Values, values};
use super::change::{Change, Entry};
use super::error::ControlError;
use super::symbol_files::NEXT_REVISION;

// The file was neither uploaded nor used nor found to be needed since `$1`, and neither was a file that needs it.
macro_rules! is_unused {
    () => {
        "uploaded_at < $1 AND COALESCE(last_used_at, 0) < $1 AND COALESCE(needed_at, 0) < $1
         AND NOT EXISTS (
            SELECT 1
            FROM symbol_builds b
            JOIN symbol_builds o ON o.project = b.project AND o.needs = b.symbol_id AND o.file <> b.file
            JOIN symbol_files f ON f.id = o.file
            WHERE b.file = symbol_files.id AND (f.uploaded_at >= $1 OR f.last_used_at >= $1 OR f.needed_at >= $1))"
    };
}

/// For each build of this file, the best of the other files gets the new revision, so that stored stacks are repaired with it.
const SUCCEED: &str = "
    UPDATE symbol_files SET revision = $3 WHERE id IN (
        SELECT id FROM (
            SELECT f.id, ROW_NUMBER() OVER (PARTITION BY b.symbol_id ORDER BY o.has_lines DESC, f.revision DESC) AS place
            FROM symbol_builds b
            JOIN symbol_builds o ON o.project = b.project AND o.symbol_id = b.symbol_id AND o.file <> b.file
            JOIN symbol_files f ON f.id = o.file
            WHERE b.project = $1 AND b.file = $2 AND o.has_functions) AS others
        WHERE place = 1)";
/// Removes a file and, by the schema, its builds.
const REMOVE: &str = "
    DELETE FROM symbol_files WHERE project = $1 AND id = $2 RETURNING content, name";
const REMOVE_UNUSED: &str = concat!(
    "DELETE FROM symbol_files WHERE project = $2 AND id = $3 AND ",
    is_unused!(),
    " RETURNING content, name"
);
const CONTENT_IN_USE: &str = "SELECT id FROM symbol_files WHERE project = $1 AND content = $2";
const CONTENTS: &str = "SELECT DISTINCT content FROM symbol_files WHERE project = $1";
/// Waits for those who add or remove files of the project, and lets no other begin before the end of the transaction.
const LOCK_FILES: &str = "
    UPDATE projects SET symbols_revision = symbols_revision WHERE id = $1";
const UNUSED: &str = concat!(
    "SELECT id, project FROM symbol_files WHERE ",
    is_unused!(),
    " ORDER BY id LIMIT $2"
);

/// A content that no file of a project has. No other server adds such a file until this is dropped.
#[must_use]
pub struct UnusedContent {
    _lock: Option<Box<dyn Statements>>,
}

impl Control {
    /// Removes a file. Returns its content, unless another file of the project has the same. The project gets a new revision, so that the
    /// file is no longer used.
    pub async fn remove_symbol_file(
        &self,
        project: &str,
        id: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Option<String>, ControlError> {
        let change = Change::begin(self, actor, at).await?;
        remove(change, (project, id), (REMOVE, values![project, id])).await
    }

    /// Like [`Self::remove_symbol_file`]. [`ControlError::NotFound`]: there is no such file, or it was uploaded or used since `before`.
    pub async fn remove_unused_symbol_file(
        &self,
        project: &str,
        (id, before): (Uuid, UnixTime),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Option<String>, ControlError> {
        let change = Change::begin(self, actor, at).await?;
        let delete = (REMOVE_UNUSED, values![before, project, id]);
        remove(change, (project, id), delete).await
    }

    /// Keeps other servers from adding a file with a content, so that the caller can delete the content. `None`: a file of the project has
    /// it. PostgreSQL ends this after 15 s.
    pub async fn hold_unused_content(
        &self,
        project: &str,
        content: &str,
    ) -> Result<Option<UnusedContent>, ControlError> {
        let mut statements = self.begin().await?;
        statements.execute(LOCK_FILES, values![project]).await?;
        let files = statements.rows(CONTENT_IN_USE, values![project, content]);
        let is_unused = files.await?.is_empty();
        // With SQLite there is no other server, and all changes would have to wait.
        let lock = self.is_shared().then_some(statements);
        Ok(is_unused.then_some(UnusedContent { _lock: lock }))
    }

    /// Returns the contents of all files of a project.
    pub async fn contents_of_symbol_files(
        &self,
        project: &str,
    ) -> Result<BTreeSet<String>, ControlError> {
        let contents: Vec<String> = self
            .records(CONTENTS, values![project], |row| row.get("content"))
            .await?;
        Ok(contents.into_iter().collect())
    }

    /// Returns the files, with their projects, that were uploaded and last used before a time.
    pub async fn unused_symbol_files(
        &self,
        before: UnixTime,
        most: u32,
    ) -> Result<Vec<(Uuid, String)>, ControlError> {
        let values = values![before, i64::from(most)];
        self.records(UNUSED, values, |row| {
            Ok((row.id("id")?, row.get("project")?))
        })
        .await
    }
}

/// Removes a file with a statement.
async fn remove(
    mut change: Change<'_>,
    (project, id): (&str, Uuid),
    (sql, values): (&'static str, Values),
) -> Result<Option<String>, ControlError> {
    let row = change.row(NEXT_REVISION, values![project]).await?;
    let revision: i64 = row.ok_or(ControlError::NotFound)?.get("symbols_revision")?;
    change
        .execute(SUCCEED, values![project, id, revision])
        .await?;
    let removed = change.row(sql, values).await?;
    let removed = removed.ok_or(ControlError::NotFound)?;
    let content: String = removed.get("content")?;
    let name: String = removed.get("name")?;
    let others = change.rows(CONTENT_IN_USE, values![project, content.as_str()]);
    let is_unused = others.await?.is_empty();
    change
        .commit(Entry {
            action: Action::SymbolFileRemoved,
            project: Some(project),
            subject: &id.to_string(),
            detail: json!({"name": name}),
        })
        .await?;
    Ok(is_unused.then_some(content))
}
