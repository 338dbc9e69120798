//! The ClickHouse library: where it is, and how it gets there.
//!
//! It is the package `@chdb/lib-<platform>` of the npm registry, fetched with npm itself (so with its proxy and registry
//! settings), checked against a pinned hash, and unpacked into a cache folder that any number of processes share.

mod fetch;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use fetch::{Npm, unpack};

/// The version of the library's package.
pub const VERSION: &str = "26.7.3-stable.1";

/// A platform whose package is known.
#[derive(Clone, Copy, Debug)]
struct Platform {
    name: &'static str,
    /// The hash npm calls `integrity`.
    integrity: &'static str,
}

/// The platform this program was built for, when its package is known.
const PLATFORM: Option<Platform> = if cfg!(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_env = "gnu"
)) {
    Some(Platform {
        name: "linux-x64-gnu",
        integrity: "sha512-XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw==",
    })
} else {
    None
};

const FILE: &str = "libchdb.so";

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("the engine's library {0} is not a file")]
    NoSuchFile(PathBuf),
    #[error(
        "the engine's library cannot be fetched for this platform ({os}, {arch}): give the path of a libchdb of version {VERSION}, or use a ClickHouse server by its URL"
    )]
    UnknownPlatform {
        os: &'static str,
        arch: &'static str,
    },
    #[error(
        "npm is needed once, to fetch the engine's library: install Node.js, give the library's path, or use a ClickHouse server by its URL"
    )]
    NoNpm,
    #[error("npm could not fetch {package}: {reason}")]
    Npm { package: String, reason: String },
    #[error(
        "the fetched {package} is not the one expected ({found} instead of {expected}): it is not used"
    )]
    Integrity {
        package: String,
        expected: String,
        found: String,
    },
    #[error("the fetched {0} holds no library")]
    NoMember(String),
    #[error(
        "the disk of {0} is full: the engine's library needs 750 MB there while it is unpacked"
    )]
    DiskFull(PathBuf),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl LibraryError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            if source.kind() == io::ErrorKind::StorageFull {
                Self::DiskFull(path)
            } else {
                Self::Io { path, source }
            }
        }
    }
}

/// Finds the library, or fetches it into `cache_dir`: `explicit` when given, else
/// `cache_dir/<version>-<platform>/libchdb.so`. `progress` gets a sentence for each step that takes long.
///
/// Any number of processes may do this at once: one fetches, the others wait for it.
///
/// # Errors
/// Each variant of [`LibraryError`] is a sentence for the one who started the program.
pub fn locate_or_fetch(
    explicit: Option<&Path>,
    cache_dir: &Path,
    progress: &dyn Fn(&str),
) -> Result<PathBuf, LibraryError> {
    if let Some(path) = explicit {
        return if path.is_file() {
            Ok(path.to_owned())
        } else {
            Err(LibraryError::NoSuchFile(path.to_owned()))
        };
    }
    let platform = PLATFORM.ok_or(LibraryError::UnknownPlatform {
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
    })?;
    fetch_once(platform, cache_dir, Path::new("npm"), progress)
}

fn fetch_once(
    platform: Platform,
    cache_dir: &Path,
    npm: &Path,
    progress: &dyn Fn(&str),
) -> Result<PathBuf, LibraryError> {
    let folder = cache_dir.join(format!("{VERSION}-{}", platform.name));
    let library = folder.join(FILE);
    if library.is_file() {
        return Ok(library);
    }
    std::fs::create_dir_all(&folder).map_err(LibraryError::io(&folder))?;
    let lock_path = folder.join("fetch.lock");
    let lock = File::create(&lock_path).map_err(LibraryError::io(&lock_path))?;
    if lock.try_lock().is_err() {
        progress("another process fetches the engine's library; waiting for it");
        lock.lock().map_err(LibraryError::io(&lock_path))?;
    }
    if library.is_file() {
        return Ok(library);
    }
    let package = format!("@chdb/lib-{}@{VERSION}", platform.name);
    progress(&format!(
        "fetching the engine's library once: {package}, about 170 MB"
    ));
    let work = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(&folder)
        .map_err(LibraryError::io(&folder))?;
    let tarball = Npm::new(npm).pack(&package, work.path())?;
    progress("unpacking the engine's library");
    unpack(
        &tarball,
        &package,
        platform.integrity,
        &work.path().join(FILE),
    )?;
    std::fs::rename(work.path().join(FILE), &library).map_err(LibraryError::io(&library))?;
    File::open(&folder)
        .and_then(|folder| folder.sync_all())
        .map_err(LibraryError::io(&folder))?;
    progress(&format!("the engine's library is in {}", library.display()));
    Ok(library)
}

#[cfg(test)]
#[path = "library/tests.rs"]
mod tests;
