//! Getting the package with npm, checking it, and unpacking the one file of it that matters.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use flate2::bufread::GzDecoder;
use sha2::{Digest, Sha512};

use super::{FILE, LibraryError};

/// The program that fetches packages.
pub(super) struct Npm<'a> {
    program: &'a Path,
}

impl<'a> Npm<'a> {
    pub(super) fn new(program: &'a Path) -> Self {
        Self { program }
    }

    /// Fetches a package's tarball into `folder`.
    pub(super) fn pack(&self, package: &str, folder: &Path) -> Result<PathBuf, LibraryError> {
        let output = Command::new(self.program)
            .args(["pack", package, "--silent", "--pack-destination"])
            .arg(folder)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                if error.kind() == io::ErrorKind::NotFound {
                    LibraryError::NoNpm
                } else {
                    failed(package, &error.to_string())
                }
            })?;
        if !output.status.success() {
            return Err(failed(package, &String::from_utf8_lossy(&output.stderr)));
        }
        let tarballs = std::fs::read_dir(folder).map_err(LibraryError::io(folder))?;
        tarballs
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
            .ok_or_else(|| failed(package, "it left no tarball"))
    }
}

fn failed(package: &str, reason: &str) -> LibraryError {
    // npm says the reason last; one line is enough.
    let reason = reason
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or("it gave no reason");
    LibraryError::Npm {
        package: package.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Checks the tarball and unpacks the library out of it into `target`, which is on the disk when this returns.
pub(super) fn unpack(
    tarball: &Path,
    package: &str,
    integrity: &str,
    target: &Path,
) -> Result<(), LibraryError> {
    let mut file = File::open(tarball).map_err(LibraryError::io(tarball))?;
    let found = integrity_of(&mut file).map_err(LibraryError::io(tarball))?;
    if found != integrity {
        return Err(LibraryError::Integrity {
            package: package.to_owned(),
            expected: integrity.to_owned(),
            found,
        });
    }
    // The very file that was checked is the one that is unpacked.
    file.rewind().map_err(LibraryError::io(tarball))?;
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    for entry in archive.entries().map_err(LibraryError::io(tarball))? {
        let mut entry = entry.map_err(LibraryError::io(tarball))?;
        let is_library = entry
            .path()
            .is_ok_and(|path| path == Path::new("package").join(FILE));
        if !is_library || !entry.header().entry_type().is_file() {
            continue;
        }
        let mut out = BufWriter::with_capacity(
            1 << 20,
            File::create(target).map_err(LibraryError::io(target))?,
        );
        io::copy(&mut entry, &mut out)
            .and_then(|_| out.flush())
            .map_err(LibraryError::io(target))?;
        return out.get_ref().sync_all().map_err(LibraryError::io(target));
    }
    Err(LibraryError::NoMember(package.to_owned()))
}

/// What npm calls `integrity`: the SHA-512 in base64.
pub(super) fn integrity_of(reader: &mut impl Read) -> io::Result<String> {
    let mut hash = Sha512::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            count => hash.update(buffer.get(..count).unwrap_or_default()),
        }
    }
    Ok(format!(
        "sha512-{}",
        base64::engine::general_purpose::STANDARD.encode(hash.finalize())
    ))
}
