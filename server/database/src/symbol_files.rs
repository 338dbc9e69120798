//! Symbol files and the builds they belong to. The content is in the symbol store, under its SHA-256.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use unjank_symbols::{Found, SymbolId};
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, Row, Value, values};
use super::change::{Change, Entry, new_id};
use super::erasures::ERASED_PROJECT;
use super::error::ControlError;

/// A symbol file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolFile {
    pub id: Uuid,
    /// The SHA-1 of the content.
    pub checksum: String,
    /// The SHA-256 of the content: its name in the symbol store.
    pub content: String,
    pub name: String,
    pub bytes: u64,
    pub uploaded_at: UnixTime,
    pub uploaded_by: String,
    pub last_used_at: Option<UnixTime>,
    /// When the file was last uploaded again, or a sweep found that stored stacks need it.
    pub needed_at: Option<UnixTime>,
    /// The first builds of the file.
    pub builds: Vec<Build>,
    /// The number of all builds of the file.
    pub builds_total: u64,
    /// The number of older files with the same id and the same kind of content, which this file replaces.
    pub replaces: u64,
}

/// Selects files of a project, the latest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct SymbolFileFilter<'f> {
    /// Only files with symbols of this build. Only this build of them is returned.
    pub symbol_id: Option<&'f SymbolId>,
    /// Only files before this one.
    pub before: Option<Uuid>,
}

/// A build that a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    pub symbol_id: String,
    pub format: String,
    pub arch: String,
    pub name: String,
    pub has_functions: bool,
    pub has_lines: bool,
}

/// The space that the files of a project take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolUsage {
    pub bytes: u64,
    /// The number of builds, counted by each of their ids.
    pub builds: u64,
}

#[derive(Clone, Debug)]
pub struct NewSymbolFile {
    pub checksum: String,
    pub content: String,
    pub name: String,
    pub bytes: u64,
    pub found: Vec<Found>,
}

// A program and its separate debug file share an id, so only files with the same content count as replaced. Scripts that did not change keep
// their id, so every bundle has ids of earlier bundles.
macro_rules! columns {
    () => {
        "id, checksum, content, name, bytes, uploaded_at, uploaded_by, last_used_at, needed_at,
         (SELECT COUNT(*) FROM symbol_builds b WHERE b.file = symbol_files.id AND b.is_main) AS builds_total,
         (SELECT COUNT(DISTINCT o.file)
          FROM symbol_builds b
          JOIN symbol_builds o ON o.project = b.project AND o.symbol_id = b.symbol_id AND o.file <> b.file
          JOIN symbol_files f ON f.id = o.file
          WHERE b.file = symbol_files.id AND f.revision < symbol_files.revision
            AND b.has_functions AND b.format <> 'source_map'
            AND o.has_functions AND o.format = b.format AND o.has_lines = b.has_lines) AS replaces"
    };
}

const BY_CHECKSUM: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM symbol_files WHERE project = $1 AND checksum = $2"
);
const BY_CHECKSUMS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM symbol_files WHERE project = $1 AND checksum IN (
        $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
        $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33)"
);
/// The number of checksums in [`BY_CHECKSUMS`].
const CHECKSUMS: usize = 32;
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM symbol_files WHERE project = $1 AND id < $2
        AND ($4 = '' OR id IN (SELECT file FROM symbol_builds WHERE project = $1 AND symbol_id = $4))
      ORDER BY id DESC LIMIT $3"
);
const BUILDS: &str = "
    SELECT symbol_id, format, arch, name, has_functions, has_lines
    FROM symbol_builds WHERE file = $1 AND is_main ORDER BY place LIMIT $2";
/// The builds with an id, each by the id to show.
const BUILDS_WITH_ID: &str = "
    SELECT m.symbol_id AS symbol_id, m.format AS format, m.arch AS arch, m.name AS name, m.has_functions AS has_functions, m.has_lines AS has_lines
    FROM symbol_builds b
    JOIN symbol_builds m ON m.file = b.file AND m.place = b.place AND m.is_main
    WHERE b.file = $1 AND b.symbol_id = $3 ORDER BY m.place LIMIT $2";
pub(super) const NEXT_REVISION: &str = "
    UPDATE projects SET symbols_revision = symbols_revision + 1 WHERE id = $1
    RETURNING symbols_revision";
const INSERT: &str = "
    INSERT INTO symbol_files (id, project, checksum, content, name, bytes, revision, uploaded_at, uploaded_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (project, checksum) DO NOTHING";
const INSERT_BUILD: &str = "
    INSERT INTO symbol_builds (file, project, symbol_id, is_main, place, format, arch, name, has_functions, has_lines, needs)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT DO NOTHING";
/// Files that need this one get the new revision, so that stored stacks are repaired with both.
const RENEW_NEEDY: &str = "
    UPDATE symbol_files SET revision = $3 WHERE project = $1 AND id IN (
        SELECT file FROM symbol_builds WHERE project = $1
            AND needs IN (SELECT symbol_id FROM symbol_builds WHERE project = $1 AND file = $2))";
const USAGE: &str = "
    SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes,
        (SELECT COUNT(*) FROM symbol_builds WHERE project = $1) AS builds
    FROM symbol_files WHERE project = $1";
const TOUCH: &str = "
    UPDATE symbol_files SET last_used_at = $3
    WHERE project = $1 AND id = $2 AND COALESCE(last_used_at, 0) < $3";
const NEEDED: &str = "UPDATE symbol_files SET needed_at = $3 WHERE project = $1 AND id = $2";
const IDS_OF: &str = "
    SELECT DISTINCT symbol_id FROM symbol_builds WHERE project = $1 AND file = $2 ORDER BY 1 LIMIT $3";

/// The maximum number of builds that lists show of one file.
const SHOWN_BUILDS: i64 = 50;

impl SymbolFile {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            checksum: row.get("checksum")?,
            content: row.get("content")?,
            name: row.get("name")?,
            bytes: unsigned(row, "bytes")?,
            uploaded_at: row.get("uploaded_at")?,
            uploaded_by: row.get("uploaded_by")?,
            last_used_at: row.get("last_used_at")?,
            needed_at: row.get("needed_at")?,
            builds: Vec::new(),
            builds_total: unsigned(row, "builds_total")?,
            replaces: unsigned(row, "replaces")?,
        })
    }
}

impl Build {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            symbol_id: row.get("symbol_id")?,
            format: row.get("format")?,
            arch: row.get("arch")?,
            name: row.get("name")?,
            has_functions: row.get("has_functions")?,
            has_lines: row.get("has_lines")?,
        })
    }
}

pub(super) fn unsigned(row: &Row, column: &str) -> Result<u64, ControlError> {
    Ok(u64::try_from(row.get::<i64>(column)?).unwrap_or_default())
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Control {
    /// Adds a file. If the project has a file with this content, marks that file as needed and returns it. [`ControlError::NotFound`]: there
    /// is no such project, or it is being erased.
    ///
    /// `is_stored` looks for the content while no other server can delete it, and should take no longer than a few seconds. If there is no
    /// content, or another server has just removed the known file, nothing is added, and the result is `None`.
    pub async fn add_symbol_file(
        &self,
        project: &str,
        new: NewSymbolFile,
        actor: &Actor,
        at: UnixTime,
        is_stored: impl Future<Output = bool>,
    ) -> Result<Option<SymbolFile>, ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let row = change.row(NEXT_REVISION, values![project]).await?;
        let revision: i64 = row.ok_or(ControlError::NotFound)?.get("symbols_revision")?;
        if change
            .row(ERASED_PROJECT, values![project])
            .await?
            .is_some()
        {
            return Err(ControlError::NotFound);
        }
        if !is_stored.await {
            return Ok(None);
        }
        let id = new_id(at);
        let values = values![
            id,
            project,
            new.checksum.as_str(),
            new.content.as_str(),
            new.name.as_str(),
            signed(new.bytes),
            revision,
            at,
            actor.to_string(),
        ];
        if change.execute(INSERT, values).await? == 0 {
            drop(change);
            return match self.known_symbol_file(project, &new.checksum, at).await {
                Err(ControlError::NotFound) => Ok(None),
                known => known.map(Some),
            };
        }
        insert_builds(&mut change, (project, id), &new.found).await?;
        let renewed = values![project, id, revision];
        change.execute(RENEW_NEEDY, renewed).await?;
        let ids: Vec<&str> = (new.found.iter())
            .filter_map(|found| Some(found.ids.first()?.as_str()))
            .take(10)
            .collect();
        let added = change.row(BY_CHECKSUM, values![project, new.checksum.as_str()]);
        let replaces = match added.await? {
            Some(row) => unsigned(&row, "replaces")?,
            None => 0,
        };
        let mut detail =
            json!({"name": new.name, "bytes": new.bytes, "builds": new.found.len(), "ids": ids});
        if replaces > 0 {
            detail["replaces"] = json!(replaces);
        }
        change
            .commit(Entry {
                action: Action::SymbolFileAdded,
                project: Some(project),
                subject: &id.to_string(),
                detail,
            })
            .await?;
        self.symbol_file(project, &new.checksum).await.map(Some)
    }

    /// Returns the file with a SHA-1.
    pub async fn symbol_file(
        &self,
        project: &str,
        checksum: &str,
    ) -> Result<SymbolFile, ControlError> {
        let row = self.row(BY_CHECKSUM, values![project, checksum]).await?;
        self.with_builds(SymbolFile::read(&row)?, None).await
    }

    /// Returns the files with these SHA-1, in any order.
    pub async fn symbol_files_of(
        &self,
        project: &str,
        checksums: &[&str],
    ) -> Result<Vec<SymbolFile>, ControlError> {
        let mut files = Vec::new();
        for some in checksums.chunks(CHECKSUMS) {
            let mut values = values![project];
            values.extend(some.iter().map(|checksum| Value::from(*checksum)));
            values.resize(1 + CHECKSUMS, Value::from(""));
            for file in self.records(BY_CHECKSUMS, values, SymbolFile::read).await? {
                files.push(self.with_builds(file, None).await?);
            }
        }
        Ok(files)
    }

    /// Returns the files of a project, the latest first.
    pub async fn symbol_files(
        &self,
        project: &str,
        filter: SymbolFileFilter<'_>,
        most: u32,
    ) -> Result<Vec<SymbolFile>, ControlError> {
        let before = filter.before.unwrap_or(Uuid::max());
        let symbol_id = filter.symbol_id.map_or("", SymbolId::as_str);
        let values = values![project, before, i64::from(most), symbol_id];
        let mut files = Vec::new();
        for file in self.records(LIST, values, SymbolFile::read).await? {
            files.push(self.with_builds(file, filter.symbol_id).await?);
        }
        Ok(files)
    }

    async fn with_builds(
        &self,
        mut file: SymbolFile,
        only: Option<&SymbolId>,
    ) -> Result<SymbolFile, ControlError> {
        let mut values = values![file.id, SHOWN_BUILDS];
        let sql = match only {
            Some(id) => {
                values.extend(values![id.as_str()]);
                BUILDS_WITH_ID
            }
            None => BUILDS,
        };
        file.builds = self.records(sql, values, Build::read).await?;
        Ok(file)
    }

    /// Returns the space that the files of a project take.
    pub async fn symbol_usage(&self, project: &str) -> Result<SymbolUsage, ControlError> {
        let row = self.row(USAGE, values![project]).await?;
        Ok(SymbolUsage {
            bytes: unsigned(&row, "bytes")?,
            builds: unsigned(&row, "builds")?,
        })
    }

    /// Returns the ids of all builds of a file.
    pub async fn ids_of_symbol_file(
        &self,
        project: &str,
        file: Uuid,
        most: u32,
    ) -> Result<Vec<String>, ControlError> {
        let values = values![project, file, i64::from(most)];
        self.records(IDS_OF, values, |row| row.get("symbol_id"))
            .await
    }

    /// Returns the size of all files of a project.
    pub async fn symbol_bytes(&self, project: &str) -> Result<u64, ControlError> {
        Ok(self.symbol_usage(project).await?.bytes)
    }

    /// Records a use of a file. Call it occasionally, not at each use.
    pub async fn touch_symbol_file(
        &self,
        project: &str,
        file: Uuid,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let actor = Actor::system("symbols");
        let mut change = Change::begin(self, &actor, at).await?;
        change.execute(TOUCH, values![project, file, at]).await?;
        change.commit_unrecorded(Notice::Silent).await
    }

    /// Marks a file that is uploaded again.
    async fn known_symbol_file(
        &self,
        project: &str,
        checksum: &str,
        at: UnixTime,
    ) -> Result<SymbolFile, ControlError> {
        let known = self.symbol_file(project, checksum).await?;
        self.mark_symbol_file_needed(project, known.id, at).await?;
        Ok(known)
    }

    /// Records that stored stacks need a file or that it was uploaded again, so that the next sweeps need not look at it.
    /// [`ControlError::NotFound`]: it was removed meanwhile.
    pub async fn mark_symbol_file_needed(
        &self,
        project: &str,
        file: Uuid,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let actor = Actor::system("symbols");
        let mut change = Change::begin(self, &actor, at).await?;
        let values = values![project, file, at];
        change.execute_found(NEEDED, values).await?;
        change.commit_unrecorded(Notice::Silent).await
    }
}

async fn insert_builds(
    change: &mut Change<'_>,
    (project, file): (&str, Uuid),
    found: &[Found],
) -> Result<(), ControlError> {
    for one in found {
        for (place, symbol_id) in one.ids.iter().enumerate() {
            let values = values![
                file,
                project,
                symbol_id.as_str(),
                place == 0,
                i64::from(one.index),
                one.format.as_str(),
                one.arch.as_str(),
                one.name.as_str(),
                one.contents.functions,
                one.contents.lines,
                one.needs.as_deref().unwrap_or_default(),
            ];
            change.execute(INSERT_BUILD, values).await?;
        }
    }
    Ok(())
}
