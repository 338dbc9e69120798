//! Downloads the package with npm, checks it, and unpacks the library.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use flate2::bufread::GzDecoder;
use sha2::{Digest, Sha512};

use super::FILE;

/// Downloads a package's tarball into `folder`. npm compares the tarball with the hash of the registry. `progress` gets a sentence once npm runs.
pub(super) fn pack(
    npm: &Path,
    package: &str,
    folder: &Path,
    progress: &dyn Fn(&str),
) -> anyhow::Result<PathBuf> {
    let child = Command::new(npm)
        .args(["pack", package, "--silent", "--pack-destination"])
        .arg(folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = match child {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "npm is needed once, to download the engine's library: install Node.js, set the path of the library (--engine-library), or set the URL of a ClickHouse server (--clickhouse-url)"
        ),
        child => child.context("cannot start npm")?,
    };
    progress(&format!(
        "downloading the engine's library once: {package}, about 170 MB"
    ));
    let output = child.wait_with_output().context("cannot wait for npm")?;
    let tarball = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
    match tarball {
        Some(tarball) if output.status.success() => Ok(tarball),
        _ => {
            let error_output = String::from_utf8_lossy(&output.stderr);
            // npm prints the reason last. One line is enough.
            let reason = error_output
                .lines()
                .map(str::trim)
                .rfind(|line| !line.is_empty());
            bail!(
                "npm cannot download {package}: {}",
                reason.unwrap_or("there is no tarball and no error message")
            )
        }
    }
}

/// Checks the tarball and unpacks its library to `target`. Returns once the library is synced to disk.
pub(super) fn unpack(
    tarball: &Path,
    package: &str,
    integrity: Option<&str>,
    target: &Path,
) -> anyhow::Result<()> {
    let mut file = File::open(tarball)?;
    if let Some(expected) = integrity {
        let found = integrity_of(&mut file)?;
        ensure!(
            found == expected,
            "the downloaded {package} is not the expected one ({found} instead of {expected}), so it is not used"
        );
        // Unpack the same open file that was checked.
        file.rewind()?;
    }
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let is_library = entry
            .path()
            .is_ok_and(|path| path == Path::new("package").join(FILE));
        if is_library && entry.header().entry_type().is_file() {
            let mut out = File::create(target)?;
            return io::copy(&mut entry, &mut out)
                .and_then(|_| out.sync_all())
                .context("the engine's library needs 750 MB of disk in the cache folder while it is unpacked");
        }
    }
    bail!("the downloaded {package} contains no library")
}

/// Returns the hash that npm calls `integrity`: SHA-512 in base64.
pub(super) fn integrity_of(reader: &mut impl Read) -> io::Result<String> {
    let mut hash = Sha512::new();
    io::copy(reader, &mut hash)?;
    let hash = base64::engine::general_purpose::STANDARD.encode(hash.finalize());
    Ok(format!("sha512-{hash}"))
}
