//! Getting the package with npm, checking it, and unpacking the one file of it that matters.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use flate2::bufread::GzDecoder;
use sha2::{Digest, Sha512};

use super::FILE;

/// Fetches a package's tarball into `folder`. npm compares it with the registry's own hash.
pub(super) fn pack(npm: &Path, package: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let output = Command::new(npm)
        .args(["pack", package, "--silent", "--pack-destination"])
        .arg(folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "npm is needed once, to fetch the engine's library: install Node.js, give the library's path (--engine-library), or use a ClickHouse server by its URL (--clickhouse-url)"
        ),
        output => output.context("npm cannot be started")?,
    };
    let tarball = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
    match tarball {
        Some(tarball) if output.status.success() => Ok(tarball),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            // npm gives the reason last; one line is enough.
            let reason = said.lines().map(str::trim).rfind(|line| !line.is_empty());
            bail!(
                "npm could not fetch {package}: {}",
                reason.unwrap_or("it left no tarball and gave no reason")
            )
        }
    }
}

/// Checks the tarball and unpacks the library out of it into `target`, which is on the disk when this returns.
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
            "the fetched {package} is not the expected one ({found} instead of {expected}): it is not used"
        );
        // The very file that was checked is the one that is unpacked.
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
    bail!("the fetched {package} holds no library")
}

/// What npm calls `integrity`: the SHA-512 in base64.
pub(super) fn integrity_of(reader: &mut impl Read) -> io::Result<String> {
    let mut hash = Sha512::new();
    io::copy(reader, &mut hash)?;
    let hash = base64::engine::general_purpose::STANDARD.encode(hash.finalize());
    Ok(format!("sha512-{hash}"))
}
