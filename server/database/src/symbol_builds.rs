//! Builds and the symbol files that make their stacks readable.

use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::Actor;
use super::backend::{Notice, Row, values};
use super::change::Change;
use super::error::ControlError;
use super::symbol_files::{signed, unsigned};

/// The file and place with the symbols of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsableBuild {
    pub file: Uuid,
    pub content: String,
    pub place: u32,
    pub format: String,
    /// The file with the part of the debug information that `dwz` moved away, if the build needs one and the project has it.
    pub shared: Option<SharedSymbols>,
}

/// A file with debug information that several programs share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSymbols {
    pub file: Uuid,
    pub content: String,
}

/// The best file: with lines before one with names only, the latest of equals.
const USABLE: &str = "
    SELECT f.id AS id, f.content AS content, b.place AS place, b.format AS format, b.needs AS needs
    FROM symbol_builds b JOIN symbol_files f ON f.id = b.file
    WHERE b.project = $1 AND b.symbol_id = $2 AND b.has_functions
    ORDER BY b.has_lines DESC, f.revision DESC LIMIT 1";
const SHARED: &str = "
    SELECT f.id AS id, f.content AS content
    FROM symbol_builds b JOIN symbol_files f ON f.id = b.file
    WHERE b.project = $1 AND b.symbol_id = $2 AND b.format = 'elf'
    ORDER BY b.has_lines DESC, f.revision DESC LIMIT 1";
const IDS_WITHOUT_LINES: &str = "
    SELECT symbol_id FROM symbol_builds WHERE project = $1 AND has_functions
    GROUP BY symbol_id HAVING MAX(CASE WHEN has_lines THEN 1 ELSE 0 END) = 0
    ORDER BY symbol_id LIMIT $2";
const IDS_SINCE: &str = "
    SELECT DISTINCT b.symbol_id AS symbol_id
    FROM symbol_builds b JOIN symbol_files f ON f.id = b.file
    WHERE b.project = $1 AND b.has_functions AND f.revision > $2 AND f.revision <= $3 AND b.symbol_id > $4
    ORDER BY 1 LIMIT $5";
const REVISIONS: &str = "SELECT id, symbols_revision, symbols_repaired FROM projects";
const REPAIRED: &str = "
    UPDATE projects SET symbols_repaired = $2 WHERE id = $1 AND symbols_repaired < $2";

impl Control {
    /// Returns the best symbols of a build.
    pub async fn usable_symbols(
        &self,
        project: &str,
        symbol_id: &str,
    ) -> Result<Option<UsableBuild>, ControlError> {
        let rows = self.rows(USABLE, values![project, symbol_id]).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let needs: String = row.get("needs")?;
        Ok(Some(UsableBuild {
            shared: self.shared_symbols(project, &needs).await?,
            file: row.id("id")?,
            content: row.get("content")?,
            place: u32::try_from(row.get::<i64>("place")?).unwrap_or_default(),
            format: row.get("format")?,
        }))
    }

    /// Returns the file with debug information that a build needs.
    pub async fn shared_symbols(
        &self,
        project: &str,
        needs: &str,
    ) -> Result<Option<SharedSymbols>, ControlError> {
        if needs.is_empty() {
            return Ok(None);
        }
        let rows = self.rows(SHARED, values![project, needs]).await?;
        let shared = |row: &Row| {
            Ok(SharedSymbols {
                file: row.id("id")?,
                content: row.get("content")?,
            })
        };
        rows.first().map(shared).transpose()
    }

    /// Returns the next ids after `after` of the builds whose files have a revision above `first` and up to `last`.
    pub async fn symbol_ids_since(
        &self,
        project: &str,
        (first, last): (u64, u64),
        after: &str,
        most: u32,
    ) -> Result<Vec<String>, ControlError> {
        let values = values![project, signed(first), signed(last), after, i64::from(most),];
        self.records(IDS_SINCE, values, |row| row.get("symbol_id"))
            .await
    }

    /// Returns the ids of the builds whose files have names of functions, but no lines.
    pub async fn symbol_ids_without_lines(
        &self,
        project: &str,
        most: u32,
    ) -> Result<Vec<String>, ControlError> {
        let values = values![project, i64::from(most)];
        self.records(IDS_WITHOUT_LINES, values, |row| row.get("symbol_id"))
            .await
    }

    /// Returns the revision of the files of each project, and the one up to which stored stacks are repaired.
    pub async fn symbol_revisions(&self) -> Result<Vec<(String, u64, u64)>, ControlError> {
        self.records(REVISIONS, values![], |row| {
            Ok((
                row.get("id")?,
                unsigned(row, "symbols_revision")?,
                unsigned(row, "symbols_repaired")?,
            ))
        })
        .await
    }

    /// Records that the stacks that waited for files up to `revision` have been processed.
    pub async fn set_symbols_repaired(
        &self,
        project: &str,
        revision: u64,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let actor = Actor::system("symbols");
        let mut change = Change::begin(self, &actor, at).await?;
        let values = values![project, signed(revision)];
        change.execute(REPAIRED, values).await?;
        change.commit_unrecorded(Notice::Tick).await
    }
}
