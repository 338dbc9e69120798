//! Further ids of symbol files. Gradle gives each build of an app an id, also if its mapping did not change.

use serde_json::json;
use unjank_foundation::clock::UnixTime;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::values;
use super::change::{Change, Entry};
use super::error::ControlError;
use super::symbol_files::{NEXT_REVISION, SymbolFile};

/// Adds an id to a file of one build that lacks it.
const INSERT_ID: &str = "
    INSERT INTO symbol_builds (file, project, symbol_id, is_main, place, format, arch, name, has_functions, has_lines)
    SELECT file, project, $3, FALSE, place, format, arch, name, has_functions, has_lines
    FROM symbol_builds b
    WHERE file = $2 AND project = $1 AND is_main
        AND NOT EXISTS (SELECT 1 FROM symbol_builds o WHERE o.file = b.file AND (o.symbol_id = $3 OR o.place <> b.place))
        AND (SELECT COUNT(*) FROM symbol_builds o WHERE o.file = b.file) < $4";
const RENEW: &str = "UPDATE symbol_files SET revision = $3 WHERE project = $1 AND id = $2";

/// The maximum number of ids of a file with one build. Each build of an app whose code did not change adds one.
const MAX_IDS: i64 = 1_000;

impl Control {
    /// Adds an id to a file of one build, unless it has the id or too many.
    pub async fn name_symbol_file(
        &self,
        (project, file): (&str, &SymbolFile),
        symbol_id: &str,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![project, file.id, symbol_id, MAX_IDS];
        if change.execute(INSERT_ID, values).await? == 0 {
            return Ok(());
        }
        let row = change.row(NEXT_REVISION, values![project]).await?;
        let revision: i64 = row.ok_or(ControlError::NotFound)?.get("symbols_revision")?;
        let values = values![project, file.id, revision];
        change.execute(RENEW, values).await?;
        change
            .commit(Entry {
                action: Action::SymbolFileNamed,
                project: Some(project),
                subject: &file.id.to_string(),
                detail: json!({"name": file.name, "id": symbol_id}),
            })
            .await
    }
}
