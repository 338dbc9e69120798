//! The ClickHouse library: where it is, and how it gets there.
//!
//! It is the package `@chdb/lib-<platform>` of the npm registry, fetched with npm, checked, and unpacked into a shared cache folder.

mod fetch;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// The version of the library's package.
pub const VERSION: &str = "26.7.3-stable.1";

const FILE: &str = "libchdb.so";

/// A platform that has a package.
#[derive(Clone, Copy, Debug)]
struct Platform {
    name: &'static str,
    /// The hash that npm calls `integrity`. None: npm alone checks the package, by the registry's hash.
    integrity: Option<&'static str>,
}

impl Platform {
    /// The platform of this program. Only the library for Linux on x86-64 with glibc was ever run here.
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

/// Finds the library, or fetches it into `cache_dir`: `explicit` when it is given, else
/// `cache_dir/<version>-<platform>/libchdb.so`. `progress` gets a sentence for each step that takes long.
///
/// Any number of processes may do this at once: one fetches, the others wait for it.
///
/// # Errors
/// Each is a sentence for the person who started the program.
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
        progress("another process fetches the engine's library; waiting for it");
        lock.lock().with_context(at)?;
    }
    if library.is_file() {
        return Ok(library);
    }
    progress(&format!(
        "fetching the engine's library once: {package}, about 170 MB"
    ));
    let work = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(&folder)
        .with_context(at)?;
    let tarball = fetch::pack(npm, &package, work.path())?;
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
