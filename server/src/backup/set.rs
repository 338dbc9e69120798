//! The description of a set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use unjank_protocol::Timestamp;

use super::files::{self, CopiedFile};
use crate::store::{BackupPart, DurableFiles};

/// The description of a set of files. Without it, the set is incomplete.
pub(super) const DESCRIPTION: &str = "backup.json";
/// The version of the layout.
pub(super) const FORMAT: u32 = 1;

pub(super) const CLICKHOUSE: &str = "clickhouse";
pub(super) const SQLITE: &str = "control.sqlite";
pub(super) const POSTGRES: &str = "control.dump";
pub(super) const SECRET: &str = "secret";
pub(super) const LOG: &str = "log";
pub(super) const DEAD_LETTERS: &str = "dead-letter";
pub(super) const SYMBOLS: &str = "symbols";

/// Files of a set, with their sizes.
pub(super) type Sizes = BTreeMap<PathBuf, u64>;

/// A complete set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupSet {
    pub(super) format: u32,
    /// The version of unjank that made the set.
    pub version: String,
    pub begun: Timestamp,
    /// Every batch that was acknowledged before this time is in the set.
    pub complete_until: Timestamp,
    pub database: String,
    pub clickhouse: ClickHouseAt,
    pub parts: Vec<BackupPart>,
    /// The size of the tables in bytes.
    pub table_bytes: u64,
    /// All files except those below `clickhouse/`, in which ClickHouse keeps checksums of its own.
    pub(super) files: Vec<CopiedFile>,
    /// The files below `clickhouse/`. `None` in the sets of the first version, and if the tables are elsewhere.
    #[serde(default)]
    pub(super) tables: Option<TableFiles>,
}

/// The files below `clickhouse/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableFiles {
    files: u64,
    bytes: u64,
}

impl TableFiles {
    /// Counts the table files among the files of a set.
    pub(super) fn among(sizes: &Sizes) -> Self {
        let mut found = Self { files: 0, bytes: 0 };
        for (_, bytes) in sizes
            .iter()
            .filter(|(path, _)| path.starts_with(CLICKHOUSE))
        {
            found.files += 1;
            found.bytes += bytes;
        }
        found
    }
}

/// Where the tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClickHouseAt {
    /// In the folder `clickhouse` of the set.
    Set,
    /// In the destination that the operator named (`--clickhouse-to`). It may contain a password, so it is not stored.
    Elsewhere,
}

impl BackupSet {
    /// Returns the size of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let files: u64 = self.files.iter().map(|file| file.bytes).sum();
        files + self.table_bytes
    }

    /// Writes the description. From then on, the set is complete.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(DESCRIPTION);
        let bytes = serde_json::to_vec_pretty(self)?;
        let written = DurableFiles::default().replace(&path, &bytes);
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads the description of a set, and checks that its files exist. `with_tables`: also those below `clickhouse/`.
    pub(super) fn read(folder: &Path, with_tables: bool) -> anyhow::Result<Self> {
        anyhow::ensure!(folder.is_dir(), "there is no folder {}", folder.display());
        let path = folder.join(DESCRIPTION);
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Self::incomplete(&folder.display()));
            }
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let set = Self::parse(&folder.display(), &bytes)?;
        let size = |path: &Path| Some(std::fs::metadata(folder.join(path)).ok()?.len());
        set.check_files(&folder.display(), size)?;
        if with_tables && set.tables.is_some() {
            set.check_tables(&folder.display(), &files::sizes_below(folder)?)?;
        }
        Ok(set)
    }

    /// The error if there is no description. `place` is where the set should be.
    pub(super) fn incomplete(place: &impl Display) -> anyhow::Error {
        anyhow::anyhow!(
            "{place} is not a complete backup: {DESCRIPTION} is missing, which `unjank backup` writes last. Check the place, or restore another backup"
        )
    }

    /// Reads the description of a set that is in `place`.
    pub(super) fn parse(place: &impl Display, bytes: &[u8]) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
            version: String,
        }
        let damaged = || format!("{place}/{DESCRIPTION} is damaged: restore another backup");
        let Format { format, version } = serde_json::from_slice(bytes).with_context(damaged)?;
        let own = numbers(env!("CARGO_PKG_VERSION"));
        anyhow::ensure!(
            format <= FORMAT && numbers(&version) <= own,
            "{place} was made by unjank {version}, which is newer than this one: restore it with that version"
        );
        let set: Self = serde_json::from_slice(bytes).with_context(damaged)?;
        for file in &set.files {
            anyhow::ensure!(is_inside(&file.path), "{}", damaged());
        }
        for part in &set.parts {
            let is_name =
                !part.name.is_empty() && part.name.bytes().all(|byte| byte.is_ascii_lowercase());
            anyhow::ensure!(is_name, "{}", damaged());
        }
        Ok(set)
    }

    /// Fails unless the files of the set exist in `place` and have their sizes.
    pub(super) fn check_files(
        &self,
        place: &impl Display,
        size: impl Fn(&Path) -> Option<u64>,
    ) -> anyhow::Result<()> {
        for file in &self.files {
            anyhow::ensure!(
                size(&file.path) == Some(file.bytes),
                "the backup {place} lacks {}, or the file has another size: restore another backup",
                file.path.display()
            );
        }
        Ok(())
    }

    /// Fails unless `place` has as many files below `clickhouse/` as the set, of the same total size.
    pub(super) fn check_tables(&self, place: &impl Display, sizes: &Sizes) -> anyhow::Result<()> {
        let Some(expected) = self.tables else {
            return Ok(());
        };
        let found = TableFiles::among(sizes);
        anyhow::ensure!(
            found == expected,
            "the backup {place} was made with {} files ({} bytes) in the folder {CLICKHOUSE}, and has {} files ({} bytes) there: restore another \
             backup",
            expected.files,
            expected.bytes,
            found.files,
            found.bytes
        );
        Ok(())
    }

    /// Removes what the set does not name, and the files below `clickhouse/` unless `with_tables`.
    pub(super) fn retain_files(&self, sizes: &mut Sizes, with_tables: bool) {
        let named: BTreeSet<&Path> = self.files.iter().map(|file| file.path.as_path()).collect();
        sizes.retain(|path, _| match path.starts_with(CLICKHOUSE) {
            true => with_tables,
            false => named.contains(path.as_path()),
        });
    }
}

/// Returns the numbers of a version such as 0.2.0 or 0.2.0-rc.1. A version without numbers is less than all others.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let core = version.split(['-', '+']).next()?;
    let mut numbers = core.split('.').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Whether a path stays inside of its folder.
fn is_inside(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}
