//! Locates ClickHouse: a program that the operator names, the embedded library, or the `clickhouse` of the system.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::library;

/// The ClickHouse that the engine's process runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClickHouse {
    /// libchdb: the whole of `clickhouse local` as a library.
    Library(PathBuf),
    /// The program `clickhouse`, run as `clickhouse local`.
    Program(PathBuf),
}

impl ClickHouse {
    pub fn path(&self) -> &Path {
        match self {
            Self::Library(path) | Self::Program(path) => path,
        }
    }
}

/// Where to look for ClickHouse.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// A program, which takes precedence over everything else.
    pub binary: Option<&'a Path>,
    /// A library, instead of the one of this platform.
    pub library: Option<&'a Path>,
    /// The cache folder, to which the library of this platform is downloaded once.
    pub cache_dir: &'a Path,
    /// Folders with programs, as in `PATH`, to search for `clickhouse` if there is no library.
    pub path: Option<&'a OsStr>,
}

/// Finds ClickHouse. `progress` gets a sentence before each step that takes long.
///
/// # Errors
/// If a given file is missing, or if there is neither a library nor a program.
pub fn locate(search: Search<'_>, progress: &dyn Fn(&str)) -> anyhow::Result<ClickHouse> {
    if let Some(binary) = search.binary {
        ensure!(
            is_program(binary),
            "{} is not a program: --engine-binary names the program `clickhouse`",
            binary.display()
        );
        return Ok(ClickHouse::Program(std::path::absolute(binary)?));
    }
    let error = match library::locate_or_fetch(search.library, search.cache_dir, progress) {
        Ok(library) => return Ok(ClickHouse::Library(std::path::absolute(library)?)),
        Err(error) if search.library.is_some() => return Err(error),
        Err(error) => error,
    };
    let found = search
        .path
        .into_iter()
        .flat_map(std::env::split_paths)
        .map(|folder| folder.join("clickhouse"))
        .find(|path| is_program(path));
    let Some(program) = found else {
        return Err(error.context(
            "cannot find ClickHouse: install it so that `clickhouse` is on the PATH (macOS: `brew install --cask clickhouse`; Linux: the package `clickhouse-common-static` of packages.clickhouse.com)",
        ));
    };
    progress(&format!(
        "no library ({error:#}): using {} instead",
        program.display()
    ));
    Ok(ClickHouse::Program(std::path::absolute(program)?))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
#[path = "../tests/unit/clickhouse.rs"]
mod tests;
