//! Locates and downloads the ClickHouse library.
//!
//! The library is the package `@chdb/lib-<platform>` of the npm registry. It is downloaded with npm, checked, and unpacked into a shared cache
//! folder.

mod fetch;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// The version of the library's package.
pub const VERSION: &str = "26.7.3-stable.1";

const FILE: &str = "libchdb.so";

/// A platform for which there is a package.
#[derive(Clone, Copy, Debug)]
struct Platform {
    name: &'static str,
    /// The hash that npm calls `integrity`. `None`: only npm checks the package, with the hash of the registry.
    integrity: Option<&'static str>,
}

impl Platform {
    /// Returns the platform of this program. Only the library for Linux on x86-64 with glibc has been tested.
    fn current() -> Option<Self> {
        let (name, integrity) = match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") if cfg!(target_env = "gnu") => (
                "linux-x64-gnu",
                Some(
                    "sha512-XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw==",
                ),
            ),
            ("linux", "aarch64") if cfg!(target_env = "gnu") => ("linux-arm64-gnu", None),
            ("macos", "aarch64") => ("darwin-arm64", None),
            ("macos", "x86_64") => ("darwin-x64", None),
            _ => return None,
        };
        Some(Self { name, integrity })
    }
}

/// Returns the path of the library: `explicit` if it is given, otherwise `cache_dir/<version>-<platform>/libchdb.so`, which is downloaded if it is
/// missing. `progress` gets a sentence before each step that takes long.
///
/// Several processes may call this at once: one downloads the library, and the others wait.
///
/// # Errors
/// Each error is a sentence for the person who started the program.
pub fn locate_or_fetch(
    explicit: Option<&Path>,
    cache_dir: &Path,
    progress: &dyn Fn(&str),
) -> anyhow::Result<PathBuf> {
    if let Some(path) = explicit {
        ensure!(
            path.is_file(),
            "the engine's library {} is not a file",
            path.display()
        );
        return Ok(path.to_owned());
    }
    let Some(platform) = Platform::current() else {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        bail!("there is no ClickHouse library for this platform ({os}, {arch})");
    };
    fetch_once(platform, cache_dir, Path::new("npm"), progress)
}

fn fetch_once(
    platform: Platform,
    cache_dir: &Path,
    npm: &Path,
    progress: &dyn Fn(&str),
) -> anyhow::Result<PathBuf> {
    let folder = cache_dir.join(format!("{VERSION}-{}", platform.name));
    let library = folder.join(FILE);
    if library.is_file() {
        return Ok(library);
    }
    let package = format!("@chdb/lib-{}@{VERSION}", platform.name);
    let at = || format!("the cache folder {}", folder.display());
    std::fs::create_dir_all(&folder).with_context(at)?;
    let lock = File::create(folder.join("fetch.lock")).with_context(at)?;
    if lock.try_lock().is_err() {
        progress("another process downloads the engine's library; waiting for it");
        lock.lock().with_context(at)?;
    }
    if library.is_file() {
        return Ok(library);
    }
    let work = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(&folder)
        .with_context(at)?;
    let tarball = fetch::pack(npm, &package, work.path(), progress)?;
    progress("unpacking the engine's library");
    let fresh = work.path().join(FILE);
    fetch::unpack(&tarball, &package, platform.integrity, &fresh)?;
    std::fs::rename(&fresh, &library).with_context(at)?;
    progress(&format!("the engine's library is in {}", library.display()));
    Ok(library)
}

#[cfg(test)]
#[path = "../tests/unit/library.rs"]
mod tests;
